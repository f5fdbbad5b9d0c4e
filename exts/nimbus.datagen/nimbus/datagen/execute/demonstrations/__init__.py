"""Demonstrated motions: their file, their transformation to another scene, their execution."""
