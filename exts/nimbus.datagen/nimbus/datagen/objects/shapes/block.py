"""Blocks: boxes with rounded edges, such as toy blocks, pages of a book, sponges, handles and boards."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.files.quantities import Metres
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.shapes.contact import convex_hull
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion

_MIDWAY = float(np.tan(np.pi / 8))
"""Position of a grid line that halves a rounded edge's angle, as a fraction of the radius."""
_SIDES = {
    "front": ((1, -1), (0.0, 0.25), (0.0, 0.5)),
    "right": ((0, 1), (0.25, 0.5), (0.0, 0.5)),
    "back": ((1, 1), (0.5, 0.75), (0.0, 0.5)),
    "left": ((0, -1), (0.75, 1.0), (0.0, 0.5)),
    "top": ((2, 1), (0.0, 0.5), (0.5, 1.0)),
    "bottom": ((2, -1), (0.5, 1.0), (0.5, 1.0)),
}
"""Axis and sign of each side's normal, and its window of the texture."""


class Block(StrictModel):
    """Box; its regions are ``front`` (-y), ``right``, ``back``, ``left``, ``sides``, ``top`` and ``bottom``."""

    family: Literal["block"]
    rounding: Annotated[Metres, Field(ge=0)] = Field(default=0.0015, description="radius of the edges")

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build a box.

        Args:
            size: (3,) width, depth and height [m].
            rng: Unused: all boxes of a size are equal.
        """
        half = np.asarray(size) / 2
        radius = min(self.rounding, 0.49 * float(half.min()))
        meshes = [_side(half, radius, *place) for place in _SIDES.values()]
        counts = np.cumsum([0] + [len(vertices) for vertices, _, _ in meshes])
        return Shape(
            vertices=np.vstack([vertices for vertices, _, _ in meshes]),
            faces=np.vstack([faces + first for (_, faces, _), first in zip(meshes, counts, strict=False)]),
            uvs=np.vstack([uvs for _, _, uvs in meshes]),
            crease=0.8,
            pieces=(convex_hull(chamfer(half, radius)),),
            regions=_regions(np.asarray(size)),
        )


def chamfer(half: FloatArray, radius: float) -> FloatArray:
    """Return the corners of a box whose edges are cut off where their rounding begins.

    Args:
        half: (3,) half width, half depth and half height [m].
        radius: Radius of the rounding [m].

    Returns:
        (24, 3) corners relative to the center of the box [m]; (8, 3) for sharp edges.
    """
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    if radius < 1e-5:
        return signs * half
    return np.vstack([signs * (half - radius * (np.arange(3) != axis)) for axis in range(3)])


def _side(
    half: FloatArray, radius: float, facing: tuple[int, int], u: tuple[float, float], v: tuple[float, float]
) -> tuple[FloatArray, IndexArray, FloatArray]:
    """Build one side of the box as a grid that bends around its edges."""
    axis, sign = facing
    across, along = (1, 2) if axis == 0 else (0, 2) if axis == 1 else (0, 1)
    one, two = _lines(half[across], radius), _lines(half[along], radius)
    grid = np.zeros((len(two), len(one), 3))
    grid[..., axis] = sign * half[axis]
    grid[..., across], grid[..., along] = one[None, :], two[:, None]
    core = np.clip(grid, radius - half, half - radius)
    out = grid - core
    if radius:
        out *= radius / np.linalg.norm(out, axis=-1, keepdims=True)
    leftward = (axis == 1 and sign > 0) or (axis == 0 and sign < 0) or (axis == 2 and sign < 0)
    shares = np.stack(np.broadcast_arrays((one / half[across] + 1)[None, :], (two / half[along] + 1)[:, None]), axis=-1)
    shares /= 2
    if leftward:
        shares[..., 0] = 1 - shares[..., 0]
    uvs = np.array([u[0], v[0]]) + shares * (u[1] - u[0], v[1] - v[0])
    rows, columns = len(two), len(one)
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None, :]).ravel()
    faces = np.vstack(
        [
            np.column_stack([corner, corner + 1, corner + columns + 1]),
            np.column_stack([corner, corner + columns + 1, corner + columns]),
        ]
    )
    outward = leftward if axis != 1 else sign > 0
    faces = faces[:, ::-1] if outward else faces
    return (core + out).reshape(-1, 3), faces.astype(np.int32), uvs.reshape(-1, 2)


def _lines(half: float, radius: float) -> FloatArray:
    if not radius:
        return np.array([-half, half])
    flat = half - radius
    return np.array([-half, -flat - radius * _MIDWAY, -flat, flat, flat + radius * _MIDWAY, half])


def _regions(size: FloatArray) -> dict[str, TextureRegion]:
    regions = {}
    for name, ((axis, _), u, v) in _SIDES.items():
        extent = np.delete(size, axis)
        regions[name] = TextureRegion(u=u, v=v, size=(float(extent[0]), float(extent[1])))
    girth = 2 * float(size[0] + size[1])
    return {"sides": TextureRegion(u=(0.0, 1.0), v=(0.0, 0.5), size=(girth, float(size[2]))), **regions}
