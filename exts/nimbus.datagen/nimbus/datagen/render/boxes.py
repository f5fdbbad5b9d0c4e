"""Tight boxes around what is seen in a mask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
