"""Placement of K states of a scene side by side in one stage, so that no camera sees a neighboring state.

Isaac Sim renders one stage, so K steps of a trajectory become K regions of the stage, each with its own cameras.
Regions are isolated by their distance and the cameras' far clipping plane. This module computes numbers only and can be
used for any renderer of stages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.errors import InputError

NEAR = 0.01
"""Near clipping distance of every camera [m]."""
FARTHEST = 1000.0
"""Largest distance from the origin [m], at which single precision still resolves less than a millimeter."""
_STEP = 0.125
"""Spacings are multiples of this [m], so that the positions of regions are exact in single precision."""
_MARGIN = 1.001
_MEMORY_SHARE = 0.5
_BYTES_PER_PIXEL = 4 + 4 + 16 + 4 + 4
"""Size of a pixel of RTX's RGBA, depth, normals, instance and semantic index [bytes]."""
_RENDERER_BYTES_PER_PIXEL = 200
"""Estimated memory of a path tracer beyond its buffers [bytes per pixel], to be replaced by a measurement on an RTX
GPU."""


@dataclass(frozen=True, kw_only=True)
class StackLayout:
    """K regions on a square grid around the origin."""

    spacing: float
    """Spacing of neighboring regions, along x and y [m]."""
    far: float
    """Far clipping distance of every camera [m], beyond all parts of a region's own scene."""
    origins: FloatArray
    """(K, 3) origin of each region's world [m]."""

    @property
    def count(self) -> int:
        """Number K of regions."""
        return len(self.origins)


def stack_layout(count: int, *, bounds: FloatArray, eyes: FloatArray, cameras: Sequence[Camera]) -> StackLayout:
    """Place K regions.

    Args:
        count: Number K of regions.
        bounds: (2, 3) lower and upper corner of everything visible, over all steps [m].
        eyes: (N, 3) positions of the cameras, over all steps [m].
        cameras: The cameras of a region.

    Raises:
        InputError: The regions reach too far from the origin.
    """
    far = far_clip(bounds, eyes)
    spacing = region_spacing(bounds, eyes, far=far, cameras=cameras)
    most = most_regions(spacing)
    if count > most:
        what = f"{count} regions {spacing:g} m apart reach farther than {FARTHEST:g} m from the origin"
        raise InputError(what, where="--stack", instead=f"write at most {most}")
    return StackLayout(spacing=spacing, far=far, origins=region_origins(count, spacing))


def far_clip(bounds: FloatArray, eyes: FloatArray) -> float:
    """Return the distance from the cameras to the farthest corner of the scene, with a small margin [m].

    Args:
        bounds: (2, 3) lower and upper corner of everything that is seen [m].
        eyes: (N, 3) positions of the cameras [m].
    """
    corners = np.stack(np.meshgrid(*np.asarray(bounds).T, indexing="ij"), axis=-1).reshape(-1, 3)
    return float(np.linalg.norm(corners[None] - np.asarray(eyes)[:, None], axis=-1).max()) * _MARGIN


def region_spacing(bounds: FloatArray, eyes: FloatArray, *, far: float, cameras: Sequence[Camera]) -> float:
    """Return the spacing at which the nearest point of a neighbor is beyond every corner of a view's far plane [m].

    The far clip is a plane across the optical axis, so the corners of an image see farther than its center.

    Args:
        bounds: (2, 3) lower and upper corner of everything visible [m].
        eyes: (N, 3) positions of the cameras [m].
        far: Far clipping distance of every camera [m].
        cameras: The cameras of a region.
    """
    stretch = max((_corner_stretch(camera) for camera in cameras), default=1.0)
    lower, upper = np.asarray(bounds)[:, :2]
    places = np.asarray(eyes)[:, :2]
    overlap = np.maximum(upper - places.min(axis=0), places.max(axis=0) - lower).max()
    return math.ceil((far * stretch + max(overlap, 0.0)) * _MARGIN / _STEP) * _STEP


def region_origins(count: int, spacing: float) -> FloatArray:
    """Return (K, 3) positions on a square grid centered near the origin, row by row."""
    columns = math.ceil(math.sqrt(count))
    index = np.arange(count)
    rows = np.stack([index % columns - columns // 2, index // columns - columns // 2, 0 * index], axis=1)
    return rows.astype(np.float64) * spacing


def most_regions(spacing: float) -> int:
    """Return the number of regions that fit within the largest distance from the origin."""
    return (int(2 * FARTHEST / spacing) // 2 * 2 + 1) ** 2


def most_in_memory(cameras: Sequence[Camera], *, free_bytes: int, region_bytes: int) -> int:
    """Return the K that fits into a GPU's free memory, at least 1.

    Args:
        cameras: All cameras of one region.
        free_bytes: Free memory of the GPU.
        region_bytes: Memory of one region's copies of meshes; 0 if meshes are shared.
    """
    pixels = sum(camera.width * camera.height for camera in cameras)
    one = region_bytes + pixels * (_BYTES_PER_PIXEL + _RENDERER_BYTES_PER_PIXEL)
    return max(1, int(_MEMORY_SHARE * free_bytes) // max(one, 1))


def _corner_stretch(camera: Camera) -> float:
    """Return the distance of an image corner relative to that of the center, for points of one plane."""
    up = math.tan(0.5 * camera.vertical_fov)
    return math.sqrt(1.0 + up**2 + (up * camera.width / camera.height) ** 2)
