"""Triangle meshes: decimation, simplification, convex pieces."""
