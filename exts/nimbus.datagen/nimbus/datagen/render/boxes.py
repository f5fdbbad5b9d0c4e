# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Tight bounding boxes of the instances in a mask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

wp.set_module_options({"enable_backward": False})


@wp.kernel
def _measure(
    instance: wp.array(dtype=wp.uint8),
    width: int,
    height: int,
    count: int,
    pixels: wp.array(dtype=wp.int32),
    lower: wp.array2d(dtype=wp.int32),
    upper: wp.array2d(dtype=wp.int32),
):
    """Measure one line per thread; consecutive pixels of one instance are counted together."""
    line = wp.tid()
    y = line % height
    first = wp.int32(0)
    for x in range(width):
        here = instance[line * width + x]
        if x + 1 == width or instance[line * width + x + 1] != here:
            place = (line // height) * count + wp.int32(here)
            # A run needs five atomics, however long it is; atomics for each pixel would collide far more often.
            wp.atomic_add(pixels, place, x + 1 - first)
            wp.atomic_min(lower, place, 0, first)
            wp.atomic_min(lower, place, 1, y)
            wp.atomic_max(upper, place, 0, x + 1)
            wp.atomic_max(upper, place, 1, y + 1)
            first = x + 1


@dataclass(frozen=True, kw_only=True)
class MeasuredBoxes:
    """Boxes and pixel counts of N instances in K masks, on the device; the values of each mask are contiguous."""

    steps: int
    pixels: wp.array
    lower: wp.array
    upper: wp.array

    def read(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return tight boxes (K, N, 4) [px] and pixel counts (K, N); boxes of invisible instances are NaN."""
        seen = self.pixels.numpy().astype(np.int64)
        boxes = np.concatenate([self.lower.numpy(), self.upper.numpy()], axis=1).astype(np.float32)
        boxes[seen == 0] = np.nan
        return boxes.reshape(self.steps, -1, 4), seen.reshape(self.steps, -1)


def measure_boxes(instance: wp.array, steps: int, width: int, height: int, *, count: int) -> MeasuredBoxes:
    """Begin to measure the boxes of the N instances in K masks.

    Args:
        instance: At least K * height * width pixels on a device, mask after mask.
        steps: K, the number of masks.
        width: Width [px].
        height: Height [px].
        count: N, the number of instances.
    """
    device, size = instance.device, steps * count
    pixels = wp.zeros(size, dtype=wp.int32, device=device)
    lower = wp.full((size, 2), max(width, height), dtype=wp.int32, device=device)
    upper = wp.zeros((size, 2), dtype=wp.int32, device=device)
    inputs = [instance, width, height, count, pixels, lower, upper]
    # Atomic minima, maxima and sums of integers give the same result in any order of threads.
    wp.launch(_measure, dim=steps * height, inputs=inputs, device=device)
    return MeasuredBoxes(steps=steps, pixels=pixels, lower=lower, upper=upper)
