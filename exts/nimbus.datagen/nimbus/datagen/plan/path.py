"""Paths of straight edges between postures: collision checks and simplification."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from nimbus.datagen.arrays import FloatArray

IsFree = Callable[[FloatArray], bool]
"""Predicate of a posture: True if the arm is free of collision."""


@lru_cache(maxsize=512)
def _bisection_order(count: int) -> FloatArray:
    """Return the fractions that divide an edge into ``count`` parts, coarse to fine, so that hits are found early."""
    order: list[int] = []
    spans = [(0, count)]
    for low, high in spans:
        middle = (low + high) // 2
        if low < middle < high:
            order.append(middle)
            spans += [(low, middle), (middle, high)]
    return np.array(order, dtype=float)[:, None] / count


def edge_is_free(start: FloatArray, end: FloatArray, is_free: IsFree, *, step: float = 0.03) -> bool:
    """Return True if the interior of a straight edge is free; its ends must be known to be free.

    Args:
        start: (J,) posture at one end [rad or m].
        end: (J,) posture at the other end [rad or m].
        is_free: Predicate of a posture (J,) [rad or m]: true where the arm is free.
        step: Largest distance between the postures that are checked [rad].
    """
    count = int(np.ceil(np.linalg.norm(end - start) / step))
    return all(map(is_free, start + _bisection_order(count) * (end - start)))


def path_is_free(path: FloatArray, is_free: IsFree, *, step: float = 0.02) -> bool:
    """Return True if a path (P, J) of straight edges is free, its points included."""
    return all(map(is_free, path)) and all(
        edge_is_free(one, other, is_free, step=step) for one, other in zip(path[:-1], path[1:], strict=True)
    )


def path_length(path: FloatArray) -> float:
    """Return the total length [rad] of the edges of a path (P, J) [rad or m]."""
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def thin_path(path: FloatArray, *, tolerance: float = 1e-3) -> FloatArray:
    """Remove the points of a dense path that are close to the edge between the points that remain.

    Args:
        path: (P, J) postures [rad or m].
        tolerance: Largest distance of a point from that edge [rad].

    Returns:
        (Q, J) postures, Q <= P, including the first and the last one [rad or m].
    """
    if len(path) < 3:
        return path
    edge = path[-1] - path[0]
    along = np.clip((path - path[0]) @ edge / max(edge @ edge, 1e-12), 0.0, 1.0)
    away = np.linalg.norm(path[0] + along[:, None] * edge - path, axis=1)
    middle = int(away.argmax())
    if away[middle] < tolerance:
        return path[[0, -1]]
    return np.vstack(
        [thin_path(path[: middle + 1], tolerance=tolerance)[:-1], thin_path(path[middle:], tolerance=tolerance)]
    )


def reduce_path(path: FloatArray, is_free: IsFree, *, step: float = 0.03) -> FloatArray:
    """Remove points that a free straight edge can skip; the longest edges are tried first.

    Args:
        path: (P, J) postures [rad or m].
        is_free: Predicate of a posture (J,) [rad or m]: true where the arm is free.
        step: Largest distance between the postures of an edge that are checked [rad].

    Returns:
        (Q, J) postures, Q <= P, including the first and the last one [rad or m].
    """
    kept = [path[0]]
    index = 0
    while index < len(path) - 1:
        following = len(path) - 1
        while following > index + 1 and not edge_is_free(path[index], path[following], is_free, step=step):
            following -= 1
        kept.append(path[following])
        index = following
    return np.array(kept)


def shortcut_path(
    path: FloatArray, is_free: IsFree, *, rng: np.random.Generator, attempts: int = 30, step: float = 0.03
) -> FloatArray:
    """Replace random stretches of a path by straight edges where these are free.

    Args:
        path: (P, J) postures [rad or m].
        is_free: Predicate of a posture (J,) [rad or m]: true where the arm is free.
        rng: Draws the stretches.
        attempts: Number of stretches that are tried.
        step: Largest distance between the postures of an edge that are checked [rad].

    Returns:
        (Q, J) postures, the first and the last ones unchanged [rad or m].
    """
    for _ in range(attempts):
        if len(path) < 3:
            break
        lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
        ends = np.concatenate([[0.0], np.cumsum(lengths)])
        low, high = np.sort(rng.uniform(0.0, ends[-1], size=2))
        first, last = np.searchsorted(ends, [low, high], side="right") - 1
        first, last = int(first), min(int(last), len(lengths) - 1)
        if first == last:
            continue
        start = path[first] + (low - ends[first]) / lengths[first] * (path[first + 1] - path[first])
        end = path[last] + (high - ends[last]) / lengths[last] * (path[last + 1] - path[last])
        if edge_is_free(start, end, is_free, step=step):
            path = np.vstack([path[: first + 1], start, end, path[last + 1 :]])
    return path
