"""From raw render outputs to labelled frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MISS = 0xFFFF
"""Shape index written where a ray hits nothing."""


def instance_table(shape_instances: NDArray[np.uint8], worlds: int) -> NDArray[np.uint8]:
    """Instance of every model-wide shape index, the background for a miss."""
    table = np.zeros(MISS + 1, dtype=np.uint8)
    tiled = np.tile(shape_instances, worlds)
    table[: len(tiled)] = tiled
    return table


def pack_normals(normals: NDArray[np.float32]) -> NDArray[np.int8]:
    """Unit vectors to int8, scaled by 127."""
    return np.rint(normals * np.float32(127.0)).astype(np.int8)


def visible_boxes(instance: NDArray[np.uint8], count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Tight boxes (K, N, 4) [px] and pixel counts (K, N) of the instances in masks (K, H, W).

    Instances that are not seen have NaN boxes.
    """
    steps, height, width = instance.shape
    key = instance.astype(np.int64)
    key += (np.arange(steps) * count)[:, None, None]
    columns = np.bincount((key * width + np.arange(width)).ravel(), minlength=steps * count * width)
    rows = np.bincount((key * height + np.arange(height)[:, None]).ravel(), minlength=steps * count * height)
    columns = columns.reshape(steps, count, width)
    pixels = columns.sum(axis=-1)
    x_min, x_max = _extent(columns > 0)
    y_min, y_max = _extent(rows.reshape(steps, count, height) > 0)
    boxes = np.stack([x_min, y_min, x_max, y_max], axis=-1).astype(np.float32)
    boxes[pixels == 0] = np.nan
    return boxes, pixels


def _extent(occupied: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first = occupied.argmax(axis=-1)
    last = occupied.shape[-1] - occupied[..., ::-1].argmax(axis=-1)
    return first, last
