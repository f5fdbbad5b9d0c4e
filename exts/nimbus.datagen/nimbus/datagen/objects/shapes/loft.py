"""Lofts: outlines stacked along an axis, for bottles, cans, cartons, tubes and fruit."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.files.quantities import Metres, Ratio
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.shapes.contact import pieces_of_rings
from nimbus.datagen.objects.shapes.deform import Deformation, Wear
from nimbus.datagen.objects.shapes.profile import envelope, filleted, interpolate_spline, outline
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion, drop_slivers

_CONTACT_POINTS = 16
_SIDES = 0.72
"""Fraction of the texture's height for the sides, when the ends have separate maps."""

Row = Annotated[tuple[float, ...], Field(min_length=2, max_length=4)]


class Loft(StrictModel):
    """Outlines along a profile from one end to the other.

    A row of the profile is ``[height, width, depth, roundness]``: height, width and depth as fractions of the object's
    (the depth equals the width by default), and roundness from 0 for a rectangle to 1 for an ellipse.
    """

    family: Literal["loft"]
    profile: Annotated[tuple[Row, ...], Field(min_length=2)]
    roundness: Ratio = Field(default=1.0, ge=0, le=1, description="roundness of profile rows that have none")
    smooth: bool = Field(False, description="use a smooth curve instead of filleted corners")
    rings: int = Field(default=24, ge=6, le=40, description="number of outlines of a smooth loft")
    fillet: Metres = 0.0015
    segments: int = Field(default=28, ge=12, le=36, multiple_of=4, description="number of points of an outline")
    crease: float = Field(default=0.7, gt=0, description="angle above which edges are shaded sharp [rad]")
    ends: Literal["radial", "flat"] = Field(
        default="radial", description="close flat ends, which then have their own texture"
    )
    bands: dict[str, tuple[int, int]] = Field(default={}, description="regions of the surface between two profile rows")
    vary: Ratio = Field(
        default=0.0, ge=0, le=0.3, description="relative variation of the rows' widths between variants"
    )
    wear: Wear = Wear()
    pieces: int = Field(default=8, ge=1, le=12, description="largest number of convex pieces")

    @model_validator(mode="after")
    def _bands_are_rows(self) -> Loft:
        for name, (first, last) in self.bands.items():
            if not 0 <= first < last < len(self.profile):
                raise ValueError(f"band '{name}' is from row {first} to {last}, not in 0 to {len(self.profile) - 1}")
        return self

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build one variant.

        Args:
            size: (3,) width, depth and height [m].
            rng: Random stream of the variant.
        """
        rows = self._rows(size, rng)
        deform = Deformation(self.wear, size, rng)
        if self.smooth:
            curve, places = interpolate_spline(rows, self.rings)
        else:
            curve, places = filleted(rows, self.fillet)
        along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(curve[:, :3], axis=0), axis=1))]
        vertices, faces, uvs = self._mesh(curve, along)
        vertices = deform(vertices)
        outer = envelope(curve, 32)
        outer[:, 1:3] *= 1 + 0.5 * (1 - np.cos(np.pi / _CONTACT_POINTS)) * outer[:, 3:]
        rings = deform(_stack(_at_least(outer, 0.0008), _CONTACT_POINTS))
        return Shape(
            vertices=vertices,
            faces=drop_slivers(vertices, faces),
            uvs=uvs,
            crease=self.crease,
            pieces=pieces_of_rings(rings, tolerance=0.0008, max_pieces=self.pieces),
            regions=self._regions(curve, along, places, size),
        )

    def _rows(self, size: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return (R, 4) rows [m]. Rows of equal width vary together; the widest rows do not vary."""
        full = [
            (*row, *(row[1:2] if len(row) < 3 else ()), *(self.roundness,) * (len(row) < 4)) for row in self.profile
        ]
        rows = np.array(full, dtype=np.float64)
        widths = np.unique(rows[:, 1])
        factors = 1 + self.vary * rng.uniform(-1, 1, len(widths)) * (widths < widths.max())
        scale = factors[np.searchsorted(widths, rows[:, 1])]
        rows[:, 0] = (rows[:, 0] - 0.5) * size[2]
        rows[:, 1] *= scale * size[0] / 2
        rows[:, 2] *= scale * size[1] / 2
        return rows

    def _mesh(self, curve: FloatArray, along: FloatArray) -> tuple[FloatArray, IndexArray, FloatArray]:
        rings = _stack(curve, self.segments)
        rings = np.concatenate([rings, rings[:, :1]], axis=1)
        around = _around(rings[np.argmax(curve[:, 1] + curve[:, 2])])
        share = _SIDES if self.ends == "flat" else 1.0
        u, v = np.meshgrid(around, along / along[-1] * share)
        vertices, uvs = rings.reshape(-1, 3), np.column_stack([u.ravel(), v.ravel()])
        count, row = self.segments, self.segments + 1
        i, j = np.meshgrid(np.arange(len(curve) - 1), np.arange(count), indexing="ij")
        corner = (i * row + j).ravel()
        faces = np.vstack(
            [
                np.column_stack([corner, corner + 1, corner + row + 1]),
                np.column_stack([corner, corner + row + 1, corner + row]),
            ]
        )
        if self.ends == "flat":
            for ring, window, upward in ((rings[0], (0.0, 0.48), False), (rings[-1], (0.52, 1.0), True)):
                cap, cap_faces, cap_uvs = _cap(ring[:-1], window, upward=upward)
                faces = np.vstack([faces, cap_faces + len(vertices)])
                vertices, uvs = np.vstack([vertices, cap]), np.vstack([uvs, cap_uvs])
        return vertices, faces.astype(np.int32), uvs

    def _regions(
        self, curve: FloatArray, along: FloatArray, places: FloatArray, size: FloatArray
    ) -> dict[str, TextureRegion]:
        """Return the bands and their four sides, and also ``bottom`` and ``top`` if the ends are flat."""
        share = _SIDES if self.ends == "flat" else 1.0
        ring = _stack(curve[[np.argmax(curve[:, 1] + curve[:, 2])]], self.segments)[0]
        around = _around(np.vstack([ring, ring[:1]]))
        girth = float(np.linalg.norm(np.diff(np.vstack([ring, ring[:1]]), axis=0), axis=1).sum())
        regions: dict[str, TextureRegion] = {}
        for name, (first, last) in {"sides": (0, len(self.profile) - 1), **self.bands}.items():
            low, high = np.interp([first, last], places, along)
            v = (low / along[-1] * share, high / along[-1] * share)
            regions[name] = TextureRegion(u=(0.0, 1.0), v=v, size=(girth, high - low))
            for side, corner in (("right", 0), ("back", 1), ("left", 2), ("front", 3)):
                u = (float(around[corner * self.segments // 4]), float(around[(corner + 1) * self.segments // 4]))
                regions[f"{name}.{side}"] = TextureRegion(u=u, v=v, size=(girth * (u[1] - u[0]), high - low))
        if self.ends == "flat":
            width, depth = float(size[0]), float(size[1])
            regions["bottom"] = TextureRegion(u=(0.0, 0.48), v=(_SIDES + 0.02, 1.0), size=(width, depth))
            regions["top"] = TextureRegion(u=(0.52, 1.0), v=(_SIDES + 0.02, 1.0), size=(width, depth))
        return regions


def _stack(rows: FloatArray, points: int) -> FloatArray:
    """Return (K, points, 3) outlines at their heights."""
    flat = outline(rows[:, 1], rows[:, 2], rows[:, 3], points)
    return np.concatenate([flat, np.broadcast_to(rows[:, None, :1], (*flat.shape[:2], 1))], axis=2)


def _at_least(rows: FloatArray, half: float) -> FloatArray:
    rows = rows.copy()
    rows[:, 1:3] = np.maximum(rows[:, 1:3], half)
    return rows


def _around(closed_ring: FloatArray) -> FloatArray:
    """Return the fraction of the girth at each point of a closed ring."""
    along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(closed_ring, axis=0), axis=1))]
    return along / along[-1]


def _cap(ring: FloatArray, window: tuple[float, float], *, upward: bool) -> tuple[FloatArray, IndexArray, FloatArray]:
    """Build a flat lid on a ring, mapped into a window of the texture."""
    low, high = ring[:, :2].min(axis=0), ring[:, :2].max(axis=0)
    center = np.array([*(low + high) / 2, ring[0, 2]])
    vertices = np.vstack([ring, center])
    share = (vertices[:, :2] - low) / np.maximum(high - low, 1e-9)
    if not upward:
        share[:, 0] = 1 - share[:, 0]
    u = window[0] + share[:, 0] * (window[1] - window[0])
    v = _SIDES + 0.02 + share[:, 1] * (0.98 - _SIDES)
    here = np.arange(len(ring))
    after = np.roll(here, -1)
    faces = np.column_stack([here, after, np.full(len(ring), len(ring))])
    faces = faces if upward else faces[:, ::-1]
    return vertices, faces.astype(np.int32), np.column_stack([u, v])
