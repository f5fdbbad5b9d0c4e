"""Shots of cameras: poses of a camera at several states, and its frames from rendered images."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray, IntArray
from nimbus.datagen.episode.layout import Camera, Modality
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.geometry import cameras
from nimbus.datagen.render.boxes import MeasuredBoxes, measure_boxes
from nimbus.datagen.render.camera_model.flow import flow_to_next
from nimbus.datagen.render.camera_model.keypoint_places import with_keypoints
from nimbus.datagen.render.host_buffers import HostBuffers
from nimbus.datagen.render.layout_states import LayoutStates
from nimbus.datagen.render.loaded_layout import LoadedLayout

_IMAGES: Mapping[str, Any] = {
    "rgb": np.uint8,
    "depth": np.float32,
    "instance": np.uint8,
    "semantic": np.uint8,
    "normals": np.int8,
    "mesh": np.int32,
}
"""Types of the images of the kernels, by name."""


class CameraShot:
    """Camera of a layout at K states.

    Args:
        layout: The layout.
        camera: One of its cameras.
        states: States of the layout.
        place: Position of these states among all states that are rendered together.
        start: Index of their first step among all steps that are rendered together.
        made: Modalities to make.
    """

    def __init__(
        self,
        layout: LoadedLayout,
        camera: Camera,
        states: LayoutStates,
        *,
        place: int,
        start: int,
        made: tuple[Modality, ...],
    ) -> None:
        self.layout, self.camera, self.states = layout, camera, states
        self.place, self.start, self.made = place, start, made
        self.lens = layout.lenses.get(camera.name)
        self.pinhole = self.lens.pinhole if self.lens else camera
        self.positions, self.wxyz = cameras.camera_poses(camera, states.rows, states.positions, states.wxyz)

    @cached_property
    def group(self) -> tuple[str, int, int, int, bool, tuple[Modality, ...]]:
        """Key of the shots that can be rendered in one launch."""
        camera = self.pinhole
        samples = camera.sensor.antialiasing
        return camera.name, camera.width, camera.height, samples, bool(camera.mount), self.made

    def __len__(self) -> int:
        return len(self.states)


class ShotImages:
    """Images of V views of one size, which are copied from a device.

    Args:
        images: ``Images`` of the kernels, which the next launch overwrites.
        count: Number V of views.
        width: Width [px].
        height: Height [px].
        rgb: (V, H, W, 3) antialiased colors, in place of those of the images.
    """

    def __init__(
        self, images: Any, count: int, width: int, height: int, *, rgb: NDArray[np.uint8] | None = None
    ) -> None:
        self._images, self._shape = images, (count, height, width)
        self._hosted: dict[str, NDArray[Any]] = {} if rgb is None else {"rgb": rgb}
        self._boxes: MeasuredBoxes | None = None
        self.poses: FloatArray = np.zeros((count, 4, 4))
        """(V, 4, 4) ``world_T_camera`` of each view, OpenCV axes."""
        self.areas: wp.array | None = None
        """(V, T) areas that rigid instances would cover without occlusion [px], on the device."""

    def fetch(self, names: Collection[str], buffers: HostBuffers | None) -> None:
        """Begin to copy images to the host; they are complete when the device has finished.

        Args:
            names: Names of the images in ``Images``.
            buffers: Buffers for images of a GPU; None for a CPU.
        """
        for name in _IMAGES:
            flat, channels = getattr(self._images, name), 3 if name in ("rgb", "normals") else 1
            size = channels * int(np.prod(self._shape))
            shape = self._shape if channels == 1 else (*self._shape, channels)
            if name in self._hosted:
                continue
            if name not in names or not len(flat):
                self._hosted[name] = np.zeros((0, *shape[1:]), dtype=_IMAGES[name])
            elif buffers is None:
                self._hosted[name] = flat[:size].numpy().reshape(shape).copy()
            else:
                self._hosted[name] = buffers.fetch(flat, size).reshape(shape)

    def measure_boxes(self, count: int) -> None:
        """Begin to find the boxes and numbers of pixels of ``count`` instances in all views."""
        views, height, width = self._shape
        self._boxes = measure_boxes(self._images.instance, views, width, height, count=count)

    @cached_property
    def all_boxes(self) -> tuple[NDArray[np.float32], IntArray] | None:
        """(V, N, 4) boxes [px] and (V, N) numbers of pixels; None if they were not measured."""
        return None if self._boxes is None else self._boxes.read()

    @cached_property
    def all_areas(self) -> FloatArray:
        """Values of :attr:`areas`; they have no columns if they were not measured."""
        if self.areas is None:
            return np.zeros((self._shape[0], 0))
        return np.asarray(self.areas.numpy(), dtype=np.float64)

    def boxes(self, rows: slice, count: int) -> tuple[NDArray[np.float32], IntArray]:
        """Return boxes (K, N, 4) [px] and numbers of pixels (K, N) of N instances; NaN and 0 where not measured."""
        if self.all_boxes is None:
            views = rows.stop - rows.start
            return np.full((views, count, 4), np.nan, dtype=np.float32), np.zeros((views, count), dtype=np.int64)
        boxes, pixels = self.all_boxes
        return boxes[rows, :count], pixels[rows, :count]

    def take(self, name: str, rows: slice) -> NDArray[Any]:
        """Return an image (K, H, W, …) of some views; it has no rows if it was not copied."""
        return self._hosted[name][rows]


def needed_images(made: Collection[Modality]) -> set[str]:
    """Return the images that the modalities of a camera need on the host."""
    needed = {"rgb", *made} & {*_IMAGES}
    if {"flow", "keypoints"} & {*made}:
        needed |= {"depth", "mesh"}
    # With a lens, boxes are found in the distorted masks.
    return needed | {"instance"} if "boxes" in made else needed


def finish_shot(
    shot: CameraShot, images: ShotImages, start: int, *, mesh_bodies: IntArray | None = None
) -> CameraFrames:
    """Return the frames of a shot, with its lens and sensor applied.

    Args:
        shot: The shot.
        images: Images of its group.
        start: Its first view.
        mesh_bodies: Row of the body of each mesh, -1 for none; needed for flow.
    """
    states, made, labels = shot.states, shot.made, shot.layout.labels
    rows = slice(start, start + len(shot))
    matrix, pose = cameras.intrinsics(shot.pinhole), images.poses[rows]
    boxes, pixels = images.boxes(rows, len(labels.instance_names))
    visibility = np.full(pixels.shape, np.nan, dtype=np.float32)
    if "visibility" in made:
        visibility = _visibility(shot, pixels, images.all_areas[rows])
    frames = CameraFrames(
        rgb=images.take("rgb", rows),
        depth=images.take("depth", rows),
        instance=images.take("instance", rows),
        semantic=images.take("semantic", rows),
        normals=images.take("normals", rows),
        boxes_2d=boxes,
        visibility=visibility,
        intrinsics=matrix,
        world_T_camera=pose,
    )
    if mesh_bodies is not None:
        # The last entry is that of pixels without a mesh, which have the number -1.
        row_of_mesh = np.append(mesh_bodies, -1).astype(np.int16)
        body = row_of_mesh[images.take("mesh", rows)]
        now, none = (states.positions, states.wxyz), (states.positions[:0], states.wxyz[:0])
        flow = flow_to_next(frames, body, shot.pinhole, states.names, now, states.following or none)
        frames = replace(frames, flow=flow)
    if "keypoints" in made and labels.keypoints is not None:
        frames = with_keypoints(frames, labels.keypoints, states.rows, states.positions, states.wxyz)
    frames = (shot.lens.bend(frames) if shot.lens else frames).only(made)
    sensor = shot.layout.sensors.get(shot.camera.name)
    return sensor.take(frames, first_step=states.first_step) if sensor else frames


def _visibility(shot: CameraShot, pixels: IntArray, areas: FloatArray) -> NDArray[np.float32]:
    """Return the visible pixels divided by the areas (K, N); NaN for instances without an outline."""
    visibility, places = np.full(pixels.shape, np.nan, dtype=np.float32), [*shot.layout.outlines]
    visibility[:, places] = np.clip(pixels[:, places] / np.maximum(areas[:, : len(places)], 1.0), 0.0, 1.0)
    return visibility
