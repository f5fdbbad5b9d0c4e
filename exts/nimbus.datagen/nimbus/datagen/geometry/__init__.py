"""Geometry: transforms, cameras as matrices, convex hulls, points on triangles, and drawing of meshes."""
