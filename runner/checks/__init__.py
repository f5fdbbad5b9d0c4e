"""Checks that reproduce stored data: replay, recomputation, certificates."""
