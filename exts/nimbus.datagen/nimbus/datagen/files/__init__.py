"""Formats of files, safe reading, and atomic writing."""
