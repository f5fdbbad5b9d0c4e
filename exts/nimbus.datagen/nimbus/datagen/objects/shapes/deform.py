"""Wear of a shape (crushed, dented, bent, wrinkled): one map deforms appearance and contact geometry alike."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Metres, Range, Ratio
from nimbus.datagen.files.strict_yaml import StrictModel

_Lobes = Annotated[int, Field(ge=2, le=40)]


class Wear(StrictModel):
    """Deviations of a shape from its profile; each range is drawn once per variant."""

    crush: Range[Ratio] = Field(default=(0.0, 0.0), description="flattening of the middle, as a fraction of the depth")
    bend: Range[Metres] = Field(default=(0.0, 0.0), description="sideways bend of the axis")
    lumps: Range[Metres] = Field(default=(0.0, 0.0), description="height of broad uneven bumps")
    dents: Annotated[int, Field(ge=0, le=8)] = 0
    dent_depth: Range[Metres] = (0.001, 0.002)
    wrinkles: Range[Ratio] = Field(default=(0.0, 0.0), description="depth of axial folds, as a fraction of the radius")
    folds: _Lobes = 11
    jag: Range[Metres] = Field(default=(0.0, 0.0), description="height of the jags of a broken upper rim")
    steps: Annotated[int, Field(ge=2, le=40)] = Field(default=9, description="number of corners of the broken rim")


class Deformation:
    """Sample of :class:`Wear` that maps points of the undeformed shape to the worn shape.

    Args:
        wear: Ranges from which the deformation is drawn.
        size: (3,) width, depth and height of the undeformed shape, centered at the origin [m].
        rng: Random stream for this deformation alone.
    """

    def __init__(self, wear: Wear, size: FloatArray, rng: np.random.Generator) -> None:
        self._size = size
        self._wear = wear
        self._crush, self._crush_at = rng.uniform(*wear.crush), rng.uniform(-0.12, 0.12)
        self._turn = rng.uniform(0, np.pi)
        self._bend = rng.uniform(*wear.bend) * rng.choice([-1.0, 1.0])
        self._lumps = rng.uniform(*wear.lumps)
        self._waves = rng.normal(size=(5, 3)) * np.array([2.2, 2.2, 2.6])
        self._phases = rng.uniform(0, 2 * np.pi, 5)
        angle, height = rng.uniform(0, 2 * np.pi, wear.dents), rng.uniform(-0.3, 0.3, wear.dents)
        self._dents = np.column_stack([np.cos(angle) * 0.5, np.sin(angle) * 0.5, height]) * size
        self._dent_depth = rng.uniform(*wear.dent_depth, wear.dents)
        self._dent_width = rng.uniform(0.012, 0.02, wear.dents)
        self._wrinkles = rng.uniform(*wear.wrinkles)
        self._fold_phase = rng.uniform(0, 2 * np.pi, 2)
        self._jag = rng.uniform(*wear.jag)
        self._steps = rng.uniform(-1, 0, wear.steps)

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return worn positions (..., 3) of points (..., 3) of the undeformed shape [m]."""
        worn = points.astype(np.float64).copy()
        radial = worn[..., :2] / np.maximum(np.linalg.norm(worn[..., :2], axis=-1, keepdims=True), 1e-9)
        angle = np.arctan2(points[..., 1], points[..., 0])
        height = points[..., 2] / self._size[2]
        worn[..., :2] *= (1 + self._fold(angle, points))[..., None]
        worn[..., :2] += radial * self._bumps(points)[..., None]
        worn = self._flatten(worn, height)
        worn[..., 2] += self._jag * self._rim(angle) * np.clip(height * 4 - 0.6, 0, 1)
        worn[..., 0] += self._bend * (1 - 4 * height**2)
        return worn

    def _fold(self, angle: FloatArray, points: FloatArray) -> FloatArray:
        radius = np.linalg.norm(points[..., :2], axis=-1) / (self._size[0] / 2)
        waves = np.cos(self._wear.folds * angle + self._fold_phase[0])
        waves = waves + 0.6 * np.cos((self._wear.folds // 2 + 1) * angle + self._fold_phase[1])
        return self._wrinkles * waves * np.clip(1.4 - radius, 0.12, 1.0)

    def _bumps(self, points: FloatArray) -> FloatArray:
        """Return the radial displacement [m]: broad lumps outward and inward, dents inward."""
        total = np.zeros(points.shape[:-1])
        if self._lumps:
            scaled = points / self._size.max() * 2
            for wave, phase in zip(self._waves, self._phases, strict=True):
                total += self._lumps / 2.2 * np.sin(scaled @ wave + phase)
        for center, depth, width in zip(self._dents, self._dent_depth, self._dent_width, strict=True):
            distance = np.linalg.norm(points - center, axis=-1)
            total -= depth * np.exp(-0.5 * (distance / width) ** 2)
        inside = np.linalg.norm(points[..., :2], axis=-1) / (self._size[0] / 2)
        return total * np.clip(inside * 3, 0, 1)

    def _flatten(self, points: FloatArray, height: FloatArray) -> FloatArray:
        """Flatten the shape in one direction, most in the middle; it widens slightly in the other."""
        if not self._crush:
            return points
        press = self._crush * np.exp(-(((height - self._crush_at) / 0.28) ** 2))
        c, s = np.cos(self._turn), np.sin(self._turn)
        across, along = points[..., 0] * c + points[..., 1] * s, points[..., 1] * c - points[..., 0] * s
        across, along = across * (1 - press), along * (1 + 0.25 * press)
        return np.stack([across * c - along * s, across * s + along * c, points[..., 2]], axis=-1)

    def _rim(self, angle: FloatArray) -> FloatArray:
        places = np.linspace(-np.pi, np.pi, len(self._steps) + 1)
        return np.interp(angle, places, np.r_[self._steps, self._steps[0]])
