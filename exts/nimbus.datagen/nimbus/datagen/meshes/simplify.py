# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Mesh decimation below the visible tolerance."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.kept_arrays import read_arrays
from nimbus.datagen.meshes.decimate import decimate
from nimbus.datagen.meshes.triangles import Triangles

wp.set_module_options({"enable_backward": False})


FAR_TOLERANCE, NEAR_TOLERANCE = 5e-4, 1e-4
"""Largest distance between original and simplified surface [m], for distant and for close objects."""
_SHARE = 1 / 200
"""Largest tolerance as a fraction of a mesh's length."""
_FEWEST = 200
"""Number of triangles up to which meshes stay unchanged."""
_INSET = 0.1
"""Position at which normals are sampled, as a fraction of the way from a corner to the center of its face."""
_REACH = wp.constant(0.02)
"""Largest distance within which a point on the original surface is searched for [m]."""
_VERSION = b"6"


@wp.kernel
def _nearest(
    mesh: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    distance: wp.array(dtype=wp.float32),
    face: wp.array(dtype=wp.int32),
    shares: wp.array(dtype=wp.vec2),
):
    """Find the nearest point of a mesh to each point."""
    index = wp.tid()
    query = wp.mesh_query_point_no_sign(mesh, points[index], _REACH)
    distance[index] = _REACH
    face[index] = -1
    if query.result:
        distance[index] = wp.length(wp.mesh_eval_position(mesh, query.face, query.u, query.v) - points[index])
        face[index] = query.face
        shares[index] = wp.vec2(query.u, query.v)


class _Surface:
    """Mesh with nearest-point queries."""

    def __init__(self, vertices: Float32Array, faces: NDArray[np.int32]) -> None:
        self.vertices, self.faces = vertices, faces
        points = wp.array(vertices, dtype=wp.vec3, device="cpu")
        self._mesh = wp.Mesh(points, wp.array(faces.ravel(), dtype=wp.int32, device="cpu"))

    def nearest(self, points: Float32Array) -> tuple[Float32Array, NDArray[np.int32], Float32Array]:
        """Return distances (n,) [m] to the nearest points, their faces (n,), and corner weights (n, 3)."""
        count = len(points)
        found = [wp.zeros(count, dtype=dtype, device="cpu") for dtype in (wp.float32, wp.int32, wp.vec2)]
        inputs = [self._mesh.id, wp.array(points, dtype=wp.vec3, device="cpu"), *found]
        wp.launch(_nearest, dim=count, inputs=inputs, device="cpu")
        distance, face, shares = (values.numpy() for values in found)
        return distance, face, np.concatenate([shares, 1 - shares.sum(axis=1, keepdims=True)], axis=1)


def simplify(triangles: Triangles, *, tolerance: float = FAR_TOLERANCE) -> Triangles:
    """Return the surface with as few triangles as a tolerance allows; results are cached between runs.

    Normals are sampled at the nearest points of the original surface.

    Args:
        triangles: Surface to simplify.
        tolerance: Largest distance between the surfaces [m].
    """
    places, faces = triangles.corners
    if len(faces) < _FEWEST:
        return triangles
    content = (np.array(tolerance), places, faces, triangles.normals, triangles.faces)
    key = hashlib.sha256(_VERSION + b"".join(np.ascontiguousarray(array).tobytes() for array in content)).hexdigest()
    path = cache_folder("meshes") / f"{key[:32]}.npz"
    kept = read_arrays(path) or {}
    if not kept.keys() >= {"corners", "normals"}:
        _save(path, *_simplify(triangles, tolerance))
        kept = read_arrays(path) or {}
    corners, normals = kept["corners"], kept["normals"]
    count = len(corners)
    return Triangles(
        vertices=corners,
        faces=np.arange(count, dtype=np.int32).reshape(-1, 3),
        normals=normals,
        uvs=np.zeros((count, 2), dtype=np.float32),
        colors=np.ones((count, 3), dtype=np.float32),
    )


def _simplify(triangles: Triangles, tolerance: float) -> tuple[Float32Array, Float32Array]:
    """Return the corners (3 m, 3) of all faces in sequence, and their normals."""
    places, faces = triangles.corners
    tolerance = min(tolerance, _SHARE * float(np.linalg.norm(np.ptp(places, axis=0))))
    points, left = decimate(places, faces, tolerance=tolerance)
    corners = points[left].astype(np.float32)
    first = _Surface(places, faces)
    inset = corners + _INSET * (corners.mean(axis=1, keepdims=True) - corners)
    _, face, shares = first.nearest(inset.reshape(-1, 3))
    normals = np.einsum("nk,nkd->nd", shares, triangles.normals[triangles.faces[face]])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-20)
    own = np.repeat(_unit_normals(corners), 3, axis=0)
    normals = np.where(np.sum(normals * own, axis=1, keepdims=True) > 0.3, normals, own)
    return corners.reshape(-1, 3), normals.astype(np.float32)


def _save(path: Path, corners: Float32Array, normals: Float32Array) -> None:
    """Write a file atomically."""
    with replacing(path, durable=False, shared=True) as temporary, writing(path.parent), temporary.open("wb") as file:
        np.savez(file, corners=corners, normals=normals)


def _unit_normals(corners: Float32Array) -> Float32Array:
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-20)
