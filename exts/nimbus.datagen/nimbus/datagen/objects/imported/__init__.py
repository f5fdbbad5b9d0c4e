"""Imported meshes: a user's folder of meshes is an object library."""
