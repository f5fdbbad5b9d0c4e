"""Painted textures of procedural objects."""
