"""Places for objects that start inside another one: in layers, from the floor of its cavity upwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.randomize.placement import NoRoomError

Float = NDArray[np.float64]

_GAP = 0.0008
"""[m] Between objects, and to the walls: they settle before anything is recorded."""


def fill(cavity: Float, models: Sequence[ObjectModel], rng: np.random.Generator) -> list[Float]:
    """Points (3,) in the frame of a container for the middles of objects.

    Args:
        cavity: (2, 3) lower and upper corner of the room inside [m]; only what is inside its ellipse is used.
        models: What is to be put there.
        rng: Decides which points of the last layer are taken.

    Raises:
        NoRoomError: They would not all be below the rim.
    """
    sizes = np.array([model.bounds[1] - model.bounds[0] for model in models])
    radius = float(np.linalg.norm(sizes[:, :2], axis=1).max() / 2) if not _round(models) else float(sizes.max() / 2)
    height = float(sizes[:, 2].max())
    low, high = cavity
    middle, half = (low + high)[:2] / 2, (high - low)[:2] / 2 - radius - _GAP
    if half.min() < 0.0:
        raise NoRoomError
    layer = _layer(half, 2 * radius + _GAP)
    points: list[Float] = []
    floor = low[2] + height / 2 + _GAP
    while len(points) < len(models):
        if floor + height / 2 > high[2]:
            raise NoRoomError
        points += [np.array([*(middle + layer[index]), floor]) for index in rng.permutation(len(layer))]
        floor += height + _GAP
    return points[: len(models)]


def _round(models: Sequence[ObjectModel]) -> bool:
    return all(model.ball > 0.0 for model in models)


def _layer(half: Float, pitch: float) -> Float:
    """Points (n, 2) of a square grid inside an ellipse, the one that holds most of some shifted grids."""
    best = np.zeros((1, 2))
    for shift in ((0.0, 0.0), (0.5, 0.5), (0.5, 0.0)):
        count = np.ceil(half / pitch).astype(int) + 1
        x, y = ((np.arange(-n, n + 1) + part) * pitch for n, part in zip(count, shift, strict=True))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        inside = grid[((grid / np.maximum(half, 1e-9)) ** 2).sum(axis=1) <= 1.0 + 1e-9]
        if len(inside) > len(best):
            best = inside
    return best
