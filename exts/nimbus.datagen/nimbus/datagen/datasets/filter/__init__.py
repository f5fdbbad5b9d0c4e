"""Some episodes of a dataset as a dataset of its own."""
