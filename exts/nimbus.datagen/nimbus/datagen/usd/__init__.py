"""USD stages: the description of scenes and robots that every simulator loads."""
