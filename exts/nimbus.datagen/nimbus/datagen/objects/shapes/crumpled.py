"""Crumpled objects, such as paper balls: a sphere with planes and creases."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.files.quantities import Ratio
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.shapes.contact import Piece, convex_hull, limited_hull
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion

_SHEET = 0.12
"""Width of the part of the sheet that the texture shows [m]."""


class Crumpled(StrictModel):
    """Sheet pressed into a ball: a sphere with large planes cut off and small creases."""

    family: Literal["crumpled"]
    points: Annotated[int, Field(ge=40, le=700)] = 320
    planes: Annotated[int, Field(ge=6, le=60)] = 18
    creases: Ratio = Field(default=0.05, description="depth of small creases, as a fraction of the radius")

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build one variant that fills a box of the given size [m]."""
        directions = _even_directions(self.points, rng)
        faces = convex_hull(directions)[1]
        planes = _even_directions(self.planes, rng)
        offsets = rng.uniform(0.78, 1.0, self.planes)
        facing = directions @ planes.T
        radius = np.min(np.where(facing > 0.05, offsets / np.maximum(facing, 0.05), np.inf), axis=1)
        radius = np.minimum(radius, 1.12) * (1 - self.creases * rng.uniform(0, 1, self.points) ** 2)
        vertices = directions * radius[:, None]
        extent = vertices.max(axis=0) - vertices.min(axis=0)
        vertices = (vertices - (vertices.max(axis=0) + vertices.min(axis=0)) / 2) / extent * size
        split, split_faces, uvs = _lay_out(vertices, faces, rng)
        return Shape(
            vertices=split,
            faces=split_faces,
            uvs=uvs,
            crease=0.2,
            pieces=_wedges(vertices),
            regions={"sheet": TextureRegion(u=(0.0, 1.0), v=(0.0, 1.0), size=(_SHEET, _SHEET))},
        )


def _even_directions(count: int, rng: np.random.Generator) -> FloatArray:
    """Return evenly spread unit vectors with jitter."""
    index = np.arange(count) + 0.5
    polar, turn = np.arccos(1 - 2 * index / count), np.pi * (1 + 5**0.5) * index
    around = np.column_stack([np.cos(turn) * np.sin(polar), np.sin(turn) * np.sin(polar), np.cos(polar)])
    around += rng.normal(scale=0.55 / np.sqrt(count), size=around.shape)
    return around / np.linalg.norm(around, axis=1, keepdims=True)


def _lay_out(
    vertices: FloatArray, faces: IndexArray, rng: np.random.Generator
) -> tuple[FloatArray, IndexArray, FloatArray]:
    """Project every face onto one of the six sides of a box, so that the print is continuous within a side."""
    cross = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    axis = np.argmax(np.abs(cross), axis=1)
    side = axis * 2 + (cross[np.arange(len(faces)), axis] > 0)
    turns, shifts = rng.uniform(0, 2 * np.pi, 6), rng.uniform(0, 1, (6, 2))
    corners = vertices[faces]
    flat = np.stack([corners[np.arange(len(faces)), :, (axis + step) % 3] for step in (1, 2)], axis=-1) / _SHEET
    c, s = np.cos(turns)[side][:, None], np.sin(turns)[side][:, None]
    turned = np.stack([flat[..., 0] * c - flat[..., 1] * s, flat[..., 0] * s + flat[..., 1] * c], axis=-1)
    uvs = (turned + shifts[side][:, None]).reshape(-1, 2)
    return corners.reshape(-1, 3), np.arange(len(faces) * 3, dtype=np.int32).reshape(-1, 3), uvs


def _wedges(vertices: FloatArray) -> tuple[Piece, ...]:
    """Return eight overlapping wedges around the center; each is the hull of the surface in one octant."""
    pieces: list[Piece] = []
    margin = 0.1 * np.ptp(vertices, axis=0)
    for signs in np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T:
        mine = vertices[(vertices * signs > -margin).all(axis=1)]
        pieces.append(limited_hull(np.vstack([mine, np.zeros(3)])))
    return tuple(pieces)
