"""Shots of cameras: where a camera is at some states, and its frames from rendered images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray, IntArray
from nimbus.datagen.episode.layout import Camera, Modality
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.geometry import cameras
from nimbus.datagen.render.boxes import visible_boxes
from nimbus.datagen.render.camera_model.flow import flow_to_next
from nimbus.datagen.render.camera_model.keypoint_places import with_keypoints
from nimbus.datagen.render.layout_states import LayoutStates, turned_points
from nimbus.datagen.render.loaded_layout import LoadedLayout
from nimbus.datagen.render.silhouette import silhouette_areas


class CameraShot:
    """Camera of a layout at K states.

    Args:
        layout: The layout.
        camera: One of its cameras.
        states: States of the layout.
        place: Place of the states among all that are rendered together.
        start: Number of their first step among all.
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
        """Shots of equal groups can be rendered in one launch."""
        camera = self.pinhole
        samples = camera.sensor.antialiasing
        return camera.name, camera.width, camera.height, samples, bool(camera.mount), self.made

    def __len__(self) -> int:
        return len(self.states)


class ShotImages:
    """Images of V views of one size, on the device until they are asked for.

    Args:
        images: ``Images`` of the kernels, which the next launch overwrites.
        count: V
        width: [px]
        height: [px]
        rgb: (V, H, W, 3) antialiased colors, in place of those of the images.
    """

    def __init__(
        self, images: Any, count: int, width: int, height: int, *, rgb: NDArray[np.uint8] | None = None
    ) -> None:
        self._images, self._shape = images, (count, height, width)
        self._hosted: dict[str, NDArray[Any]] = {} if rgb is None else {"rgb": rgb}
        self._boxes: tuple[NDArray[np.float32], IntArray] | None = None

    def find_boxes(self, count: int) -> None:
        """Find the boxes and numbers of pixels of ``count`` instances in all views."""
        views, height, width = self._shape
        self._boxes = visible_boxes(self._images.instance, views, width, height, count=count)

    def boxes(self, rows: slice, count: int) -> tuple[NDArray[np.float32], IntArray]:
        """Return boxes (K, N, 4) [px] and numbers of pixels (K, N) of N instances; NaN and 0 where not found before."""
        if self._boxes is None:
            views = rows.stop - rows.start
            return np.full((views, count, 4), np.nan, dtype=np.float32), np.zeros((views, count), dtype=np.int64)
        boxes, pixels = self._boxes
        return boxes[rows, :count], pixels[rows, :count]

    def take(self, name: str, rows: slice) -> NDArray[Any]:
        """Return an image (K, H, W, …) of some views, as an array of its own."""
        if name not in self._hosted:
            flat = getattr(self._images, name)
            pixels = int(np.prod(self._shape))
            channels = 3 if name in ("rgb", "normals") else 1
            shape = self._shape if channels == 1 else (*self._shape, channels)
            values = (
                flat[: pixels * channels].numpy().reshape(shape) if len(flat) else np.zeros((0, *shape[1:]), np.int8)
            )
            # On a CPU it is a view of a buffer that the next launch overwrites; from a GPU it comes as a copy.
            self._hosted[name] = values.copy() if flat.device.is_cpu else values
        return self._hosted[name][rows]


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
    matrix, pose = cameras.intrinsics(shot.pinhole), cameras.world_T_camera(shot.positions, shot.wxyz)
    boxes, pixels = images.boxes(rows, len(labels.instance_names))
    visibility = np.full(pixels.shape, np.nan, dtype=np.float32)
    if "visibility" in made:
        visibility = _visibility(shot, pixels, pose, matrix)
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


def _visibility(shot: CameraShot, pixels: IntArray, pose: FloatArray, matrix: FloatArray) -> NDArray[np.float32]:
    visibility = np.full(pixels.shape, np.nan, dtype=np.float32)
    outlines = shot.layout.outlines
    if not outlines:
        return visibility
    bodies: Sequence[str] = [body for body, _ in outlines.values()]
    world = turned_points(shot.states, bodies, np.stack([points for _, points in outlines.values()]))
    count, things, corners, _ = world.shape
    size = {"width": shot.pinhole.width, "height": shot.pinhole.height}
    poses = np.repeat(pose, things, axis=0)
    areas = silhouette_areas(world.reshape(-1, corners, 3), poses, matrix, **size).reshape(count, things)
    places = [*outlines]
    visibility[:, places] = np.clip(pixels[:, places] / np.maximum(areas, 1.0), 0.0, 1.0)
    return visibility
