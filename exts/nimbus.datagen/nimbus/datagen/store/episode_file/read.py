"""Reader of stored episodes; it returns the trajectory, layout and labels exactly as written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import DEFAULT_MODALITIES, Layout, Modality
from nimbus.datagen.episode.observation import CameraFrames, Keypoints, Labels
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import EndEffectors, Outcome, RelationSpan, SkillSegment, StartState, Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_own_file, check_regular
from nimbus.datagen.stages import StoredPlan
from nimbus.datagen.store.byte_range import ByteRange
from nimbus.datagen.store.episode_file.checked_file import CheckedFile
from nimbus.datagen.store.episode_file.decode import REMEDY
from nimbus.datagen.store.episode_file.image_chunks import read_images
from nimbus.datagen.store.episode_file.schema import (
    ANNOTATION_GROUPS,
    CAMERA_FIELDS,
    CAMERA_GROUPS,
    field_of,
)
from nimbus.datagen.store.episode_file.structure import check_structure
from nimbus.datagen.store.episode_file.video_files import VideoFiles
from nimbus.datagen.store.episode_file.videos import VideoRecord
from nimbus.datagen.store.remote.working_copy import local

_FASTEST = 100_000.0
"""Largest accepted rate [Hz], far above the rate of any controller."""
_TRAJECTORY = (
    "time",
    "observations/qpos",
    "observations/qvel",
    "action",
    "executed_action",
    "observations/body_positions",
    "observations/body_wxyz",
    "observations/end_effector_positions",
    "observations/end_effector_wxyz",
)
"""Arrays of a trajectory with a row for each step, besides its signals and contacts."""


def _local_file(path: Path) -> Path:
    """Return the local path of a dataset's file; a link out of the dataset is refused."""
    path = local(path)
    check_own_file(path)
    return path


class EpisodeFile(CheckedFile):
    """One stored episode, read lazily.

    Args:
        path: HDF5 file of the episode, or its byte range in a shard.
        videos: Byte range of each camera's video in a shard; beside the HDF5 file when None.

    Raises:
        InputError: The file is missing or not an episode. Reading raises it for a damaged file.
    """

    def __init__(self, path: Path | str | ByteRange, *, videos: Mapping[str, ByteRange] | None = None) -> None:
        self.path = path.path if isinstance(path, ByteRange) else local(Path(path))
        self._span = path if isinstance(path, ByteRange) else None
        self._video_files = VideoFiles(self.path, self._span, videos or {}, _local_file)
        if not isinstance(path, ByteRange) or path.is_here:
            if not self.path.exists():
                raise InputError("no such file", where=str(path), instead="restore it from a copy, or run again")
            check_regular(self.path)
        self._source = path.open() if isinstance(path, ByteRange) else None
        try:
            if self._source:
                check_structure(self._source)
            else:
                with self.path.open("rb") as file:
                    check_structure(file)
            super().__init__(self.path, h5py.File(self._source or self.path, "r"))
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"not a readable HDF5 file: {error}", where=str(path), instead=REMEDY) from None
        try:
            with self._reading("its attributes"):
                if "nimbus_format" not in self.file.attrs:
                    raise InputError(
                        "not an episode of Nimbus", where=str(path), instead="give an episode of a dataset"
                    )
        except InputError:
            self.file.close()
            raise

    @property
    def episode_id(self) -> str:
        """Id of the episode."""
        with self._reading("episode_id"):
            return str(self._attribute("episode_id"))

    @property
    def rate(self) -> float:
        """Steps per second [Hz]."""
        with self._reading("rate"):
            rate = float(self._attribute("rate"))
            if not 0.0 < rate <= _FASTEST:
                raise ValueError(f"a rate of {rate:g} Hz; the limit is {_FASTEST:g}")
            return rate

    @property
    def step_count(self) -> int:
        """Number of steps, T."""
        return self["time"].shape[0]

    @property
    def instruction(self) -> str:
        """Instruction given to the robot."""
        return self.text("instruction")

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of its cameras, sorted."""
        return tuple(sorted({*self.members("observations/images"), *self.members("observations/video")}))

    @cached_property
    def videos(self) -> dict[str, VideoRecord]:
        """Record of each camera's video, where images are stored as video."""
        names = self.members("observations/video")
        return {name: self._json(VideoRecord, f"observations/video/{name}") for name in names}

    @property
    def outcome(self) -> Outcome:
        """Result of the attempt."""
        return self._json(Outcome, "outcome")

    @property
    def segments(self) -> tuple[SkillSegment, ...]:
        """Steps of skills."""
        columns = [self.texts(f"skills/{column}") for column in ("skill", "target", "phase")]
        starts, stops, count = self.array("skills/start"), self.array("skills/stop"), self.step_count
        with self._reading("skills"):
            if np.any(starts < 0) or np.any(stops < starts) or np.any(stops > count):
                raise ValueError(f"a segment is not within {count} steps")
        return tuple(
            SkillSegment(start=int(start), stop=int(stop), skill=skill, target=target, phase=phase)
            for start, stop, skill, target, phase in zip(starts, stops, *columns, strict=True)
        )

    @property
    def scene_graph(self) -> tuple[RelationSpan, ...] | None:
        """Relations at the boundaries of skill steps; None if they are not stored."""
        if not self.has("scene_graph"):
            return None
        columns = [self.texts(f"scene_graph/{column}") for column in ("relation", "object", "target")]
        starts, stops, count = self.array("scene_graph/start"), self.array("scene_graph/stop"), self.step_count
        with self._reading("scene_graph"):
            if np.any(starts < 0) or np.any(stops <= starts) or np.any(stops > count + 1):
                raise ValueError(f"a relation is not within {count} steps and the end")
            return tuple(
                RelationSpan(start=int(start), stop=int(stop), relation=relation, object=one, target=other)
                for start, stop, relation, one, other in zip(starts, stops, *columns, strict=True)
            )

    @cached_property
    def provenance(self) -> Provenance:
        """Origin of the episode."""
        return self._json(Provenance, "provenance")

    @cached_property
    def labels(self) -> Labels | None:
        """Labels of the masks; None when the episode has no images."""
        if not self.has("labels"):
            return None
        return Labels(
            instance_names=self.texts("labels/instance_names"),
            instance_bodies=self.texts("labels/instance_bodies"),
            instance_semantics=self.array("labels/instance_semantics"),
            semantic_names=self.texts("labels/semantic_names"),
            boxes_3d=self.array("labels/boxes_3d"),
            keypoints=self._keypoints() if self.has("labels/keypoint_names") else None,
        )

    def _keypoints(self) -> Keypoints:
        return Keypoints(
            names=self.texts("labels/keypoint_names"),
            bodies=self.texts("labels/keypoint_bodies"),
            instances=self.array("labels/keypoint_instances"),
            positions=self.array("labels/keypoint_positions"),
        )

    def layout(self) -> Layout:
        """Everything that was drawn."""
        layout, bodies = self._json(Layout, "layout"), self.texts("names/bodies")
        with self._reading("layout"):
            layout.check_names(bodies)
        return layout

    def trajectory(self) -> Trajectory:
        """Executed attempt, exactly as recorded."""
        signals, contacts, statistics = map(self._paths_below, ("signals", "contacts", "plan_statistics"))
        self._check_together((*_TRAJECTORY, *signals, *contacts, *statistics))
        return Trajectory(
            rate=self.rate,
            time=self.array("time"),
            joint_names=self.texts("names/joints"),
            joint_positions=self.array("observations/qpos"),
            joint_velocities=self.array("observations/qvel"),
            action_names=self.texts("names/actions"),
            actions=self.array("action"),
            executed_actions=self.array("executed_action") if self.has("executed_action") else None,
            body_names=self.texts("names/bodies"),
            body_positions=self.array("observations/body_positions"),
            body_wxyz=self.array("observations/body_wxyz"),
            segments=self.segments,
            scene_graph=self.scene_graph,
            end_effectors=self.end_effectors,
            outcome=self.outcome,
            start=StartState(
                joint_positions=self.array("start/joint_positions"),
                joint_velocities=self.array("start/joint_velocities"),
            ),
            signals=self._arrays(signals),
            contacts=self._arrays(contacts),
            plan_statistics=self._arrays(statistics),
        )

    @property
    def end_effectors(self) -> EndEffectors | None:
        """Poses of the tools; None if the task did not request them."""
        if not self.has("names/end_effectors"):
            return None
        return EndEffectors(
            names=self.texts("names/end_effectors"),
            positions=self.array("observations/end_effector_positions"),
            wxyz=self.array("observations/end_effector_wxyz"),
        )

    def frames(self, camera: str, start: int, stop: int) -> CameraFrames:
        """Read the images of a camera in steps ``[start, stop)``; depth in meters, rounded to millimeters."""
        stored = self.modalities(camera)

        def rows(group: str) -> NDArray[Any]:
            return self.rows(f"observations/{group}/{camera}", slice(start, stop))

        def rows_of(modality: Modality, *shape: int) -> NDArray[Any]:
            field = CAMERA_FIELDS[CAMERA_GROUPS[modality]]
            return rows(CAMERA_GROUPS[modality]) if modality in stored else np.empty((0, *shape), field.dtype)

        rgb, instances = rows("images"), len(self.labels.instance_names) if self.labels else 0
        size = rgb.shape[1:3]
        return CameraFrames(
            rgb=rgb,
            depth=rows_of("depth", *size).astype(np.float32) / np.float32(1000.0),
            instance=rows_of("instance", *size),
            semantic=rows_of("semantic", *size),
            normals=rows_of("normals", *size, 3),
            boxes_2d=rows_of("boxes", instances, 4),
            visibility=rows_of("visibility", instances),
            intrinsics=self.array(f"observations/intrinsics/{camera}"),
            world_T_camera=rows("world_T_camera"),
            **{
                group: rows(group)
                for groups in ANNOTATION_GROUPS.values()
                for group in groups
                if camera in self.members(f"observations/{group}")
            },
        )

    def modalities(self, camera: str) -> tuple[Modality, ...]:
        """Return the modalities stored for a camera."""
        groups = set(self.members("observations"))

        def has(group: str) -> bool:
            return group in groups and camera in self.members(f"observations/{group}")

        stored: list[Modality] = [name for name in DEFAULT_MODALITIES if name == "rgb" or has(CAMERA_GROUPS[name])]
        return (*stored, *(name for name, asked in ANNOTATION_GROUPS.items() if all(map(has, asked))))

    def rows(self, path: str, which: slice | int) -> NDArray[Any]:
        """Read some rows of a dataset, or one; images stored as video are decoded."""
        if self._is_video(path):
            camera = path.rpartition("/")[2]
            return self._video_files.read(camera, self.videos[camera], which)
        with self._reading(path):
            dataset, field = self[path], field_of(path)
            if field and "H" in field.dims:
                return read_images(dataset, which)
            return self._whole(path)[which]

    def shape(self, path: str) -> tuple[int, ...]:
        """Return the shape of a dataset, or of images stored as video."""
        if self._is_video(path):
            record = self.videos[path.rpartition("/")[2]]
            return record.frame_count, record.height, record.width, 3
        return self[path].shape

    def fetch(self, cameras: Iterable[str], start: int, stop: int) -> None:
        """Fetch the bytes of images in steps ``[start, stop)`` if the episode is in a store; otherwise do nothing."""
        if self._source is None or self._span is None or self._span.is_here:
            return
        for camera in cameras:
            path = f"observations/images/{camera}"
            if self._is_video(path):
                self._video_files.fetch(camera, self.videos[camera], start, stop)
                continue
            with self._reading(path):
                dataset = self[path]
                place: Any = dataset.id
                corner = (0,) * (len(dataset.shape) - 1)
                chunks = [place.get_chunk_info_by_coord((row, *corner)) for row in range(start, stop)]
            self._source.fetch([(chunk.byte_offset, chunk.byte_offset + chunk.size) for chunk in chunks])

    def video_file(self, camera: str) -> Path:
        """Return the path of the MP4 with a camera's images."""
        return self._video_files.path(camera)

    def _is_video(self, path: str) -> bool:
        group, _, camera = path.rpartition("/")
        return group == "observations/images" and camera in self.videos and not self.has(path)

    def close(self) -> None:
        """Close its files."""
        self._video_files.close()
        self.file.close()

    def __enter__(self) -> EpisodeFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stored_plan(path: Path, *, attempt: int) -> StoredPlan | None:
    """Return the plan of a stored episode; None for an unreadable file, whose episode is then planned again."""
    try:
        with EpisodeFile(path) as episode:
            return StoredPlan(physical=episode.layout().physical, trajectory=episode.trajectory(), attempt=attempt)
    except InputError:
        return None
