"""Color maps that show depth, masks, normals and optical flow as sRGB images."""

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
"""Nine stops of the Turbo color map, near to far [sRGB levels, 0 to 255]."""
_HUES = (np.arange(256) * 0.381966) % 1.0
"""Hue of each instance number, in steps of the golden angle: neighboring numbers get very different hues."""
_INSTANCES = 255 * np.clip(np.abs((_HUES[:, None] * 6 + np.array([0, 4, 2])) % 6 - 3) - 1, 0, 1)
_MAX_FLOW = 8.0
"""Flow between two steps that is shown with full saturation [px]."""


def depth_colors(depth: NDArray[Any]) -> ImageArray:
    """Color a depth image from near (blue) to far (red), over the range of the image.

    Args:
        depth: (H, W) depth in any unit; 0 where the ray hit nothing.

    Returns:
        (H, W, 3) sRGB colors; black where the ray hit nothing.
    """
    hit = depth > 0
    near, far = np.percentile(depth[hit], (1, 99)) if hit.any() else (0.0, 1.0)
    place = np.clip((depth - near) / max(far - near, 1e-6), 0, 1) * (len(_TURBO) - 1)
    stops = np.arange(len(_TURBO))
    colors = np.stack([np.interp(place, stops, _TURBO[:, channel]) for channel in range(3)], axis=-1)
    return np.where(hit[..., None], colors, 0).astype(np.uint8)


def mask_colors(mask: NDArray[np.uint8]) -> ImageArray:
    """Color a mask by instance or class; the background (number 0) is black.

    Args:
        mask: (...) instance or class numbers.

    Returns:
        (..., 3) sRGB colors [levels, 0 to 255].
    """
    return np.where(mask[..., None] > 0, _INSTANCES[mask], 0).astype(np.uint8)


def mask_overlay(mask: NDArray[np.uint8], rgb: ImageArray) -> ImageArray:
    """Draw the instances of a mask in color over the gray version of an image.

    Args:
        mask: (H, W) instance numbers; 0 is the background.
        rgb: (H, W, 3) sRGB image.

    Returns:
        (H, W, 3) sRGB colors.
    """
    grey = np.repeat(rgb.mean(axis=-1, keepdims=True), 3, axis=-1)
    return np.where(mask[..., None] > 0, 0.3 * grey + 0.7 * _INSTANCES[mask], 0.5 * grey + 60).astype(np.uint8)


def normal_colors(normals: NDArray[np.int8]) -> ImageArray:
    """Map the components of normals from -128…127 to color levels 0…255.

    Args:
        normals: (H, W, 3) normals in the stored integer encoding.

    Returns:
        (H, W, 3) colors.
    """
    return (np.asarray(normals, dtype=np.int16) + 128).astype(np.uint8)


def flow_colors(flow: NDArray[np.float16]) -> ImageArray:
    """Color optical flow: the hue shows the direction, the saturation the length; white pixels do not move.

    Args:
        flow: (H, W, 2) flow to the right and down [px]; not finite where the ray hit nothing.

    Returns:
        (H, W, 3) sRGB colors; black where the ray hit nothing.
    """
    right, down = np.asarray(flow[..., 0], dtype=np.float64), np.asarray(flow[..., 1], dtype=np.float64)
    seen = np.isfinite(right) & np.isfinite(down)
    right, down = np.where(seen, right, 0.0), np.where(seen, down, 0.0)
    wheel = np.array([colorsys.hsv_to_rgb(hue / 256, 1.0, 1.0) for hue in range(256)])
    hue = ((np.arctan2(down, right) / (2 * np.pi)) % 1.0 * 255).astype(int)
    fraction = np.clip(np.hypot(right, down) / _MAX_FLOW, 0, 1)[..., None]
    return np.where(seen[..., None], 255 * (1 - fraction + fraction * wheel[hue]), 0).astype(np.uint8)
