"""What cameras saw as pictures for people: every modality, in colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.media.colormaps import depth_colors, flow_colors, mask_colors, normal_colors

if TYPE_CHECKING:
    from nimbus.datagen.arrays import ImageArray
    from nimbus.datagen.episode.observation import CameraFrames


def boxed(rgb: ImageArray, boxes: NDArray[np.float32], instance: NDArray[np.uint8]) -> ImageArray:
    """The picture with a frame around everything that is seen, in its colour of the instance mask."""
    picture = rgb.copy()
    height, width = rgb.shape[:2]
    for index in np.unique(instance):
        if index and index < len(boxes) and np.isfinite(boxes[index]).all():
            color = mask_colors(index)
            x_min, y_min, x_max, y_max = boxes[index].astype(int)
            x_max, y_max = min(x_max, width) - 1, min(y_max, height) - 1
            for rows, columns in (
                ((y_min, y_max), slice(x_min, x_max + 1)),
                (slice(y_min, y_max + 1), (x_min, x_max)),
            ):
                picture[rows, columns] = color
    return picture


_DRAWN: dict[str, Callable[[CameraFrames, int], ImageArray]] = {
    "rgb": lambda frames, step: frames.rgb[step],
    "depth": lambda frames, step: depth_colors(frames.depth[step]),
    "instance": lambda frames, step: mask_colors(frames.instance[step]),
    "semantic": lambda frames, step: mask_colors(frames.semantic[step]),
    "normals": lambda frames, step: normal_colors(frames.normals[step]),
    "boxes": lambda frames, step: boxed(frames.rgb[step], frames.boxes_2d[step], frames.instance[step]),
    "flow": lambda frames, step: flow_colors(frames.flow[step]) if frames.flow is not None else frames.rgb[step] * 0,
}
MODALITIES = tuple(_DRAWN)
"""Names of all pictures there can be of a step."""


def picture_of(frames: CameraFrames, step: int, wanted: str) -> ImageArray:
    """One modality of one step."""
    return _DRAWN[wanted](frames, step)
