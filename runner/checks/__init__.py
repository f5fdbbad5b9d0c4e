"""Checks that make stored data again: replay, recomputation, certificates."""
