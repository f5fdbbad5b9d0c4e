"""Readers of third-party scenes, one module per format; each converts a file to a navigation scene."""
