"""Sphere covers of the simulator's convex shapes, from which cuRobo's robot is built."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, KDTree

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco

TOLERANCE = 0.008
"""Largest protrusion of a sphere from its shape when the number of spheres suffices [m]."""

_ROUND = 24
"""Number of corners of the polygon that replaces a circle."""


@dataclass(frozen=True)
class Hull:
    """Convex shape in its own frame."""

    vertices: FloatArray
    """(V, 3) corners [m]."""
    faces: NDArray[np.int64]
    """(F, 3) corners of each face, wound outward."""
    planes: FloatArray
    """(F, 4) outward unit normals and offsets; their signed distance is negative inside [m]."""

    @classmethod
    def of(cls, points: FloatArray) -> Hull:
        """Build the hull of points (N, 3) [m]; flat ones get a thickness of 0.1 mm."""
        return _hull(np.ascontiguousarray(points, dtype=float).tobytes())

    @classmethod
    def _of(cls, points: FloatArray) -> Hull:
        try:
            hull = ConvexHull(points)
        except Exception as error:
            if type(error).__name__ != "QhullError":
                raise
            nudge = 5e-5 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
            hull = ConvexHull((points[:, None] + nudge).reshape(-1, 3))
        used, corner = np.unique(hull.simplices, return_inverse=True)
        vertices, faces = hull.points[used], corner.reshape(-1, 3)
        a, b, c = (vertices[faces[:, index]] for index in range(3))
        inward = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0
        faces[inward] = faces[inward][:, ::-1]
        return cls(vertices=vertices, faces=faces, planes=hull.equations)

    def depth(self, points: FloatArray) -> FloatArray:
        """Return the depths (N,) of points below the surface [m]; outside they are negative, and bound the distance."""
        return -(points @ self.planes[:, :3].T + self.planes[:, 3]).max(axis=1)


@lru_cache(maxsize=512)
def _hull(points: bytes) -> Hull:
    return Hull._of(np.frombuffer(points).reshape(-1, 3))


def geom_points(model: mujoco.MjModel, geom: int) -> FloatArray:
    """Return points (N, 3) whose convex hull covers a geom, in its frame [m].

    Raises:
        ValueError: The geom has no hull of a finite size.
    """
    kind, size = mujoco.mjtGeom(model.geom_type[geom]), model.geom_size[geom]
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first = model.mesh_vertadr[mesh]
        return np.array(model.mesh_vert[first : first + model.mesh_vertnum[mesh]], dtype=float)
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return size * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return np.vstack([_ring(size[0], height) for height in (-size[1], size[1])])
    if kind in (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_ELLIPSOID):
        return _ball() * (size if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID else size[0])
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return np.vstack([_ball() * size[0] + [0, 0, height] for height in (-size[1], size[1])])
    raise ValueError(f"a {kind.name.removeprefix('mjGEOM_').lower()} has no hull")


def cover(points: FloatArray, *, limit: int = 36, tolerance: float = TOLERANCE) -> FloatArray:
    """Return (N, 4) centers and radii of spheres that cover the hull of some points [m], the most useful first.

    The tolerance is increased when more than ``limit`` spheres would be needed.
    """
    rounded = np.ascontiguousarray(np.round(points, 6)).tobytes()
    spheres, is_covered = _cover(rounded, limit, tolerance)
    while not is_covered:
        tolerance *= 1.25
        spheres, is_covered = _cover(rounded, limit, tolerance)
    return np.array(spheres)


@lru_cache(maxsize=512)
def _cover(corners: bytes, limit: int, tolerance: float) -> tuple[tuple[tuple[float, ...], ...], bool]:
    """Cover greedily with inscribed spheres grown by the tolerance, each covering the most remaining surface."""
    hull = Hull.of(np.frombuffer(corners).reshape(-1, 3))
    extent = np.ptp(hull.vertices, axis=0)
    spacing = max(tolerance, float(np.cbrt(np.prod(np.maximum(extent, tolerance))) / 9))
    bare = _surface(hull, spacing)
    axes = [np.linspace(low, high, max(3, int((high - low) / spacing) + 1)) for low, high in _bounds(hull)]
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    # Near sharp corners only small spheres fit.
    centers = np.vstack([centers, bare + 0.05 * (hull.vertices.mean(axis=0) - bare), bare])
    depth = hull.depth(centers)
    centers, depth = centers[depth > -1e-7], np.maximum(depth[depth > -1e-7], 0.0)
    radii = depth + tolerance
    covers = KDTree(bare).query_ball_point(centers, radii)
    useful = np.array([len(points) for points in covers])
    covered_by: list[list[int]] = [[] for _ in bare]
    for center, points in enumerate(covers):
        for point in points:
            covered_by[point].append(center)
    chosen: list[tuple[float, ...]] = []
    left = np.ones(len(bare), dtype=bool)
    while left.any() and len(chosen) < limit:
        best = int(np.argmax(useful))
        chosen.append((*map(float, centers[best]), float(radii[best])))
        for point in covers[best]:
            if left[point]:
                left[point] = False
                # Counts are updated instead of recomputed: greedy set cover in time linear in the number of covers.
                useful[covered_by[point]] -= 1
    return tuple(chosen), not left.any()


def _bounds(hull: Hull) -> FloatArray:
    return np.stack([hull.vertices.min(axis=0), hull.vertices.max(axis=0)], axis=1)


def _surface(hull: Hull, spacing: float) -> FloatArray:
    """Sample points on the faces, about a spacing apart [m]."""
    points = [hull.vertices]
    for face in hull.vertices[hull.faces]:
        edge = max(np.linalg.norm(face - np.roll(face, 1, axis=0), axis=1))
        count = int(np.ceil(edge / spacing))
        i, j = np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij")
        inside = i + j <= count
        u, v = i[inside] / count, j[inside] / count
        points.append(face[0] + u[:, None] * (face[1] - face[0]) + v[:, None] * (face[2] - face[0]))
    everything = np.vstack(points)
    _, first = np.unique(np.round(everything / (0.7 * spacing)), axis=0, return_index=True)
    return everything[np.sort(first)]


def _ring(radius: float, height: float) -> FloatArray:
    angle = 2 * np.pi * np.arange(_ROUND) / _ROUND
    # The polygon circumscribes the circle, so that the shape lies inside.
    outer = radius / np.cos(np.pi / _ROUND)
    return np.column_stack([outer * np.cos(angle), outer * np.sin(angle), np.full(_ROUND, height)])


def _ball() -> FloatArray:
    """Return points slightly outside the unit sphere."""
    rings = [
        np.column_stack([np.cos(latitude) * _ring(1.0, 0.0)[:, :2], np.full(_ROUND, np.sin(latitude))])
        for latitude in np.linspace(-np.pi / 2, np.pi / 2, _ROUND // 2 + 1)
    ]
    return np.vstack(rings) / np.cos(np.pi / _ROUND)
