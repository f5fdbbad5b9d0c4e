"""Composites of steps and conditions, one per file."""
