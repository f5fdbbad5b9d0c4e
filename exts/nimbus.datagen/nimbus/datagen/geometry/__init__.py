"""Geometry without meshes: transforms and camera matrices."""
