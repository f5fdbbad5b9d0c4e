"""Runs that are started from a user interface, and their datasets."""
