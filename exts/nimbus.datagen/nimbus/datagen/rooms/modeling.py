"""Modeling of furnishings from boxes, rods, solids of revolution and prisms; each has one material."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray, IndexArray, IntArray
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle

Color = tuple[float, float, float]
"""sRGB, 0 to 1."""
Material = str | Color
"""Slot of the room's look, such as ``wood``, or a fixed color."""

_QUAD = np.array([[0, 1, 2], [0, 2, 3]])
_SIDES = {
    "left": (4, 6, 2, 0),
    "right": (3, 7, 5, 1),
    "back": (1, 5, 4, 0),
    "front": (6, 7, 3, 2),
    "bottom": (2, 3, 1, 0),
    "top": (5, 7, 6, 4),
}
"""Corners of a box's sides, counter-clockwise from outside; bit 0 of a corner is x, bit 1 y, bit 2 z."""


_BITS = np.arange(8)[:, None] >> np.arange(3) & 1 == 1
_LIT = np.array([0.0, np.sin(0.42), np.cos(0.42)])
"""Unit normal that marks emissive surfaces; they look emissive to cameras up to 24 degrees below them."""


@dataclass(frozen=True)
class Patch:
    """Triangles of one material, in the frame of the furnishing [m]."""

    material: Material
    vertices: FloatArray
    """(n, 3)"""
    normals: FloatArray
    """(n, 3) unit normals."""
    faces: IndexArray
    """(m, 3) vertices of triangles, counter-clockwise from outside."""


class Modeler:
    """Collector of the patches of one furnishing.

    The origin of its frame is the center of the footprint on the floor; x is along the width, y to the front, z up.
    """

    def __init__(self, frame: FloatArray | None = None, patches: list[Patch] | None = None) -> None:
        self._frame = np.eye(4) if frame is None else frame
        self.patches: list[Patch] = [] if patches is None else patches

    def at(
        self, x: float = 0.0, y: float = 0.0, z: float = 0.0, *, yaw: float = 0.0, pitch: float = 0.0, roll: float = 0.0
    ) -> Modeler:
        """Return a modeler for the same furnishing in a frame moved [m] and then rotated about z, x and y [rad]."""
        turned = make_transform((x, y, z), quat_from_axis_angle((0, 0, 1), yaw))
        for axis, angle in (((1, 0, 0), pitch), ((0, 1, 0), roll)):
            turned = turned @ make_transform((0, 0, 0), quat_from_axis_angle(axis, angle))
        return Modeler(self._frame @ turned, self.patches)

    def box(self, low: ArrayLike, high: ArrayLike, material: Material, *, omit: Sequence[str] = ()) -> None:
        """Add a box between two corners; sides that are never visible may be omitted.

        Args:
            low: (3,) lower corner [m].
            high: (3,) upper corner [m].
            material: Material of all sides.
            omit: Sides to omit, of ``left``, ``right``, ``back``, ``front``, ``bottom``, ``top``.
        """
        corners = np.where(_BITS, np.maximum(low, high), np.minimum(low, high))
        sides = [side for name, side in _SIDES.items() if name not in omit]
        self.quads(corners[sides], material)

    def block(self, size: Sequence[float], material: Material, *, omit: Sequence[str] = ("bottom",)) -> None:
        """Add a box (width, depth, height) [m] that stands on the origin."""
        width, depth, height = size
        self.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, height), material, omit=omit)

    def quads(self, corners: FloatArray, material: Material) -> None:
        """Add flat quadrilaterals (n, 4, 3) [m], counter-clockwise from outside."""
        (ax, ay, az), (bx, by, bz) = (corners[:, 1:3] - corners[:, :1]).transpose(1, 2, 0)
        # np.cross gives the same bits but takes four times as long: a tenth of the time of a generated home.
        normals = np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=1)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        faces = (_QUAD + 4 * np.arange(len(corners))[:, None, None]).reshape(-1, 3)
        self._add(material, corners.reshape(-1, 3), np.repeat(normals, 4, axis=0), faces)

    def lit_panel(self, low: Sequence[float], high: Sequence[float], material: Material) -> None:
        """Add an upright emissive rectangle, about as bright as a sunlit floor.

        Its normals point up and slightly to the front; this marks an emissive surface, such as daylight in a window.

        Args:
            low: Lower corner on the left [m].
            high: Upper corner on the right, at the same y [m].
            material: Material of the panel.
        """
        (x0, y, z0), (x1, _, z1) = low, high
        corners = np.array([(x1, y, z0), (x0, y, z0), (x0, y, z1), (x1, y, z1)])
        self._add(material, corners, np.tile(_LIT, (4, 1)), _QUAD)

    def turned(self, profile: Iterable[tuple[float, float]], material: Material, *, sides: int = 12) -> None:
        """Add a solid of revolution about z.

        Args:
            profile: Radius and height [m] of rings, upward along the outside; a radius of 0 closes the solid.
            material: Material of the whole surface.
            sides: Number of sides around the axis.
        """
        rings = np.array(list(profile))
        angles = np.arange(sides + 1) * 2 * np.pi / sides
        around = np.column_stack([np.cos(angles), np.sin(angles)])
        low, high = rings[:-1, None], rings[1:, None]
        step = (high - low) / np.maximum(np.linalg.norm(high - low, axis=-1, keepdims=True), 1e-9)
        count = len(rings) - 1
        ends = [
            np.concatenate([ring[..., :1] * around, np.repeat(ring[..., 1:], sides + 1, axis=1)], axis=-1)
            for ring in (low, high)
        ]
        outward = np.concatenate([step[..., 1:] * around, np.repeat(-step[..., :1], sides + 1, axis=1)], axis=-1)
        first = np.arange(sides)
        second = first + sides + 1
        lower, upper = (
            np.column_stack(corners) for corners in ((first, first + 1, second + 1), (first, second + 1, second))
        )
        offsets = 2 * (sides + 1) * np.arange(count)[:, None, None]
        faces = [lower + offsets[rings[:-1, 0] > 0], upper + offsets[rings[1:, 0] > 0]]
        vertices = np.concatenate(ends, axis=1).reshape(-1, 3)
        normals = np.concatenate([outward, outward], axis=1).reshape(-1, 3)
        self._add(material, vertices, normals, np.concatenate([one.reshape(-1, 3) for one in faces]))

    def rod(self, start: ArrayLike, end: ArrayLike, radius: float, material: Material, *, sides: int = 8) -> None:
        """Add a closed cylinder from one point to another [m]."""
        start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
        length = float(np.linalg.norm(end - start))
        up = (end - start) / length
        side = np.cross(up, (0.0, 0.0, 1.0) if abs(up[2]) < 0.9 else (1.0, 0.0, 0.0))
        side /= np.linalg.norm(side)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = np.column_stack([side, np.cross(up, side), up]), start
        rings = [(0.0, 0.0), (radius, 0.0), (radius, length), (0.0, length)]
        Modeler(self._frame @ pose, self.patches).turned(rings, material, sides=sides)

    def prism(self, outline: ArrayLike, low: float, high: float, material: Material) -> None:
        """Add a prism between two values of x [m]; its section (n, 2) in y and z is convex, counter-clockwise [m]."""
        points = np.asarray(outline, dtype=float)
        ends = [np.column_stack([np.full(len(points), x), points]) for x in (low, high)]
        after = np.roll(np.arange(len(points)), -1)
        self.quads(np.stack([ends[0], ends[1], ends[1][after], ends[0][after]], axis=1)[:, ::-1], material)
        fan = np.array([(0, place, place + 1) for place in range(1, len(points) - 1)])
        for end, faces, x in ((ends[0], fan[:, ::-1], -1.0), (ends[1], fan, 1.0)):
            self._add(material, end, np.tile((x, 0.0, 0.0), (len(points), 1)), faces)

    def _add(self, material: Material, vertices: FloatArray, normals: FloatArray, faces: IntArray) -> None:
        turn, offset = self._frame[:3, :3], self._frame[:3, 3]
        placed = Patch(material, vertices @ turn.T + offset, normals @ turn.T, faces.astype(np.int32))
        self.patches.append(placed)


def placed(patches: Iterable[Patch], frame: FloatArray) -> list[Patch]:
    """Transform patches from a frame (4, 4) to the room."""
    turn, offset = frame[:3, :3], frame[:3, 3]
    return [
        replace(patch, vertices=patch.vertices @ turn.T + offset, normals=patch.normals @ turn.T) for patch in patches
    ]


def bounds(patches: Iterable[Patch]) -> FloatArray:
    """Return the lower and upper corner (2, 3) of patches [m]."""
    points = np.concatenate([patch.vertices for patch in patches])
    return np.stack([points.min(axis=0), points.max(axis=0)])
