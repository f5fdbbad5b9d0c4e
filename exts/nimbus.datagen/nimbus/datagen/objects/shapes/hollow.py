"""Open containers with walls, such as cups, bowls, plates, pans, trays and crates."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Metres, Ratio
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.shapes.contact import Piece, convex_hull, pieces_of_rings
from nimbus.datagen.objects.shapes.loft import Loft
from nimbus.datagen.objects.shapes.profile import interpolate_spline, outline
from nimbus.datagen.objects.shapes.shape import Shape, frame_at

_LEVELS = 17
"""Number of heights at which a wall is sampled before it is cut into pieces."""

Row = Annotated[tuple[float, ...], Field(min_length=2, max_length=4)]


class Hollow(StrictModel):
    """Wall that follows a profile from the foot to the rim, with a floor.

    A row of the profile is ``[height, width, depth, roundness]`` as in :class:`Loft`; heights rise from 0 to 1. Regions
    of the surface are ``foot``, ``outside``, ``rim``, ``inside`` and ``floor``. The frames are ``opening`` in the
    mouth, ``rim`` on its edge at +x and ``pour_point`` at -x, all with z up; the cavity is named ``opening``.
    """

    family: Literal["hollow"]
    profile: Annotated[tuple[Row, ...], Field(min_length=2)]
    wall: Annotated[Metres, Field(gt=0)] = Field(description="thickness of the wall")
    base: Annotated[Metres, Field(gt=0)] | None = Field(
        default=None, description="thickness of the floor; by default that of the wall"
    )
    roundness: Ratio = Field(default=1.0, ge=0, le=1, description="roundness of profile rows that have none")
    smooth: bool = Field(False, description="use a smooth curve through the rows")
    fillet: Metres = 0.001
    segments: int = Field(default=32, ge=12, le=36, multiple_of=4, description="number of points of an outline")
    sides: int = Field(
        default=16, ge=4, le=16, multiple_of=4, description="number of convex pieces around the wall; 4 for a box"
    )
    pieces: int = Field(default=3, ge=1, le=6, description="largest number of convex pieces from foot to rim")

    @model_validator(mode="after")
    def _heights_rise(self) -> Hollow:
        heights = [row[0] for row in self.profile]
        if (
            heights[0] != 0
            or heights[-1] != 1
            or any(high <= low for low, high in zip(heights, heights[1:], strict=False))
        ):
            raise ValueError("the heights of a hollow's profile must rise from 0 to 1")
        return self

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build one container.

        Args:
            size: (3,) outer width, depth and height [m].
            rng: Random stream of the variant.
        """
        outer = self._outer(np.asarray(size))
        floor = self.wall if self.base is None else self.base
        inner = _inset(outer, self.wall, floor)
        looks = self._loft(outer, inner, np.asarray(size)).build(size, rng)
        top, middle = inner[-1], _at(inner, (inner[0, 0] + inner[-1, 0]) / 2)
        edge = (outer[-1, 1] + top[1]) / 2
        cavity = np.array([[-middle[1], -middle[2], inner[0, 0]], [middle[1], middle[2], top[0]]])
        return Shape(
            vertices=looks.vertices,
            faces=looks.faces,
            uvs=looks.uvs,
            crease=looks.crease,
            pieces=self._pieces(outer, inner),
            regions=looks.regions,
            keypoints={"rim": np.array([edge, 0.0, top[0]]), "floor": np.array([0.0, 0.0, inner[0, 0]])},
            frames={
                "opening": frame_at((0, 0, top[0])),
                "rim": frame_at((edge, 0, top[0])),
                "pour_point": frame_at((-float(outer[-1, 1]), 0, top[0]), x=(-1, 0, 0)),
            },
            cavities={"opening": cavity},
        )

    def _outer(self, size: FloatArray) -> FloatArray:
        """Return (R, 4) rows of the outside [m, roundness without unit], with rising heights."""
        full = [
            (*row, *(row[1:2] if len(row) < 3 else ()), *(self.roundness,) * (len(row) < 4)) for row in self.profile
        ]
        rows = np.array(full, dtype=np.float64)
        rows[:, :3] *= (size[2], size[0] / 2, size[1] / 2)
        rows[:, 0] -= size[2] / 2
        return interpolate_spline(rows, 9)[0] if self.smooth else rows

    def _loft(self, outer: FloatArray, inner: FloatArray, size: FloatArray) -> Loft:
        """Return a loft of the skin: up the outside, over the rim, and down the inside."""
        centers = np.zeros((2, 4))
        centers[:, 0], centers[:, 3] = (outer[0, 0], inner[0, 0]), (outer[0, 3], inner[0, 3])
        rows = np.vstack([centers[:1], outer, inner[::-1], centers[1:]])
        shares = rows / (size[2], size[0] / 2, size[1] / 2, 1.0)
        shares[:, 0] += 0.5
        rim, last = len(outer), len(outer) + len(inner)
        bands = {
            "foot": (0, 1),
            "outside": (1, rim),
            "rim": (rim, rim + 1),
            "inside": (rim + 1, last),
            "floor": (last, last + 1),
        }
        profile = tuple(tuple(row) for row in shares.tolist())
        return Loft(
            family="loft",
            smooth=False,
            profile=profile,
            bands=bands,
            fillet=self.fillet,
            segments=self.segments,
            crease=0.9,
        )

    def _pieces(self, outer: FloatArray, inner: FloatArray) -> tuple[Piece, ...]:
        """Return the floor and the pieces of the wall, which is cut around and upward; no piece bridges the mouth."""
        ground, floor = outer[0, 0], inner[0, 0]
        bottom = _rings(np.array([_at(outer, ground), _at(outer, floor)]), self.sides)
        heights = np.linspace(floor, inner[-1, 0], _LEVELS)
        outside = _rings(np.array([_at(outer, height) for height in heights]), self.sides)
        inside = _rings(np.array([_at(inner, height) for height in heights]), self.sides)
        pieces = [convex_hull(bottom.reshape(-1, 3))]
        for side in range(self.sides):
            pair = [side, (side + 1) % self.sides]
            wall = np.concatenate([outside[:, pair], inside[:, pair[::-1]]], axis=1)
            pieces += pieces_of_rings(wall, tolerance=0.0008, max_pieces=self.pieces)
        return tuple(pieces)


def _at(rows: FloatArray, height: float) -> FloatArray:
    """Return the interpolated row of a profile at a height [m]."""
    return np.array([height, *(np.interp(height, rows[:, 0], rows[:, column]) for column in (1, 2, 3))])


def _rings(rows: FloatArray, points: int) -> FloatArray:
    """Return (K, points, 3) polygons, midway between the circumscribed and the inscribed ones."""
    rows = rows.copy()
    rows[:, 1:3] *= 1 + 0.5 * (1 / np.cos(np.pi / points) - 1) * rows[:, 3:]
    flat = outline(rows[:, 1], rows[:, 2], rows[:, 3], points)
    return np.concatenate([flat, np.broadcast_to(rows[:, None, :1], (*flat.shape[:2], 1))], axis=2)


def _inset(outer: FloatArray, wall: float, floor: float) -> FloatArray:
    """Return (R, 4) rows of the inside: the outside, offset inward by the wall, from the floor to the rim."""
    tangent = (
        np.gradient(outer[:, :2], axis=0) if len(outer) > 2 else np.repeat(np.diff(outer[:, :2], axis=0), 2, axis=0)
    )
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    inner = outer.copy()
    shift = np.minimum(wall / np.maximum(tangent[:, 0], 0.2), 4 * wall)
    inner[:, 1] -= shift
    inner[:, 2] -= shift
    low, high = outer[0, 0] + floor, outer[-1, 0]
    heights = [low, *(height for height in inner[:, 0] if low + 1e-4 < height < high - 1e-5), high]
    inner = np.array([_at(inner, height) for height in heights])
    inner[:, 1:3] = np.maximum(inner[:, 1:3], 1e-3)
    return inner
