"""Readers of third-party scenes: one module per format, each a function from a path to a navigation scene."""
