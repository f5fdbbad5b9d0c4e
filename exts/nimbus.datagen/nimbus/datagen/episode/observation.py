"""Images and labels of a few consecutive steps of one episode, for all cameras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Modality


@dataclass(frozen=True, kw_only=True)
class CameraFrames:
    """Images of one camera in ``K`` consecutive steps, with ``N`` labeled instances (index 0 is the background).

    An array other than ``rgb`` has no rows if the camera does not store that modality.
    """

    rgb: NDArray[np.uint8]
    """(K, H, W, 3) sRGB."""
    depth: NDArray[np.float32]
    """(K, H, W) depth along the optical axis [m]; 0 where nothing was hit."""
    instance: NDArray[np.uint8]
    """(K, H, W) index into the episode's instance names."""
    semantic: NDArray[np.uint8]
    """(K, H, W) index into the episode's semantic names."""
    normals: NDArray[np.int8]
    """(K, H, W, 3) unit normals in the world frame, times 127; 0 where nothing was hit."""
    boxes_2d: NDArray[np.float32]
    """(K, N, 4) tight box of the visible part [px]: x_min, y_min, x_max, y_max (exclusive); NaN if not visible."""
    visibility: NDArray[np.float32]
    """(K, N) visible pixels divided by the area of the projected convex outline within the image, from 0 to 1.

    NaN for instances without an outline: the robot and static parts."""
    intrinsics: NDArray[np.float64]
    """(3, 3) pinhole matrix [px]."""
    world_T_camera: NDArray[np.float64]
    """(K, 4, 4) pose of the camera, OpenCV axes (+Z forward, +Y down)."""
    flow: NDArray[np.float16] | None = None
    """(K, H, W, 2) displacement of each point's pixel to the next step, right and down [px]; None if not requested.

    NaN where nothing was hit, and in the last step of an episode."""
    keypoints_3d: NDArray[np.float32] | None = None
    """(K, Q, 3) positions in the frame of the camera, OpenCV axes [m]; None if not requested."""
    keypoints_2d: NDArray[np.float32] | None = None
    """(K, Q, 2) column and row [px], also outside the image and behind other surfaces; NaN behind the camera."""
    keypoint_visibility: NDArray[np.uint8] | None = None
    """(K, Q) visibility: 2 for visible, 1 for hidden behind a surface, 0 for outside the image."""

    @classmethod
    def join(cls, frames: Sequence[CameraFrames]) -> CameraFrames:
        """Join frames of consecutive steps of one camera."""
        first, optional = frames[0], ("flow", "keypoints_3d", "keypoints_2d", "keypoint_visibility")
        names = [field.name for field in fields(cls) if field.name != "intrinsics"]
        stored = [name for name in names if name not in optional or getattr(first, name) is not None]
        return replace(first, **{name: np.concatenate([getattr(one, name) for one in frames]) for name in stored})

    def only(self, modalities: Sequence[Modality]) -> CameraFrames:
        """Keep the modalities that a camera stores; the arrays of other modalities lose their rows."""
        arrays = {name for modality, name in ARRAYS.items() if modality not in modalities}
        return replace(self, **{name: getattr(self, name)[:0] for name in arrays})


ARRAYS: dict[Modality, str] = {
    "rgb": "rgb",
    "depth": "depth",
    "instance": "instance",
    "semantic": "semantic",
    "normals": "normals",
    "boxes": "boxes_2d",
    "visibility": "visibility",
}
"""Field of :class:`CameraFrames` for each modality that is stored by default."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Steps ``[start, start + K)`` of an episode, for all cameras."""

    start: int
    cameras: dict[str, CameraFrames]

    @property
    def step_count(self) -> int:
        """Number K of steps."""
        return len(next(iter(self.cameras.values())).rgb)


@dataclass(frozen=True, kw_only=True)
class Keypoints:
    """Q named points of an episode, each fixed to a body."""

    names: tuple[str, ...]
    """Names, such as ``items_0.top`` or ``gripper.tool``."""
    bodies: tuple[str, ...]
    """Trajectory body to which each point is fixed."""
    instances: NDArray[np.uint8]
    """(Q,) instance in the masks to which each point belongs."""
    positions: NDArray[np.float64]
    """(Q, 3) positions in the frame of the body [m]."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Meaning of the indices in an episode's masks, and 3D boxes of the instances."""

    instance_names: tuple[str, ...]
    """Index 0 is ``background``."""
    instance_bodies: tuple[str, ...]
    """Trajectory body with which each instance moves; empty for static instances."""
    instance_semantics: NDArray[np.uint8]
    """(N,) semantic index of each instance."""
    semantic_names: tuple[str, ...]
    """Index 0 is ``background``."""
    boxes_3d: NDArray[np.float64]
    """(N, 2, 3) lower and upper corner in the frame of the instance's body [m]; NaN for the background."""
    keypoints: Keypoints | None = None
    """Keypoints of objects and grippers; None if no camera stores them."""
