"""Peels: strips of skin that hang from a stem and spread on the ground."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.files.quantities import Metres, Range
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.shapes.contact import pieces_of_rings
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion, drop_slivers

_ACROSS = np.linspace(-1, 1, 5)
_STEM_SHARE = 0.12
"""Fraction of the texture's width for the stem."""


class Peel(StrictModel):
    """Strips around a stem. Width and depth of the size are the spread; its height is that of the stem's top."""

    family: Literal["peel"]
    strips: Range[Annotated[int, Field(ge=3, le=4)]] = (3, 4)
    strip_width: Range[Metres] = (0.024, 0.032)
    thickness: Metres = 0.004
    stem_radius: Range[Metres] = (0.0055, 0.007)

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build one variant.

        Args:
            size: (3,) spread along x and y (only x counts), and height of the stem's top [m].
            rng: Random stream of the variant.
        """
        count = int(rng.integers(self.strips[0], self.strips[1] + 1))
        start = rng.uniform(0, 2 * np.pi)
        parts, pieces = [], []
        for index in range(count):
            angle = start + 2 * np.pi * (index + rng.uniform(-0.13, 0.13)) / count
            reach = size[0] / 2 * rng.uniform(0.8, 1.0)
            rings = self._strip(angle, reach, size[2], rng)
            parts.append(_tube(rings, (_STEM_SHARE, 1.0)))
            pieces += pieces_of_rings(rings, tolerance=0.0012, max_pieces=3 if count == 3 else 2)
        stem = _stem(size[2], rng.uniform(*self.stem_radius), rng)
        parts.append(_tube(stem, (0.0, _STEM_SHARE)))
        pieces += pieces_of_rings(stem, tolerance=0.001, max_pieces=2)
        offsets = np.cumsum([0] + [len(vertices) for vertices, _, _ in parts[:-1]])
        vertices = np.vstack([vertices for vertices, _, _ in parts])
        faces = np.vstack([faces + offset for (_, faces, _), offset in zip(parts, offsets, strict=True)])
        return Shape(
            vertices=vertices,
            faces=drop_slivers(vertices, faces.astype(np.int32)),
            uvs=np.vstack([uvs for _, _, uvs in parts]),
            crease=1.0,
            pieces=tuple(pieces),
            regions=_regions(float(np.mean(self.strip_width)), float(size[0] / 2)),
            keypoints={"stem": np.array([0.0, 0.0, size[2] * 0.9])},
        )

    def _strip(self, angle: float, reach: float, height: float, rng: np.random.Generator) -> FloatArray:
        """Return (K, 10, 3) outlines of a strip from the stem outward: five points on the skin, five on the inside."""
        share = np.linspace(0, 1, 11)
        lift = rng.uniform(0.0, 0.012)
        out = reach * np.interp(share, [0, 0.15, 0.4, 1], [0.04, 0.13, 0.42, 1])
        up = np.interp(
            share, [0, 0.12, 0.32, 0.5, 0.8, 1], [0.78 * height, 0.72 * height, 0.34 * height, 0.006, 0.003, lift]
        )
        curve = _smooth(np.column_stack([out, up]))
        tangent = np.gradient(curve, axis=0)
        tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
        normal = np.column_stack([-tangent[:, 1], tangent[:, 0]])
        half = rng.uniform(*self.strip_width) / 2 * np.interp(share, [0, 0.2, 0.5, 0.85, 1], [0.42, 0.75, 1, 0.7, 0.22])
        sway = rng.uniform(-0.25, 0.25) * reach * share**2
        camber = half * np.interp(share, [0, 0.4, 1], [0.4, 0.25, 0.12])
        side = np.r_[_ACROSS, _ACROSS[::-1]]
        sunk = np.r_[np.zeros(5), np.full(5, 1.0)] * self.thickness * np.where(np.abs(side) == 1, 0.6, 1.0)
        depth = -sunk[None, :] - camber[:, None] * side[None, :] ** 2
        radial = curve[:, :1] + normal[:, :1] * depth
        vertical = np.maximum(curve[:, 1:] + self.thickness + normal[:, 1:] * depth, 0.0006 * (1 + np.arange(10) % 3))
        lateral = half[:, None] * side[None, :] + sway[:, None]
        c, s = np.cos(angle), np.sin(angle)
        return np.stack([radial * c - lateral * s, radial * s + lateral * c, vertical], axis=-1)


def _smooth(curve: FloatArray) -> FloatArray:
    padded = np.vstack([2 * curve[0] - curve[1], curve, 2 * curve[-1] - curve[-2]])
    return 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]


def _stem(height: float, radius: float, rng: np.random.Generator) -> FloatArray:
    """Return (K, 10, 3) outlines of the crown and the stem, slightly bent."""
    up = np.array([0.52, 0.62, 0.72, 0.8, 0.9, 0.99, 1.0]) * height
    wide = np.array([1.9, 2.0, 1.65, 1.15, 0.9, 0.95, 0.5]) * radius
    turn = np.linspace(0, 2 * np.pi, 11)[:-1]
    lean = rng.normal(scale=0.0025, size=2)
    rings = np.zeros((len(up), 10, 3))
    rings[..., 0] = wide[:, None] * np.cos(turn) + lean[0] * ((up - up[0]) / (up[-1] - up[0]))[:, None] ** 2
    rings[..., 1] = wide[:, None] * np.sin(turn) + lean[1] * ((up - up[0]) / (up[-1] - up[0]))[:, None] ** 2
    rings[..., 2] = up[:, None]
    return rings


def _tube(rings: FloatArray, window: tuple[float, float]) -> tuple[FloatArray, IndexArray, FloatArray]:
    """Build a closed tube around rings; u runs around it within a window of the texture, v along it."""
    count, around = rings.shape[:2]
    closed = np.concatenate([rings, rings[:, :1]], axis=1)
    ends = [np.broadcast_to(rings[place].mean(axis=0), (1, around + 1, 3)) for place in (0, -1)]
    closed = np.concatenate([ends[0], closed, ends[1]])
    u = np.linspace(window[0], window[1], around + 1)
    v = np.r_[0.0, np.linspace(0, 1, count), 1.0]
    i, j = np.meshgrid(np.arange(count + 1), np.arange(around), indexing="ij")
    corner = (i * (around + 1) + j).ravel()
    above = corner + around + 1
    faces = np.vstack([np.column_stack([corner, corner + 1, above + 1]), np.column_stack([corner, above + 1, above])])
    uvs = np.stack(np.broadcast_arrays(u[None, :], v[:, None]), axis=-1).reshape(-1, 2)
    vertices = closed.reshape(-1, 3)
    if _volume(vertices, faces) < 0:
        faces = faces[:, ::-1]
    return vertices, faces.astype(np.int32), uvs


def _volume(vertices: FloatArray, faces: IndexArray) -> float:
    a, b, c = (vertices[faces[:, corner]] for corner in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)))


def _regions(width: float, length: float) -> dict[str, TextureRegion]:
    middle = _STEM_SHARE + (1 - _STEM_SHARE) * 0.45
    return {
        "skin": TextureRegion(u=(_STEM_SHARE, middle), v=(0.0, 1.0), size=(width, length)),
        "flesh": TextureRegion(u=(middle, 1.0), v=(0.0, 1.0), size=(width, length)),
        "stem": TextureRegion(u=(0.0, _STEM_SHARE), v=(0.0, 1.0), size=(0.04, 0.03)),
    }
