"""Reader of stored episodes: returns the trajectory, layout and labels exactly as written."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import DEFAULT_MODALITIES, Layout, Modality
from nimbus.datagen.episode.observation import CameraFrames, Keypoints, Labels
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import EndEffectors, Outcome, RelationSpan, SkillSegment, StartState, Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.stages import StoredPlan
from nimbus.datagen.store.episode_file.arrays import EpisodeArrays
from nimbus.datagen.store.episode_file.schema import ANNOTATION_GROUPS, CAMERA_FIELDS, CAMERA_GROUPS

_FASTEST = 100_000.0
"""Largest accepted rate [Hz], far above that of any controller."""


class EpisodeFile(EpisodeArrays):
    """One stored episode, read lazily."""

    @property
    def episode_id(self) -> str:
        """Id of the episode."""
        with self._reading("episode_id"):
            return str(self.file.attrs["episode_id"])

    @property
    def rate(self) -> float:
        """Steps per second [Hz]."""
        with self._reading("rate"):
            rate = float(self.file.attrs["rate"])  # pyright: ignore[reportArgumentType]
            if not 0.0 < rate <= _FASTEST:
                raise ValueError(f"{rate:g} Hz, possible are up to {_FASTEST:g}")
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
        """Relations at the boundaries of skill steps; None where they were not stored."""
        if "scene_graph" not in self.file:
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
        if "labels" not in self.file:
            return None
        return Labels(
            instance_names=self.texts("labels/instance_names"),
            instance_bodies=self.texts("labels/instance_bodies"),
            instance_semantics=self.array("labels/instance_semantics"),
            semantic_names=self.texts("labels/semantic_names"),
            boxes_3d=self.array("labels/boxes_3d"),
            keypoints=self._keypoints() if "labels/keypoint_names" in self.file else None,
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
        return self._json(Layout, "layout")

    def trajectory(self) -> Trajectory:
        """Executed attempt, exactly as recorded."""
        return Trajectory(
            rate=self.rate,
            time=self.array("time"),
            joint_names=self.texts("names/joints"),
            joint_positions=self.array("observations/qpos"),
            joint_velocities=self.array("observations/qvel"),
            action_names=self.texts("names/actions"),
            actions=self.array("action"),
            executed_actions=self.array("executed_action") if "executed_action" in self.file else None,
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
            signals={name: self.array(f"signals/{name}") for name in self.members("signals")},
            contacts={name: self.array(f"contacts/{name}") for name in self.members("contacts")},
            plan_statistics={name: self.array(f"plan_statistics/{name}") for name in self.members("plan_statistics")},
        )

    @property
    def end_effectors(self) -> EndEffectors | None:
        """Poses of the tools; None where the task did not ask for them."""
        if "names/end_effectors" not in self.file:
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


def stored_plan(path: Path, *, attempt: int) -> StoredPlan | None:
    """Return the plan of a stored episode; None for an unreadable file, whose episode is then planned again."""
    try:
        with EpisodeFile(path) as episode:
            return StoredPlan(physical=episode.layout().physical, trajectory=episode.trajectory(), attempt=attempt)
    except InputError:
        return None
