"""Proxy geometry derived from splats: a floor and the voxels of objects on it, for paths and depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_closing, convolve, label

from nimbus.datagen.arrays import BoolArray, Float32Array, FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry import transforms
from nimbus.datagen.splats.cloud import SplatCloud

VOXEL = 0.05
"""Side of a voxel [m]."""
_LEAST_WEIGHT = 0.3
"""Smallest sum of opacities in a solid voxel."""
_FEWEST_NEIGHBORS = 4
"""Smallest number of solid voxels in the 3 by 3 by 3 block around a solid voxel; isolated ones are floaters."""
_FAINTEST = 0.1
"""Opacity below which splats are ignored, because they form haze."""
_STEP = 0.6 * VOXEL
"""Largest distance between sampled points on a large splat [m]."""
_MOST_STEPS = 20
"""Largest number of points along half of a large splat's axis."""
_LARGEST = 1.0
"""Standard deviation above which splats are ignored, because they form sky or backdrop [m]."""
_OVER_FLOOR = 0.1
"""Height above the floor up to which a voxel belongs to the floor [m]."""
_HIGHEST_TOP = 1.6
"""Largest height above the floor of upward faces that are kept [m]; without it, the top of the ceiling would be the
largest floor of the scene."""
_MOST_VOXELS = 60_000_000
"""Largest number of voxels: twenty times as many as in a scene of 50 by 50 by 3 m."""
_SPARSE = 0.1
"""Number of splats per solid voxel below which obstacles may be missing; at 0.12 (half a splat per dm²) none were."""
_CLOSED = 2
"""Number of voxels by which the floor is dilated and eroded to close the holes that captures have."""
_LEAST_FLOOR = 4.0
"""Smallest area of a floor [m²]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SplatProxy:
    """Triangles that approximate the surfaces of a cloud."""

    floor: Float32Array
    """(F, 3, 3) triangles of the floor, flat and facing up [m]."""
    obstacles: Float32Array
    """(G, 3, 3) triangles of everything else [m]."""
    floor_height: float
    """Height of the floor [m]."""
    density: float
    """Number of splats per solid voxel."""

    @property
    def is_sparse(self) -> bool:
        """True if the splats are so sparse that thin obstacles may be missing."""
        return self.density < _SPARSE


def make_proxy(cloud: SplatCloud, *, where: str) -> SplatProxy:
    """Derive the geometry of one storey from splats in the world frame, with z up.

    The floor is at the height with the largest area of splats in the lower half of the scene. A voxel is solid if the
    opacities of its splats sum up to more than 0.3 and at least three of its neighbors are solid.

    Args:
        cloud: Splats in the world frame.
        where: File of the splats, for errors.

    Raises:
        InputError: The cloud has no floor, or needs more than 60 million voxels.
    """
    kept = (cloud.opacities >= _FAINTEST) & (cloud.scales.max(axis=1) <= _LARGEST)
    if not kept.any():
        raise InputError("has no splats that could form a surface", where=where, instead="give a proxy mesh")
    cloud = cloud.rows(np.flatnonzero(kept))
    points, weights = _spread(cloud)
    # Quantiles are used, because a few stray splats far away would make the grid too large.
    lower = np.floor(np.quantile(cloud.positions, 0.002, axis=0) / VOXEL - 4) * VOXEL
    upper = np.quantile(cloud.positions, 0.998, axis=0) + 4 * VOXEL
    size = np.ceil((upper - lower) / VOXEL).astype(np.int64)
    if np.prod(size.astype(float)) > _MOST_VOXELS:
        extent = " by ".join(f"{side * VOXEL:.0f}" for side in size)
        raise InputError(f"the scene is too large: {extent} m", where=where, instead="crop it, or give a proxy mesh")
    height = _floor_height(cloud, where)
    # The grid is shifted so that a layer of voxels begins at the floor.
    lower[2] = height - np.ceil((height - lower[2]) / VOXEL) * VOXEL
    cells = np.floor((points - lower) / VOXEL).astype(np.int64)
    inside = np.all((cells >= 0) & (cells < size), axis=1)
    flat = np.ravel_multi_index(tuple(cells[inside].T), tuple(size))
    weight = np.bincount(flat, weights[inside], int(np.prod(size))).reshape(size)
    solid = weight > _LEAST_WEIGHT
    # The block of 27 includes the voxel itself. Lone voxels are noise of the training, and would block paths.
    solid &= convolve(solid.astype(np.uint8), np.ones((3, 3, 3), np.uint8), mode="constant") >= _FEWEST_NEIGHBORS
    first = round((height - lower[2]) / VOXEL)
    ground = solid[:, :, max(first - 2, 0) : first + 2].any(axis=2)
    ground |= np.asarray(binary_closing(ground, np.ones((3, 3)), iterations=_CLOSED), dtype=bool)
    ground = _largest(ground | solid[:, :, first:].any(axis=2), ground)
    if (area := float(ground.sum()) * VOXEL**2) < _LEAST_FLOOR:
        what = f"has no floor: only {area:.1f} m² at height {height:.2f} m"
        raise InputError(what, where=where, instead="set the key 'up' to the vertical axis, or give a proxy mesh")
    obstacles = solid.copy()
    obstacles[:, :, : first + round(_OVER_FLOOR / VOXEL)] = False
    return SplatProxy(
        floor=_floor_faces(ground, lower, height),
        obstacles=_voxel_faces(obstacles, lower, tops_below=first + round(_HIGHEST_TOP / VOXEL)),
        floor_height=height,
        density=len(cloud) / max(int(solid.sum()), 1),
    )


def _spread(cloud: SplatCloud) -> tuple[FloatArray, FloatArray]:
    """Return points on splats within one standard deviation, at most a voxel apart, with the opacity at each point."""
    # Splats on surfaces are flat: their two longer axes span the surface, and the third is thinner than a voxel.
    order = np.argsort(-cloud.scales, axis=1, kind="stable")[:, :2]
    rows = np.arange(len(cloud))[:, None]
    axes = np.swapaxes(transforms.quat_to_matrix(cloud.wxyz), -1, -2)[rows, order]
    reach = cloud.scales[rows, order].astype(float)
    steps = np.minimum(np.ceil((reach - 0.5 * VOXEL) / _STEP), _MOST_STEPS).clip(0).astype(int)
    points, weights = [], []
    for first, second in np.unique(steps, axis=0):
        chosen = np.flatnonzero((steps == (first, second)).all(axis=1))
        for one in np.linspace(-1, 1, 2 * first + 1) if first else (0.0,):
            for other in np.linspace(-1, 1, 2 * second + 1) if second else (0.0,):
                if one * one + other * other <= 1.0:
                    offset = one * reach[chosen, :1] * axes[chosen, 0] + other * reach[chosen, 1:] * axes[chosen, 1]
                    points.append(cloud.positions[chosen] + offset)
                    weights.append(cloud.opacities[chosen].astype(float))
    return np.concatenate(points), np.concatenate(weights)


def _floor_height(cloud: SplatCloud, where: str) -> float:
    """Return the height with the largest area of splats in the lower half of the scene [m]."""
    heights = cloud.positions[:, 2].astype(float)
    largest = np.sort(cloud.scales, axis=1)[:, 1:].astype(float)
    # The area of a splat is limited, so that a single huge splat does not decide.
    weights = cloud.opacities * np.minimum(largest.prod(axis=1), VOXEL**2 * 4)
    low = float(np.quantile(heights, 0.002))
    half = heights < max(0.5 * (low + float(np.quantile(heights, 0.998))), low + 4 * VOXEL)
    bins = np.floor((heights[half] - low) / VOXEL).astype(int)
    counts = np.bincount(np.maximum(bins, 0), weights[half])
    best = low + (int(np.argmax(counts)) + 0.5) * VOXEL
    near = np.abs(heights - best) <= VOXEL
    if not near.any():
        raise InputError("has no floor", where=where, instead="give a proxy mesh")
    order = np.argsort(heights[near], kind="stable")
    reached = np.cumsum(weights[near][order])
    return float(heights[near][order][np.searchsorted(reached, 0.5 * reached[-1])])


def _largest(mask: BoolArray, ground: BoolArray) -> BoolArray:
    """Return the connected region of a map that has the most ground cells, as a mask."""
    numbers = np.empty(mask.shape, dtype=np.int32)
    label(mask, structure=np.ones((3, 3)), output=numbers)
    if not ground.any():
        return np.zeros_like(mask)
    return numbers == int(np.argmax(np.bincount(numbers[ground])))


def _floor_faces(ground: BoolArray, lower: FloatArray, height: float) -> Float32Array:
    """Return two triangles for each run of ground cells, facing up."""
    corner = np.array([lower[0], lower[1], height])
    return _rectangles(ground[:, :, None], corner, axis=2, is_upper=False, faces_up=True)


def _voxel_faces(solid: BoolArray, lower: FloatArray, *, tops_below: int) -> Float32Array:
    """Return the triangles of the uncovered sides of solid voxels; upward sides are omitted from a given layer on."""
    padded, found = np.pad(solid, 1), []
    for axis in range(3):
        for is_upper in (False, True):
            beside = np.roll(padded, -1 if is_upper else 1, axis=axis)[1:-1, 1:-1, 1:-1]
            shown = solid & ~beside
            if axis == 2 and is_upper:
                shown[:, :, tops_below:] = False
            found.append(_rectangles(shown, lower, axis=axis, is_upper=is_upper, faces_up=is_upper))
    return np.concatenate(found)


def _rectangles(cells: BoolArray, lower: FloatArray, *, axis: int, is_upper: bool, faces_up: bool) -> Float32Array:
    """Return triangles (2 R, 3, 3) [m]: two for each of R runs of adjacent sides in a row.

    Args:
        cells: (X, Y, Z) mask of the voxels whose side is visible.
        lower: (3,) lower corner of the first voxel [m].
        axis: Axis of the side's normal.
        is_upper: True for the upper of the two sides along the axis.
        faces_up: True if the triangles face in the direction of the axis.
    """
    across, along = [other for other in range(3) if other != axis]
    turned = np.moveaxis(cells, (axis, across, along), (0, 1, 2)).astype(np.int8)
    edges = np.diff(np.pad(turned, ((0, 0), (0, 0), (1, 1))), axis=2)
    level, row, begin = np.nonzero(edges == 1)
    end = np.nonzero(edges == -1)[2]
    corners = np.empty((len(level), 4, 3))
    corners[:, :, axis] = (level + is_upper)[:, None]
    corners[:, :, across] = row[:, None] + np.array([0, 1, 1, 0])
    corners[:, :, along] = np.stack([begin, begin, end, end], axis=1)
    corners = lower + VOXEL * corners
    if faces_up == (axis == 1):  # (across, along, axis) is left-handed only for y
        corners = corners[:, ::-1]
    return np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]]).astype(np.float32)
