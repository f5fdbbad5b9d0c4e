"""Motion planning: where the arm can be, how it gets there, and how fast."""
