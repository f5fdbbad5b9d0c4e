"""Demonstrated motions: file format, transformation to another scene, execution."""
