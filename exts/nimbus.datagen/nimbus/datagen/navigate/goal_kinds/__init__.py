"""Kinds of goals that tasks name, one module each."""
