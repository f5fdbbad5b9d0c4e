"""Runs that are started from a user interface, and the datasets that they leave."""
