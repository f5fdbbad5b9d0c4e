"""Import of third-party assets into a prepared library; each asset is checked separately."""
