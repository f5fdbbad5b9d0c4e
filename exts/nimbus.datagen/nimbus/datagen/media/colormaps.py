"""Color maps: depth, masks, normals and optical flow as sRGB pictures."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import ImageArray

_TURBO = np.array(
    [[48, 18, 59], [70, 107, 227], [40, 187, 236], [49, 242, 153], [162, 252, 60], [237, 208, 58], [251, 128, 34]]
    + [[210, 49, 5], [122, 4, 3]],
    dtype=np.float64,
)
"""Nine stops of the Turbo color map, near to far."""
_HUES = (np.arange(256) * 0.381966) % 1.0
"""Steps of the golden angle: neighboring numbers get hues that are far apart."""
_INSTANCES = 255 * np.clip(np.abs((_HUES[:, None] * 6 + np.array([0, 4, 2])) % 6 - 3) - 1, 0, 1)
_MAX_FLOW = 8.0
"""Flow between two steps that is drawn in full color [px]."""


def depth_colors(depth: NDArray[Any]) -> ImageArray:
    """Color depth from near (blue) to far (red) over the range of the picture; black where nothing was hit.

    Args:
        depth: (H, W) in any unit, 0 where nothing was hit.
    """
    hit = depth > 0
    near, far = np.percentile(depth[hit], (1, 99)) if hit.any() else (0.0, 1.0)
    place = np.clip((depth - near) / max(far - near, 1e-6), 0, 1) * (len(_TURBO) - 1)
    stops = np.arange(len(_TURBO))
    colors = np.stack([np.interp(place, stops, _TURBO[:, channel]) for channel in range(3)], axis=-1)
    return np.where(hit[..., None], colors, 0).astype(np.uint8)


def mask_colors(mask: NDArray[np.uint8]) -> ImageArray:
    """Color each number of a mask; the background, 0, is black.

    Args:
        mask: (...) numbers of instances or classes [no unit].

    Returns:
        (..., 3) sRGB colors [levels, 0 to 255].
    """
    return np.where(mask[..., None] > 0, _INSTANCES[mask], 0).astype(np.uint8)


def mask_overlay(mask: NDArray[np.uint8], rgb: ImageArray) -> ImageArray:
    """Color each instance of a mask over a gray image.

    Args:
        mask: (H, W) numbers of instances.
        rgb: (H, W, 3) the image.
    """
    grey = np.repeat(rgb.mean(axis=-1, keepdims=True), 3, axis=-1)
    return np.where(mask[..., None] > 0, 0.3 * grey + 0.7 * _INSTANCES[mask], 0.5 * grey + 60).astype(np.uint8)


def normal_colors(normals: NDArray[np.int8]) -> ImageArray:
    """Color normals: -128 to 127 of each axis becomes 0 to 255.

    Args:
        normals: (H, W, 3)
    """
    return (np.asarray(normals, dtype=np.int16) + 128).astype(np.uint8)


def flow_colors(flow: NDArray[np.float16]) -> ImageArray:
    """Color optical flow: the hue is the direction, white does not move, black is nothing.

    Args:
        flow: (H, W, 2) right and down [px], not finite where nothing was hit.
    """
    right, down = np.asarray(flow[..., 0], dtype=np.float64), np.asarray(flow[..., 1], dtype=np.float64)
    seen = np.isfinite(right) & np.isfinite(down)
    right, down = np.where(seen, right, 0.0), np.where(seen, down, 0.0)
    wheel = np.array([colorsys.hsv_to_rgb(hue / 256, 1.0, 1.0) for hue in range(256)])
    hue = ((np.arctan2(down, right) / (2 * np.pi)) % 1.0 * 255).astype(int)
    fraction = np.clip(np.hypot(right, down) / _MAX_FLOW, 0, 1)[..., None]
    return np.where(seen[..., None], 255 * (1 - fraction + fraction * wheel[hue]), 0).astype(np.uint8)
