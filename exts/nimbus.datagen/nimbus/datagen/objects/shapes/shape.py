"""Output of a shape family: a visual mesh, convex contact pieces, and the regions of its texture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray, IndexArray

if TYPE_CHECKING:
    from nimbus.datagen.objects.cable import CableChain
    from nimbus.datagen.objects.grains import GrainHeap
    from nimbus.datagen.objects.model import Sheet
    from nimbus.datagen.objects.shapes.contact import Piece


_MOST_AROUND = 4096
"""Number of corners at one point above which those with about the same normal are smoothed together: all pairs of the
corners of 100,000 faces at one point would not fit into memory."""
_ALIKE = 0.05
"""Largest difference of the normals' components that are then treated as one."""


@dataclass(frozen=True, kw_only=True)
class TextureRegion:
    """Rectangle of the texture for one region of the surface; u and v in [0, 1], v up."""

    u: tuple[float, float]
    v: tuple[float, float]
    size: tuple[float, float]
    """Width and height on the surface [m]."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Geometry of one variant [m], with any origin."""

    vertices: FloatArray
    faces: IndexArray
    uvs: FloatArray
    crease: float
    """Angle above which edges stay sharp when shaded [rad]."""
    pieces: tuple[Piece, ...]
    regions: dict[str, TextureRegion] = field(default_factory=dict)
    keypoints: dict[str, FloatArray] = field(default_factory=dict)
    """Additional points of the family; ``top``, ``base`` and ``middle`` are added for every shape."""
    frames: dict[str, FloatArray] = field(default_factory=dict)
    """(4, 4) frames by name."""
    cavities: dict[str, FloatArray] = field(default_factory=dict)
    """(2, 3) lower and upper corner of each cavity [m], by the name of the frame in its opening."""
    weights: FloatArray | None = None
    """(m,) relative density of the volume that each face bounds; uniform by default."""
    ball: float = 0.0
    """Radius of the sphere used for contact [m]; 0 to use the pieces."""
    sheet: Sheet | None = None
    """Grid of a flexible sheet; None for any other shape."""
    chain: CableChain | None = None
    """Links of a cable; None for any other shape."""
    heap: GrainHeap | None = None
    """Column of grains; None for any other shape."""


def frame_at(
    origin: ArrayLike, *, z: tuple[float, float, float] = (0, 0, 1), x: tuple[float, float, float] = (1, 0, 0)
) -> FloatArray:
    """Return a frame (4, 4) with an origin [m] and a z axis; its x axis is as near to a direction as possible."""
    up = np.array(z, dtype=np.float64) / np.linalg.norm(z)
    side = np.array(x, dtype=np.float64) - up * (up @ x)
    if np.linalg.norm(side) < 1e-6:
        side = np.cross(up, [0.0, 0.0, 1.0] if abs(up[2]) < 0.9 else [0.0, 1.0, 0.0])
    side /= np.linalg.norm(side)
    frame = np.eye(4)
    frame[:3, :3] = np.column_stack([side, np.cross(up, side), up])
    frame[:3, 3] = origin
    return frame


def smooth_normals(
    vertices: FloatArray, faces: IndexArray, uvs: FloatArray, crease: float
) -> tuple[FloatArray, IndexArray, FloatArray, FloatArray]:
    """Split vertices at creases, and give each a normal.

    Args:
        vertices: (n, 3) [m]; equal positions share normals, so that texture seams are not visible.
        faces: (m, 3) triangles.
        uvs: (n, 2) texture coordinates.
        crease: Angle above which adjacent faces get separate normals [rad].

    Returns:
        Vertices, faces, normals and uvs of the split mesh.
    """
    _, point = np.unique(np.round(vertices * 1e6).astype(np.int64), axis=0, return_inverse=True)
    point = point.reshape(-1)
    cross = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    unit = cross / np.maximum(np.linalg.norm(cross, axis=1, keepdims=True), 1e-18)
    corner_point = point[faces].reshape(-1)
    corner_face = np.repeat(np.arange(len(faces)), 3)
    normals = np.zeros((len(corner_point), 3))
    order = np.argsort(corner_point, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(corner_point[order]) > 0])
    cosine = np.cos(crease)
    for corners in np.split(order, starts[1:]):
        around = corner_face[corners]
        if len(around) > _MOST_AROUND:
            normals[corners] = _smooth_groups(unit[around], cross[around], cosine)
            continue
        alike = unit[around] @ unit[around].T >= cosine
        normals[corners] = alike @ cross[around]
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-18)
    key = np.column_stack([faces.reshape(-1), np.round(normals * 1e4).astype(np.int64)])
    _, first, index = np.unique(key, axis=0, return_index=True, return_inverse=True)
    kept = faces.reshape(-1)[first]
    return vertices[kept], index.reshape(-1, 3).astype(np.int32), normals[first], uvs[kept]


def _smooth_groups(unit: FloatArray, cross: FloatArray, cosine: float) -> FloatArray:
    """Return the sums (n, 3) of cross products of faces with similar normals, for faces grouped by their normals."""
    cells = np.round(unit / _ALIKE).astype(np.int64)
    _, first, group = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    total = np.column_stack([np.bincount(group, weights=cross[:, axis]) for axis in range(3)])
    alike = (unit[first] @ unit[first].T >= cosine).astype(np.float64)
    return (alike @ total)[group]


def drop_slivers(vertices: FloatArray, faces: IndexArray) -> IndexArray:
    """Remove faces without area, such as those at the pole of a surface of revolution.

    Args:
        vertices: (N, 3) [m].
        faces: (M, 3) rows of vertices.

    Returns:
        (K, 3) remaining faces, K <= M.
    """
    cross = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    return faces[np.linalg.norm(cross, axis=1) > 1e-10]
