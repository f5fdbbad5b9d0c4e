"""Filters of paths. A rejection contains the measured value and its limit, which the ledger records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.navigate.triangle_tests import CollisionMesh

_SWEPT = 0.02
"""Spacing of the positions along a drive at which the clearance is measured [m]."""
_REACH = 1.5
"""Upper limit of the measured clearance [m]."""


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """Rejection of a path by a filter."""

    reason: Reason
    detail: str
    """Measured value and its limit."""


def frechet(one: FloatArray, other: FloatArray) -> float:
    """Return the discrete Frechet distance between two paths (Eiter 1994) [m].

    Args:
        one: (n, 3) path [m]; at most 60 of its points are used.
        other: (m, 3) path [m]; at most 60 of its points are used.
    """
    one, other = (path[np.linspace(0, len(path) - 1, min(len(path), 60)).round().astype(int)] for path in (one, other))
    apart = np.linalg.norm(one[:, None] - other[None], axis=-1)
    if max(apart[0, 0], apart[-1, -1]) > 1.0:
        return float(max(apart[0, 0], apart[-1, -1]))  # this lower bound already exceeds the limits of tasks
    best = np.empty_like(apart)
    best[0] = np.maximum.accumulate(apart[0])
    best[:, 0] = np.maximum.accumulate(apart[:, 0])
    for row in range(1, len(apart)):
        for column in range(1, apart.shape[1]):
            before = min(best[row - 1, column], best[row, column - 1], best[row - 1, column - 1])
            best[row, column] = max(before, apart[row, column])
    return float(best[-1, -1])


def swept_clearance(mesh: CollisionMesh, feet: FloatArray, *, step: float, height: float) -> FloatArray:
    """Measure the smallest clearance between each row of a drive and the next, against the triangles of the scene.

    Args:
        mesh: Triangles of the scene.
        feet: (T, 3) positions of the body's foot [m].
        step: Height above the foot from which triangles count [m].
        height: Height of the body [m].

    Returns:
        (T,) clearances [m].
    """
    apart = np.linalg.norm(np.diff(feet, axis=0), axis=1)
    counts = np.append(np.maximum(np.ceil(apart / _SWEPT), 1).astype(int), 1)
    row = np.repeat(np.arange(len(feet)), counts)
    share = (np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[row]
    after = np.minimum(row + 1, len(feet) - 1)
    places = feet[row] + share[:, None] * (feet[after] - feet[row])
    measured = mesh.clearance(places, low=step, high=height, reach=_REACH)
    return np.minimum.reduceat(measured, np.cumsum(counts) - counts).astype(float)


def check_clearance(clearance: FloatArray, *, least: float) -> Rejection | None:
    """Reject a path whose smallest clearance is below ``least`` [m]."""
    if (found := float(clearance.min())) < least:
        return Rejection(reason=Reason.TOO_CLOSE, detail=f"clearance {found:.3f} m, at least {least:.3f} m")
    return None


def check_arrival(end: FloatArray, goal: FloatArray, *, most: float = 0.15) -> Rejection | None:
    """Reject a drive that ends farther than ``most`` [m] from its goal, horizontally."""
    if (found := float(np.linalg.norm(end[:2] - goal[:2]))) > most:
        return Rejection(reason=Reason.UNREACHABLE, detail=f"{found:.2f} m from the goal, at most {most:.2f} m")
    return None


def refusal(text: str) -> Rejection:
    """Convert :attr:`NavigationGoal.refused` to a rejection."""
    name, _, detail = text.partition(": ")
    return Rejection(reason=Reason(name), detail=detail)
