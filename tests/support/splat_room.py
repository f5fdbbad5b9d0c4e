"""A room of 6 by 5 m with furniture and a half wall, as triangles and as splats with known ground truth."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import Float32Array, FloatArray
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.sample import SurfaceSamples, discs_of, place_samples
from tests.support.baked_scene import box

_THINGS = (
    ((1.0, 1.0, 0.0), (2.0, 1.6, 0.8)),
    ((4.0, 3.0, 0.0), (4.6, 4.6, 1.2)),
    ((2.9, 0.0, 0.0), (3.0, 3.2, 2.6)),
    ((4.5, 0.5, 0.7), (5.8, 1.2, 0.75)),
)


def room_corners() -> Float32Array:
    """Return faces (F, 3, 3) of the room, visible from inside, and of the objects in it, visible from outside [m]."""
    shell = outward_box((0.0, 0.0, 0.0), (6.0, 5.0, 2.6))[:, ::-1]
    return np.concatenate([shell, *(outward_box(low, high) for low, high in _THINGS)]).astype(np.float32)


def outward_box(low: tuple[float, float, float], high: tuple[float, float, float]) -> FloatArray:
    faces, normals = box(low, high)
    inward = np.sum(np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0]) * normals[:, 0], axis=1) < 0
    return np.where(inward[:, None, None], faces[:, ::-1], faces)


def painted(samples: SurfaceSamples) -> FloatArray:
    """Return colors (N, 3) of a smooth pattern, a function of the position only."""
    waves = np.sin(samples.positions * (2.1, 1.7, 2.3) + (0.0, 1.0, 2.0))
    return 0.5 + 0.25 * waves + 0.15 * samples.normals


def room_cloud(count: int = 30_000, *, noise: float = 0.0, floaters: int = 0) -> SplatCloud:
    """Return splats of the room; ``noise`` [m] displaces each, and floaters are in the air."""
    rng = np.random.default_rng(3)
    samples = place_samples(room_corners(), count)
    cloud = discs_of(samples, painted(samples))
    positions, scales = cloud.positions.copy(), cloud.scales.copy()
    positions += rng.normal(0, 1, positions.shape).astype(np.float32) * np.float32(noise)
    chosen = rng.choice(count, floaters, replace=False)
    positions[chosen] = rng.uniform((0.2, 0.2, 0.2), (5.8, 4.8, 2.4), (floaters, 3))
    scales[chosen] = 0.015
    return SplatCloud(
        positions=positions, scales=scales, wxyz=cloud.wxyz, opacities=cloud.opacities, colors=cloud.colors
    )
