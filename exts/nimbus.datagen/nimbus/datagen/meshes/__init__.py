"""Triangle meshes: decimation, simplification and convex pieces."""
