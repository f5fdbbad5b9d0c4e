"""USD: the one description of a scene that every simulator loads."""
