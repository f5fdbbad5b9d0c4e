"""Scene as a feature vector: poses, sizes and kinds of objects, points of flexible objects, and poses of the tools.

Names and values are the same in training, from a stored trajectory, and in evaluation, from a running simulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.geometry.transforms import make_transform, quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.objects.prepared.library import PreparedLibrary
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.tasks.task_file import TaskFile

_POSE = ("x", "y", "z", "r11", "r21", "r31", "r12", "r22", "r32")
"""A position [m], and the first two columns of a rotation matrix."""
_POINT = ("handle_x", "handle_y", "handle_z")
"""Point at which a moving part is held or pressed [m]; pose and size of a cabinet do not determine it."""
_SIZE = ("width", "depth", "height")
"""Extents along the object's own axes [m]."""


@dataclass(frozen=True)
class _Slot:
    """Entries of one object in the vector; they exist even if an episode lacks the object."""

    name: str
    kinds: tuple[str, ...]
    parts: tuple[str, ...]
    points: int
    """Largest number of points of its flexible kinds; 0 if all are rigid."""

    @property
    def names(self) -> tuple[str, ...]:
        kinds = tuple(f"is_{kind}" for kind in self.kinds) if len(self.kinds) > 1 else ()
        own = ("present", *_POSE, *_SIZE, *kinds)
        parts = tuple(f"{part}.{entry}" for part in self.parts for entry in (*_POSE, *_POINT))
        points = tuple(f"point_{index}_{axis}" for index in range(self.points) for axis in "xyz")
        return tuple(f"{self.name}.{entry}" for entry in (*own, *parts, *points))


class SceneFeatures:
    """Layout of the vector of one task, and its values.

    Args:
        task: The task.
        robot: Its robot.
    """

    def __init__(self, task: Task | TaskFile, robot: Robot) -> None:
        self._tools = {arm: robot.with_arm(arm).tool for arm in robot.arm_names}
        self._slots = tuple(_slots(task))
        tools = tuple(f"{arm}.tool.{entry}" for arm in self._tools for entry in _POSE)
        self.names = (*tools, *(name for slot in self._slots for name in slot.names))

    def rows(
        self,
        objects: Sequence[PlacedObject],
        body_names: Sequence[str],
        body_positions: FloatArray,
        body_wxyz: FloatArray,
    ) -> FloatArray:
        """Return the values of the vector at several steps.

        Args:
            objects: The episode's objects.
            body_names: B names.
            body_positions: (T, B, 3) [m], world frame.
            body_wxyz: (T, B, 4)

        Returns:
            (T, F)
        """
        count, place = len(body_positions), {name: index for index, name in enumerate(body_names)}
        rotations = quat_to_matrix(body_wxyz)

        def pose(body: str, own: FloatArray | None = None) -> FloatArray:
            position, rotation = body_positions[:, place[body]], rotations[:, place[body]]
            if own is not None:
                position = position + rotation @ own[:3, 3]
                rotation = rotation @ own[:3, :3]
            return np.concatenate([position, rotation[:, :, 0], rotation[:, :, 1]], axis=1)

        found: Mapping[str, PlacedObject] = {item.name: item for item in objects}
        columns = [pose(tool.link, make_transform(tool.position, tool.wxyz)) for tool in self._tools.values()]
        for slot in self._slots:
            if (item := found.get(slot.name)) is None:
                columns.append(np.zeros((count, len(slot.names))))
                continue
            kinds = [float(item.kind == kind) for kind in slot.kinds] if len(slot.kinds) > 1 else []
            fixed = np.tile([*_extents(item), *kinds], (count, 1))
            columns += [np.ones((count, 1)), pose(item.name), fixed]
            points = _part_points(item) if slot.parts else {}
            for part in slot.parts:
                if (body := f"{item.name}.{part}") in place:
                    own = np.eye(4)
                    own[:3, 3] = points[part]
                    columns += [pose(body), pose(body, own)[:, :3]]
                else:
                    columns.append(np.zeros((count, len(_POSE) + len(_POINT))))
            if slot.points:
                rows = [place[part_label(item.name, str(index))] for index in range(_model(item).body_count)]
                columns.append(_flexible_points(item, body_positions[:, rows], rotations[:, rows], slot.points))
        return np.concatenate(columns, axis=1)


def _slots(task: Task | TaskFile) -> list[_Slot]:
    slots = []
    for group, settings in task.objects.items():
        library = open_library(settings.library)
        kinds = tuple(sorted(library.kinds if settings.kinds == "all" else settings.kinds))
        models = [] if isinstance(library, PreparedLibrary) else [library.model(kind, 0) for kind in kinds]
        parts = tuple(sorted({part.name for model in models for part in model.parts}))
        points = max((_point_count(model) for model in models), default=0)
        slots += [_Slot(f"{group}_{index}", kinds, parts, points) for index in range(settings.count[1])]
    return slots


def _extents(item: PlacedObject) -> FloatArray:
    vertices = _model(item).vertices
    return vertices.max(axis=0) - vertices.min(axis=0)


def _part_points(item: PlacedObject) -> dict[str, FloatArray]:
    """Return the point at which each part is held or pressed, in the part's frame [m]; otherwise its origin."""
    return {
        part.name: next((one.position for one in (*part.handles, *part.pressings)), np.zeros(3))
        for part in _model(item).parts
    }


def _point_count(model: ObjectModel) -> int:
    """Return the number of points of a flexible model; a cable has one more than links."""
    return model.body_count + (model.chain is not None)


def _flexible_points(item: PlacedObject, positions: FloatArray, rotations: FloatArray, count: int) -> FloatArray:
    """Return the points of an object, (T, 3 * count) [m]; zeros follow if it has fewer points.

    Args:
        item: The object.
        positions: (T, B, 3) of its bodies [m].
        rotations: (T, B, 3, 3) of its bodies.
        count: Number of points.
    """
    if (chain := _model(item).chain) is not None:
        end = positions[:, -1] + rotations[:, -1, :, 0] * chain.link_length
        positions = np.concatenate([positions, end[:, None]], axis=1)
    found = np.zeros((len(positions), count, 3))
    found[:, : positions.shape[1]] = positions
    return found.reshape(len(positions), -1)


def _model(item: PlacedObject) -> ObjectModel:
    return open_library(item.library).model(item.kind, item.variant, item.scale)
