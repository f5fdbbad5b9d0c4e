# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Nearest points on the surface of a mesh."""

from __future__ import annotations

import numpy as np
import warp as wp

from nimbus.datagen.arrays import AnyArray, BoolArray, FloatArray

wp.set_module_options({"enable_backward": False})


@wp.kernel
def _nearest(
    mesh: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    reach: float,
    places: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    found: wp.array(dtype=wp.int32),
):
    row = wp.tid()
    query = wp.mesh_query_point_no_sign(mesh, points[row], reach)
    found[row] = wp.where(query.result, 1, 0)
    if query.result:
        places[row] = wp.mesh_eval_position(mesh, query.face, query.u, query.v)
        normals[row] = wp.mesh_eval_face_normal(mesh, query.face)


def find_nearest(corners: AnyArray, points: FloatArray, reach: float) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Find the point of a mesh that is nearest to each of N points.

    Args:
        corners: (F, 3, 3) triangles of the mesh [m].
        points: (N, 3) points [m].
        reach: Largest distance [m].

    Returns:
        Nearest points (N, 3) [m], unit normals (N, 3) of their faces, and flags (N,), True if a point was found.
    """
    # The triangles share no vertices, so the indices are consecutive.
    vertices = wp.array(np.asarray(corners, np.float32).reshape(-1, 3), dtype=wp.vec3, device="cpu")
    indices = wp.array(np.arange(len(vertices), dtype=np.int32), dtype=wp.int32, device="cpu")
    mesh = wp.Mesh(points=vertices, indices=indices)
    start = wp.array(np.asarray(points, np.float32), dtype=wp.vec3, device="cpu")
    places, normals = wp.zeros(len(start), dtype=wp.vec3, device="cpu"), wp.zeros_like(start)
    found = wp.zeros(len(start), dtype=wp.int32, device="cpu")
    wp.launch(_nearest, dim=len(start), inputs=[mesh.id, start, reach, places, normals, found], device="cpu")
    return places.numpy().astype(float), normals.numpy().astype(float), found.numpy() == 1
