"""What cameras saw as pictures for people: every modality, in colours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.observation import CameraFrames

Picture = NDArray[np.uint8]
"""(H, W, 3) sRGB"""

_PALETTE = np.random.default_rng(7).integers(60, 255, (256, 3)).astype(np.uint8)
_PALETTE[0] = 0
_FASTEST = 8.0
"""[px] of flow between two steps that is drawn in full colour."""


def depth_colors(depth: NDArray[np.float32]) -> Picture:
    """Near is light, far is dark, black is nothing."""
    seen = depth > 0
    if not seen.any():
        return np.zeros((*depth.shape, 3), dtype=np.uint8)
    near, far = np.percentile(depth[seen], (1, 99))
    share = np.clip((depth - near) / max(float(far - near), 1e-6), 0, 1)
    tones = np.stack([250 - 200 * share, 235 - 190 * share, 210 - 110 * share], axis=-1)
    return np.where(seen[..., None], tones, 0).astype(np.uint8)


def flow_colors(flow: NDArray[np.float16]) -> Picture:
    """The hue is the direction, white does not move, black is nothing."""
    import colorsys

    right, down = np.asarray(flow[..., 0], dtype=np.float64), np.asarray(flow[..., 1], dtype=np.float64)
    seen = np.isfinite(right) & np.isfinite(down)
    right, down = np.where(seen, right, 0.0), np.where(seen, down, 0.0)
    wheel = np.array([colorsys.hsv_to_rgb(hue / 256, 1.0, 1.0) for hue in range(256)])
    hue = ((np.arctan2(down, right) / (2 * np.pi)) % 1.0 * 255).astype(int)
    share = np.clip(np.hypot(right, down) / _FASTEST, 0, 1)[..., None]
    return np.where(seen[..., None], 255 * (1 - share + share * wheel[hue]), 0).astype(np.uint8)


def boxed(rgb: Picture, boxes: NDArray[np.float32], instance: NDArray[np.uint8]) -> Picture:
    """The picture with a frame around everything that is seen, in its colour of the instance mask."""
    picture = rgb.copy()
    height, width = rgb.shape[:2]
    for index in np.unique(instance):
        if index and index < len(boxes) and np.isfinite(boxes[index]).all():
            x_min, y_min, x_max, y_max = boxes[index].astype(int)
            x_max, y_max = min(x_max, width) - 1, min(y_max, height) - 1
            for rows, columns in (
                ((y_min, y_max), slice(x_min, x_max + 1)),
                (slice(y_min, y_max + 1), (x_min, x_max)),
            ):
                picture[rows, columns] = _PALETTE[index]
    return picture


def _normals(frames: CameraFrames, step: int) -> Picture:
    return ((np.asarray(frames.normals[step], dtype=np.int16) + 128) % 256).astype(np.uint8)


_DRAWN: dict[str, Callable[[CameraFrames, int], Picture]] = {
    "rgb": lambda frames, step: frames.rgb[step],
    "depth": lambda frames, step: depth_colors(frames.depth[step]),
    "instance": lambda frames, step: _PALETTE[frames.instance[step]],
    "semantic": lambda frames, step: _PALETTE[frames.semantic[step]],
    "normals": _normals,
    "boxes": lambda frames, step: boxed(frames.rgb[step], frames.boxes_2d[step], frames.instance[step]),
    "flow": lambda frames, step: flow_colors(frames.flow[step]) if frames.flow is not None else frames.rgb[step] * 0,
}
MODALITIES = tuple(_DRAWN)
"""Names of all pictures there can be of a step."""


def picture_of(frames: CameraFrames, step: int, wanted: str) -> Picture:
    """One modality of one step."""
    return _DRAWN[wanted](frames, step)
