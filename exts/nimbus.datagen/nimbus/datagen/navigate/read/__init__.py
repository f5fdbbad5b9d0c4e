"""Scenes of others: one file a format, each a function from a path to a navigation scene."""
