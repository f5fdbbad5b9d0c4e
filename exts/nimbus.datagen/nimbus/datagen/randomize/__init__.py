"""Randomizers by theme: objects, placement, lighting, camera, appearance, physics, robot and language."""
