"""Rings and arcs: a tube bent in a plane, such as hoops, handles of mugs and baskets, and hooks."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.files.quantities import Metres, Radians, Ratio
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.shapes.contact import convex_hull
from nimbus.datagen.objects.shapes.profile import outline
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion, frame_at

_CONTACT_POINTS = 8


class Ring(StrictModel):
    """Tube around z. Width and depth of the size are the outer extent of the whole ring; its height is the tube's.

    A whole ring has a frame and a cavity named ``hole``.
    """

    family: Literal["ring"]
    thickness: Annotated[Metres, Field(gt=0)] = Field(description="radial thickness of the tube")
    arc: tuple[Radians, Radians] = Field(
        default=(0.0, 2 * np.pi), description="first and last angle, from +x towards +y; by default a whole ring"
    )
    roundness: Ratio = Field(
        default=1.0, ge=0, le=1, description="roundness of the section: 0 for a rectangle, 1 for an ellipse"
    )
    segments: Annotated[int, Field(ge=6, le=64)] = Field(default=32, description="number of outlines along the arc")
    pieces: Annotated[int, Field(ge=2, le=24)] = Field(default=12, description="number of convex pieces along the arc")

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build a ring, or an arc of one.

        Args:
            size: (3,) outer width and depth of the whole ring, and height of the tube [m].
            rng: Unused: all rings of a size are equal.
        """
        width, depth, height = (float(extent) for extent in size)
        tube = min(self.thickness, 0.49 * min(width, depth))
        whole = abs(self.arc[1] - self.arc[0]) >= 2 * np.pi - 1e-6
        half = np.array([width, depth]) / 2 - tube / 2
        rings = _sweep(half, tube, height, self.roundness, np.linspace(*self.arc, self.segments + 1), points=12)
        felt = _sweep(half, tube, height, self.roundness, np.linspace(*self.arc, self.pieces + 1), _CONTACT_POINTS)
        vertices, faces, uvs = _skin(rings, capped=not whole)
        room = (half - tube / 2) / np.sqrt(2)
        hole = np.array([[*-room, -height / 2], [*room, height / 2]])
        length = float(np.linalg.norm(np.diff(rings.mean(axis=1), axis=0), axis=1).sum())
        return Shape(
            vertices=vertices,
            faces=faces,
            uvs=uvs,
            crease=0.9,
            pieces=tuple(convex_hull(np.vstack(pair)) for pair in zip(felt[:-1], felt[1:], strict=True)),
            frames={"hole": frame_at((0, 0, height / 2))} if whole else {},
            cavities={"hole": hole} if whole else {},
            regions={"tube": TextureRegion(u=(0.0, 1.0), v=(0.0, 1.0), size=(length, 2 * (tube + height)))},
        )


def _sweep(
    half: FloatArray, tube: float, height: float, roundness: float, angles: FloatArray, points: int
) -> FloatArray:
    """Return (A, points, 3) outlines of the tube at each angle."""
    flat = outline(np.array([tube / 2]), np.array([height / 2]), np.array([roundness]), points)[0]
    radial = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    rings = np.zeros((len(angles), points, 3))
    rings[..., :2] = radial[:, None] * half + radial[:, None] * flat[None, :, :1]
    rings[..., 2] = flat[None, :, 1]
    return rings


def _skin(rings: FloatArray, *, capped: bool) -> tuple[FloatArray, IndexArray, FloatArray]:
    count, around = rings.shape[:2]
    closed = np.concatenate([rings, rings[:, :1]], axis=1)
    u, v = np.meshgrid(np.linspace(0, 1, count), np.linspace(0, 1, around + 1), indexing="ij")
    corner = (np.arange(count - 1)[:, None] * (around + 1) + np.arange(around)[None, :]).ravel()
    after = corner + around + 1
    faces = np.vstack([np.column_stack([corner, after, after + 1]), np.column_stack([corner, after + 1, corner + 1])])
    vertices, uvs = closed.reshape(-1, 3), np.column_stack([u.ravel(), v.ravel()])
    if capped:
        for ring, share, backwards in ((rings[0], 0.0, False), (rings[-1], 1.0, True)):
            fan = np.column_stack([np.full(around - 2, 0), np.arange(1, around - 1), np.arange(2, around)])
            faces = np.vstack([faces, (fan[:, ::-1] if backwards else fan) + len(vertices)])
            vertices = np.vstack([vertices, ring])
            uvs = np.vstack([uvs, np.column_stack([np.full(around, share), np.linspace(0, 1, around)])])
    a, b, c = (vertices[faces[:, index]] for index in range(3))
    if np.einsum("ij,ij->", a, np.cross(b, c)) < 0:
        faces = faces[:, ::-1]
    return vertices, faces.astype(np.int32), uvs
