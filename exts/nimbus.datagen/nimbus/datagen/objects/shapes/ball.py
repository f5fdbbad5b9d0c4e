"""Balls and beads: spheres in appearance and in contact geometry."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.shapes.contact import convex_hull
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion, drop_slivers

_GOLDEN = (1 + 5**0.5) / 2


class Ball(StrictModel):
    """Sphere; its diameter is the width of the size."""

    family: Literal["ball"]
    segments: Annotated[int, Field(ge=8, le=36, multiple_of=2)] = Field(
        default=20, description="number of points around the equator"
    )

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build a sphere.

        Args:
            size: (3,) width, depth and height [m]; only the width counts.
            rng: Unused: all balls of a size are equal.
        """
        radius, columns, rows = float(size[0]) / 2, self.segments, self.segments // 2
        u, v = np.meshgrid(np.linspace(0, 1, columns + 1), np.linspace(0, 1, rows + 1))
        turn, polar = 2 * np.pi * u, np.pi * (v - 0.5)
        points = np.stack([np.cos(turn) * np.cos(polar), np.sin(turn) * np.cos(polar), np.sin(polar)], axis=-1)
        vertices = radius * points.reshape(-1, 3)
        corner = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)[None, :]).ravel()
        above = corner + columns + 1
        faces = np.vstack(
            [np.column_stack([corner, corner + 1, above + 1]), np.column_stack([corner, above + 1, above])]
        )
        return Shape(
            vertices=vertices,
            faces=drop_slivers(vertices, faces.astype(np.int32)),
            uvs=np.column_stack([u.ravel(), v.ravel()]),
            crease=3.0,
            pieces=(convex_hull(radius * even_points()),),
            regions={"surface": TextureRegion(u=(0.0, 1.0), v=(0.0, 1.0), size=(2 * np.pi * radius, np.pi * radius))},
            ball=radius,
        )


def even_points() -> FloatArray:
    """Return 32 points of the unit sphere: the corners of an icosahedron and of its dual dodecahedron."""
    one, golden = (0.0, 1.0, _GOLDEN), (0.0, 1 / _GOLDEN, _GOLDEN)
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    points = [signs]
    for corner in (one, golden):
        points += [np.unique(signs * np.roll(corner, turn), axis=0) for turn in range(3)]
    every = np.vstack(points)
    return every / np.linalg.norm(every, axis=1, keepdims=True)
