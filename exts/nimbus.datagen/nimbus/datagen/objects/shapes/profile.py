"""Profiles: the outline of a loft from end to end, as rows of height, half width, half depth and roundness."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import FloatArray

_STRAIGHT, _SHARP = np.deg2rad(6.0), np.deg2rad(50.0)
"""Angles of corners below which they are not rounded, and above which they get one more point [rad]."""


def filleted(rows: FloatArray, radius: float) -> tuple[FloatArray, FloatArray]:
    """Round the corners of a polyline.

    Args:
        rows: (R, D) rows, the first three columns in [m].
        radius: Distance from a corner at which its rounding begins [m]; at most 0.45 of an edge.

    Returns:
        Rounded rows (N, D), and (N,) the row number of each, which is fractional between rows.
    """
    points, places = [rows[0]], [0.0]
    for index in range(1, len(rows) - 1):
        before, here, after = rows[index - 1 : index + 2]
        lengths = np.linalg.norm((here - before)[:3]), np.linalg.norm((after - here)[:3])
        cuts = [min(radius / max(length, 1e-9), 0.45) for length in lengths]
        start, end = here + (before - here) * cuts[0], here + (after - here) * cuts[1]
        if radius <= 0 or _turn(before, here, after) < _STRAIGHT:
            points, places = [*points, here], [*places, float(index)]
            continue
        if radius >= 0.001 and _turn(before, here, after) > _SHARP:
            points += [start, 0.25 * start + 0.5 * here + 0.25 * end, end]
            places += [index - cuts[0], float(index), index + cuts[1]]
        else:
            points, places = [*points, start, end], [*places, index - cuts[0], index + cuts[1]]
    return np.array([*points, rows[-1]]), np.array([*places, float(len(rows) - 1)])


def _turn(before: FloatArray, here: FloatArray, after: FloatArray) -> float:
    """Return the angle of a corner [rad]."""
    first, second = (here - before)[:3], (after - here)[:3]
    cosine = first @ second / max(float(np.linalg.norm(first) * np.linalg.norm(second)), 1e-12)
    return float(np.arccos(np.clip(cosine, -1, 1)))


def interpolate_spline(rows: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Interpolate rows by a smooth curve (monotone cubic Hermite).

    Args:
        rows: (R, D), the first three columns in [m].
        count: Number of points on the curve.

    Returns:
        Points (count, D) in the units of the rows, and (count,) the fractional row number of each.
    """
    from scipy.interpolate import PchipInterpolator

    lengths = np.linalg.norm(np.diff(rows[:, :3], axis=0), axis=1)
    along = np.r_[0.0, np.cumsum(np.sqrt(lengths))]
    fine = np.linspace(0, along[-1], 40 * len(rows))
    curve = PchipInterpolator(along, rows)(fine)
    arc = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(curve[:, :3], axis=0), axis=1))]
    at = np.interp(np.linspace(0, arc[-1], count), arc, fine)
    return PchipInterpolator(along, rows)(at), np.interp(at, along, np.arange(len(rows)))


def outline(half_width: FloatArray, half_depth: FloatArray, roundness: FloatArray, points: int) -> FloatArray:
    """Return outlines of rounded rectangles, counter-clockwise from the middle of the corner (+x, -y).

    Args:
        half_width: (K,) half widths along x [m].
        half_depth: (K,) half depths along y [m].
        roundness: (K,) corner radii as fractions of the half width and depth: 0 for a rectangle, 1 for an ellipse.
        points: Number of points, a multiple of 4.

    Returns:
        (K, points, 2) points [m].
    """
    per_corner = points // 4
    step = np.arange(points) + per_corner // 2
    corner = (step // per_corner - 1) % 4
    swing = (step % per_corner - (per_corner - 1) / 2) / per_corner * np.pi / 2
    angle = np.pi / 4 + corner * np.pi / 2 + swing
    sign = np.column_stack([np.where((corner == 0) | (corner == 3), 1, -1), np.where(corner < 2, 1, -1)])
    half = np.stack([half_width, half_depth], axis=-1)[:, None, :]
    share = roundness[:, None, None]
    return half * (sign * (1 - share) + share * np.stack([np.cos(angle), np.sin(angle)], axis=-1))


def envelope(rows: FloatArray, count: int) -> FloatArray:
    """Return the outermost profile (K, 4) over rising heights, without hollows at the ends.

    Args:
        rows: (N, 4) height, half width, half depth [m] and roundness.
        count: Number of evenly spaced heights; the heights of the rows are added.
    """
    low, high = rows[:, 0].min(), rows[:, 0].max()
    inset = (high - low) * 1e-4
    inner_low, inner_high = low + inset, high - inset
    own = np.clip(rows[:, 0], inner_low, inner_high)
    heights = np.unique(np.r_[np.linspace(inner_low, inner_high, count), own])
    result = np.zeros((len(heights), 4))
    for index, height in enumerate(heights):
        a, b = rows[:-1], rows[1:]
        crossing = (np.minimum(a[:, 0], b[:, 0]) <= height) & (np.maximum(a[:, 0], b[:, 0]) >= height)
        a, b = a[crossing], b[crossing]
        share = np.clip((height - a[:, 0]) / np.where(b[:, 0] == a[:, 0], 1, b[:, 0] - a[:, 0]), 0, 1)
        candidates = np.vstack([a + share[:, None] * (b - a), a[a[:, 0] == height], b[b[:, 0] == height]])
        result[index] = candidates[np.argmax(candidates[:, 1])]
        result[index, 0] = height
    return result
