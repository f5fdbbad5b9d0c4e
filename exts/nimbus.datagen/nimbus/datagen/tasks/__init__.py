"""The task language: statements, references, and the files they stand in."""
