"""Rigid body of boxes, rods and rings: a mesh with its texture map, and convex contact pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.geometry.hulls import qhull
from nimbus.datagen.objects.shapes.contact import Piece, convex_hull
from nimbus.datagen.objects.shapes.shape import TextureRegion

CREASE = 0.6
"""Angle above which edges stay sharp when shaded [rad]; bevels are above it, the sides of rods below."""
_BEVEL = 0.0012
_COLUMNS = 3
_INSET = 0.06
"""Margin around the image of a region, as a fraction of the region, so that neighboring regions do not bleed in."""


class TextureMapping:
    """Regions of a texture by name, laid out in a grid.

    Args:
        sizes: Width and height on the surface [m] by name.
    """

    def __init__(self, sizes: Mapping[str, tuple[float, float]]) -> None:
        rows = -(-len(sizes) // _COLUMNS)
        self.regions = {}
        for place, (name, size) in enumerate(sizes.items()):
            row, column = divmod(place, _COLUMNS)
            u, v = (column / _COLUMNS, (column + 1) / _COLUMNS), (row / rows, (row + 1) / rows)
            self.regions[name] = TextureRegion(u=u, v=v, size=size)

    def map(self, name: str, shares: FloatArray) -> FloatArray:
        """Convert points (n, 2) of a region, as fractions of its size, to texture coordinates (n, 2)."""
        region = self.regions[name]
        low, high = np.array([region.u[0], region.v[0]]), np.array([region.u[1], region.v[1]])
        return low + (_INSET + (1 - 2 * _INSET) * shares) * (high - low)


@dataclass(frozen=True)
class SolidSurface:
    """Triangles with unshared corners."""

    vertices: FloatArray
    faces: IndexArray
    uvs: FloatArray


class Solids:
    """Solids of one rigid body in a common frame [m]."""

    def __init__(self, looks: TextureMapping) -> None:
        self._looks = looks
        self._surfaces: list[SolidSurface] = []
        self.pieces: list[Piece] = []

    def box(self, lower: ArrayLike, upper: ArrayLike, look: str, *, bevel: float = _BEVEL, touch: bool = True) -> None:
        """Add a box between two corners, along the axes."""
        low, high = np.minimum(lower, upper), np.maximum(lower, upper)
        bevel = min(bevel, 0.3 * float((high - low).min()))
        corners = np.array(np.meshgrid(*zip(low, high, strict=True), indexing="ij")).reshape(3, -1).T
        inward = np.sign((low + high) / 2 - corners) * bevel
        points = np.vstack([corners + inward * kept for kept in 1 - np.eye(3)])
        self.hull(points, look, contact=corners if touch else None)

    def rod(
        self, start: ArrayLike, end: ArrayLike, radius: float, look: str, *, sides: int = 16, touch: bool = True
    ) -> None:
        """Add a cylinder from one point to another."""
        points = ring_points(start, end, radius, sides)
        self.hull(points, look, contact=ring_points(start, end, radius, min(sides, 14)) if touch else None)

    def cone(self, start: ArrayLike, end: ArrayLike, radii: tuple[float, float], look: str, *, sides: int = 20) -> None:
        """Add a cylinder with a different radius at each end."""
        both = [ring_points(start, end, radius, sides) for radius in radii]
        few = [ring_points(start, end, radius, 14) for radius in radii]
        points, contact = (np.vstack([one[: len(one) // 2], other[len(other) // 2 :]]) for one, other in (both, few))
        self.hull(points, look, contact=contact)

    def wheel(self, center: ArrayLike, radius: float, thickness: float, look: str, *, segments: int = 24) -> None:
        """Add a torus with a vertical axis."""
        angles = np.arange(segments + 1) * 2 * np.pi / segments
        middle = np.asarray(center) + radius * np.column_stack([np.cos(angles), np.sin(angles), 0 * angles])
        around = np.arange(8) * 2 * np.pi / 8
        rings = []
        for place, angle in zip(middle, angles, strict=True):
            out = np.array([np.cos(angle), np.sin(angle), 0.0])
            turn = np.cos(around)[:, None] * out + np.sin(around)[:, None] * (0.0, 0.0, 1.0)
            rings.append(place + turn * thickness / 2)
        for one, other in zip(rings[:-1], rings[1:], strict=True):
            self.pieces.append(convex_hull(np.vstack([one, other])))
        quads = [
            (one[i], one[(i + 1) % 8], other[(i + 1) % 8], other[i])
            for one, other in zip(rings[:-1], rings[1:], strict=True)
            for i in range(8)
        ]
        corners = np.array([(a, c, b, a, d, c) for a, b, c, d in quads]).reshape(-1, 3)
        self._add(corners, look)

    def hull(self, points: FloatArray, look: str, *, contact: FloatArray | None) -> None:
        """Add a convex solid; ``contact`` (n, 3) are points of its contact hull, None for a purely visual solid."""
        hull = qhull(points)
        corners = points[hull.simplices]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        inward = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0
        corners[inward] = corners[inward][:, ::-1]
        self._add(corners.reshape(-1, 3), look)
        if contact is not None:
            self.pieces.append(convex_hull(contact))

    def _add(self, corners: FloatArray, look: str) -> None:
        """Add triangles, three rows of corners each; textures are projected along the axis that a triangle faces."""
        low, high = corners.min(axis=0), corners.max(axis=0)
        shares = (corners - low) / np.maximum(high - low, 1e-9)
        triangles = corners.reshape(-1, 3, 3)
        normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        facing = np.repeat(np.abs(normals).argmax(axis=1), 3)
        across = np.where(facing == 1, shares[:, 0], shares[:, 1])
        up = np.where(facing == 2, shares[:, 0], shares[:, 2])
        # In the images, +y is to the left as seen from the front (from -x), and +x is up as seen from above.
        uvs = self._looks.map(look, np.column_stack([1 - across, up]))
        self._surfaces.append(SolidSurface(corners, np.arange(len(corners), dtype=np.int32).reshape(-1, 3), uvs))

    @property
    def surface(self) -> SolidSurface:
        """Return all solids as one mesh."""
        return join_surfaces(self._surfaces)

    @property
    def volume(self) -> float:
        """Return the total volume of the pieces, with overlaps counted twice [m³]."""
        return sum(float(qhull(vertices).volume) for vertices, _ in self.pieces)


def join_surfaces(surfaces: Iterable[SolidSurface]) -> SolidSurface:
    """Merge several meshes."""
    surfaces = list(surfaces)
    offsets = np.cumsum([0] + [len(surface.vertices) for surface in surfaces[:-1]])
    return SolidSurface(
        np.vstack([surface.vertices for surface in surfaces]),
        np.vstack([surface.faces + offset for surface, offset in zip(surfaces, offsets, strict=True)]).astype(np.int32),
        np.vstack([surface.uvs for surface in surfaces]),
    )


def ring_points(start: ArrayLike, end: ArrayLike, radius: float, sides: int) -> FloatArray:
    """Return (2 sides, 3) corners of a prism around an axis: first those at the start, then those at the end."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    axis = (end - start) / np.linalg.norm(end - start)
    across = np.cross(axis, (0.0, 0.0, 1.0) if abs(axis[2]) < 0.9 else (1.0, 0.0, 0.0))
    across /= np.linalg.norm(across)
    angles = (np.arange(sides) + 0.5) * 2 * np.pi / sides
    circle = radius * (np.cos(angles)[:, None] * across + np.sin(angles)[:, None] * np.cross(axis, across))
    return np.vstack([start + circle, end + circle])
