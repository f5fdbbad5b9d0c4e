"""Randomizers: one kind of variation per file, each drawing from streams of its own."""
