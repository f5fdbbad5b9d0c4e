"""Encoder of one episode into an HDF5 file and its cameras' videos, chunk by chunk, with its content hash."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Camera, Layout, PhysicalLayout, PlacedObject, Sensor
from nimbus.datagen.episode.observation import ARRAYS, CameraFrames, Labels, Observation
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import RelationSpan, SkillSegment, Trajectory
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import remove_file
from nimbus.datagen.random_streams import RUN
from nimbus.datagen.store.episode_file.content_hash import ContentHash
from nimbus.datagen.store.episode_file.fault_tolerant_file import FaultTolerantFile
from nimbus.datagen.store.episode_file.image_chunks import create_images, write_images
from nimbus.datagen.store.episode_file.schema import (
    ANNOTATION_GROUPS,
    CAMERA_FIELDS,
    CAMERA_GROUPS,
    FORMAT_VERSION,
    Feature,
    Field,
    feature,
    field_of,
)
from nimbus.datagen.store.episode_file.videos import CameraVideo, VideoRecord
from nimbus.datagen.store.publish import storage_error

_CHUNKED_BYTES = 1 << 16
"""Size above which an array is compressed [bytes]; smaller ones are stored contiguously."""
FAR = np.iinfo(np.uint16).max
"""Largest stored depth [mm]; greater depths are clipped to it."""


def millimetres(depth: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Round depth (..., H, W) [m] to stored whole millimeters, (..., H, W) [mm]."""
    return np.clip(np.rint(depth * np.float32(1000.0)), 0, FAR).astype(np.uint16)


class EpisodeEncoder:
    """Encoder of one episode; camera datasets grow with each chunk of observations.

    Args:
        path: File to create; it must not exist.
        compression: Level of gzip, 1 (fast) to 9 (small).
        lossless: Store sRGB images in the HDF5 file.
        video: Path of a camera's video by its name; no videos when None.
    """

    def __init__(
        self,
        path: Path,
        *,
        compression: int = 1,
        lossless: bool = True,
        video: Callable[[str], Path] | None = None,
    ) -> None:
        self.hash = ContentHash()
        self.features: dict[str, Feature] = {}
        self._compression = compression
        self._next_step = 0
        self._path = path
        self._rate = 0.0
        self._is_closed = False
        self._lossless = lossless
        self._video = video
        self._videos: dict[str, CameraVideo] = {}
        self._sink = FaultTolerantFile(path)
        self._file = h5py.File(self._sink, "w")

    def check(self) -> None:
        """Raise the first write error; after :meth:`close`, passing means that the file is complete.

        Raises:
            StorageError: A write failed; the files are unusable.
        """
        if self._sink.error is not None:
            raise storage_error(self._sink.error, self._path)
        for video in self._videos.values():
            video.check()

    def discard(self) -> None:
        """Close and remove all files; repeated calls do nothing."""
        self.close()
        for video in self._videos.values():
            video.discard()
        remove_file(self._path)

    def close(self) -> None:
        """Flush and sync; write errors are raised by :meth:`check` only."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(*((OSError, RuntimeError) if self._sink.error else ())):
            self._file.close()
        self._sink.close()

    def episode(self, layout: Layout, trajectory: Trajectory, labels: Labels | None, provenance: Provenance) -> None:
        """Write everything but the images."""
        self._rate = trajectory.rate
        self._attributes(layout, trajectory)
        self._trajectory(trajectory)
        self._skills(trajectory.segments, trajectory.step_count)
        if trajectory.scene_graph is not None:
            self._scene_graph(trajectory.scene_graph)
        if labels is not None:
            self._labels(labels)
        self._text("instruction", layout.visual.instruction)
        self._text("layout", to_json(_without_defaults(asdict(layout))))
        self._text("provenance", to_json(provenance))

    def attribute(self, name: str, value: str | int) -> None:
        """Write a further attribute, which is not part of any hash."""
        self._file.attrs[name] = value

    def observation(self, observation: Observation, *, step_count: int) -> None:
        """Append a chunk of consecutive steps.

        Args:
            observation: The steps that follow those already written.
            step_count: Number of steps of the whole episode.
        """
        if observation.start != self._next_step:
            raise ValueError(f"observations start at step {observation.start}, expected {self._next_step}")
        self._next_step += observation.step_count
        for name, frames in observation.cameras.items():
            if self._video is not None:
                self._film(name, frames, self._video)
            for group, values in _camera_arrays(frames).items():
                path = f"observations/{group}/{name}"
                if group == "images" and not self._lossless:
                    continue
                if "T" in CAMERA_FIELDS[group].dims:
                    self._rows(path, observation.start, values, step_count)
                elif observation.start == 0:
                    self._array(path, values)

    def finish(self, *, step_count: int) -> dict[str, VideoRecord]:
        """Finish the videos; the file itself stays open.

        Returns:
            Record of each camera's video.

        Raises:
            ValueError: The images do not cover the whole episode; without cameras none are expected.
        """
        if self._next_step not in (0, step_count):
            raise ValueError(f"observations cover {self._next_step} of {step_count} steps")
        records = {name: video.finish() for name, video in self._videos.items()}
        for name, record in records.items():
            self._text(f"observations/video/{name}", to_json(record))
            self._array(f"observations/histogram/{name}", self._videos[name].histogram)
        return records

    def _film(self, name: str, frames: CameraFrames, place: Callable[[str], Path]) -> None:
        if name not in self._videos:
            height, width = frames.rgb.shape[1:3]
            self._videos[name] = CameraVideo(place(name), name, rate=self._rate, size=(width, height))
        self._videos[name].write(frames.rgb)

    def _attributes(self, layout: Layout, trajectory: Trajectory) -> None:
        key = layout.key
        self._file.attrs.update(
            {
                "sim": True,
                "nimbus_format": FORMAT_VERSION,
                "episode_id": key.id,
                "plan_id": key.plan_id,
                "task": key.task,
                "seed": key.seed,
                "index": key.index,
                "variant": key.variant,
                "rate": trajectory.rate,
                "success": trajectory.outcome.success,
            }
        )

    def _trajectory(self, trajectory: Trajectory) -> None:
        self._array("action", trajectory.actions)
        if trajectory.executed_actions is not None:
            self._array("executed_action", trajectory.executed_actions)
        self._array("time", trajectory.time)
        self._array("observations/qpos", trajectory.joint_positions)
        self._array("observations/qvel", trajectory.joint_velocities)
        self._array("observations/body_positions", trajectory.body_positions)
        self._array("observations/body_wxyz", trajectory.body_wxyz)
        if (tools := trajectory.end_effectors) is not None:
            self._array("observations/end_effector_positions", tools.positions)
            self._array("observations/end_effector_wxyz", tools.wxyz)
            self._texts("names/end_effectors", tools.names)
        self._texts("names/joints", trajectory.joint_names)
        self._texts("names/actions", trajectory.action_names)
        self._texts("names/bodies", trajectory.body_names)
        self._array("start/joint_positions", trajectory.start.joint_positions)
        self._array("start/joint_velocities", trajectory.start.joint_velocities)
        for group in ("contacts", *(["signals"] if trajectory.signals else []), "plan_statistics"):
            self._file.create_group(group)
            for name, values in sorted(getattr(trajectory, group).items()):
                self._array(f"{group}/{name}", values)
        self._text("outcome", to_json(trajectory.outcome))

    def _skills(self, segments: tuple[SkillSegment, ...], step_count: int) -> None:
        step = np.full(step_count, -1, dtype=np.int32)
        for row, segment in enumerate(segments):
            step[segment.start : segment.stop] = row
        self._array("skills/step", step)
        self._array("skills/start", np.array([segment.start for segment in segments], dtype=np.int64))
        self._array("skills/stop", np.array([segment.stop for segment in segments], dtype=np.int64))
        for column in ("skill", "target", "phase"):
            self._texts(f"skills/{column}", [getattr(segment, column) for segment in segments])

    def _scene_graph(self, spans: tuple[RelationSpan, ...]) -> None:
        for column in ("start", "stop"):
            values = np.array([getattr(span, column) for span in spans], dtype=np.int64)
            self._array(f"scene_graph/{column}", values)
        for column in ("relation", "object", "target"):
            self._texts(f"scene_graph/{column}", [getattr(span, column) for span in spans])

    def _labels(self, labels: Labels) -> None:
        self._texts("labels/instance_names", labels.instance_names)
        self._texts("labels/instance_bodies", labels.instance_bodies)
        self._array("labels/instance_semantics", labels.instance_semantics)
        self._texts("labels/semantic_names", labels.semantic_names)
        self._array("labels/boxes_3d", labels.boxes_3d)
        if labels.keypoints is not None:
            self._texts("labels/keypoint_names", labels.keypoints.names)
            self._texts("labels/keypoint_bodies", labels.keypoints.bodies)
            self._array("labels/keypoint_instances", labels.keypoints.instances)
            self._array("labels/keypoint_positions", labels.keypoints.positions)

    def _text(self, path: str, text: str) -> None:
        self.hash.texts(path, [text])
        self._create(path, data=np.bytes_(text.encode()), dtype=_text_type([text]))

    def _texts(self, path: str, texts: Iterable[str]) -> None:
        texts = list(texts)
        self.hash.texts(path, texts)
        data = np.array([text.encode() for text in texts], dtype=_text_type(texts))
        self._create(path, data=data, dtype=data.dtype)

    def _array(self, path: str, values: NDArray[Any]) -> None:
        values = np.ascontiguousarray(values, dtype=_field(path).dtype)
        self.hash.array(path, values)
        compressed = values.nbytes > _CHUNKED_BYTES
        # Bytes are shuffled before gzip: neighboring values differ in their low bytes only, and equal high bytes
        # compress well.
        options: dict[str, Any] = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if compressed else {}
        self._create(path, data=values, **options)

    def _rows(self, path: str, start: int, values: NDArray[Any], step_count: int) -> None:
        """Append rows to a dataset whose first axis is the steps of the whole episode."""
        values = np.ascontiguousarray(values, dtype=_field(path).dtype)
        is_image = "H" in _field(path).dims
        if start == 0:
            shape = (step_count, *values.shape[1:])
            self.hash.begin(path, str(values.dtype), shape)
            if is_image:
                self._describe(create_images(self._file, path, shape, values.dtype, level=self._compression), path)
            else:
                self._create(path, shape=shape, dtype=values.dtype)
        # The hash covers values instead of file bytes, which differ between compressors and versions of HDF5.
        self.hash.extend(path, values)
        dataset = self._file[path]
        assert isinstance(dataset, h5py.Dataset)
        if is_image:
            write_images(dataset, start, values, level=self._compression)
        else:
            dataset[start : start + len(values)] = values

    def _create(self, path: str, **options: Any) -> None:
        self._describe(self._file.create_dataset(path, track_times=False, **options), path)

    def _describe(self, dataset: h5py.Dataset, path: str) -> None:
        field = _field(path)
        dataset.attrs["description"] = field.description
        dataset.attrs["units"] = field.units
        self.features[path] = feature(field, dataset.shape)


def _without_defaults(layout: dict[str, Any]) -> dict[str, Any]:
    """Remove default values from a layout, so that a new field leaves stored layouts unchanged."""
    if layout["key"]["split"] == RUN:
        del layout["key"]["split"]
    for item in layout["physical"]["objects"]:
        _drop(item, PlacedObject)
    _drop(layout["physical"], PhysicalLayout)
    for camera in layout["visual"]["cameras"]:
        _drop(camera, Camera)
        for name in _SENSOR_OPTIONS if "sensor" in camera else ():
            if camera["sensor"][name] == getattr(Sensor(), name):
                del camera["sensor"][name]
    if layout["visual"]["dome"] is None:
        del layout["visual"]["dome"]
    return layout


_SENSOR_OPTIONS = ("antialiasing", "tone")
"""Fields of sensors that are stored only when they differ from their defaults; all other fields of a sensor are stored
together."""
_ALWAYS = ("scale", "drawn")
"""Fields that are stored even with their default values."""


def _drop(values: dict[str, Any], kind: type[Any]) -> None:
    """Remove fields whose value is their default."""
    for field in dataclasses.fields(kind):
        if field.name not in _ALWAYS and values[field.name] == _plain_default(field):
            del values[field.name]


def _plain_default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return asdict(field.default) if dataclasses.is_dataclass(field.default) else field.default  # type: ignore[arg-type]


def _field(path: str) -> Field:
    field = field_of(path)
    if field is None:
        raise ValueError(f"'{path}' has no row in the schema")
    return field


def _text_type(texts: list[str]) -> Any:
    # The length is fixed, so that a text is stored in the dataset itself and not in a separate heap of the file.
    return h5py.string_dtype("utf-8", max((len(text.encode()) for text in texts), default=0) or 1)


def _camera_arrays(frames: CameraFrames) -> dict[str, NDArray[Any]]:
    found = {CAMERA_GROUPS[modality]: getattr(frames, name) for modality, name in ARRAYS.items()}
    found |= {"depth": millimetres(frames.depth)}
    asked = {name: getattr(frames, name) for groups in ANNOTATION_GROUPS.values() for name in groups}
    found |= {name: values for name, values in asked.items() if values is not None}
    return {group: values for group, values in found.items() if len(values)} | {
        "intrinsics": frames.intrinsics,
        "world_T_camera": frames.world_T_camera,
    }
