"""Procedural textures, environment maps and color spaces."""
