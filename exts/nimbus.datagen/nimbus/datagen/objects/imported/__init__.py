"""Meshes of people's own: a folder of them is an object library."""
