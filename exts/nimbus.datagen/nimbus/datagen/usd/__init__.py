"""USD scenes, the description that every simulator loads."""
