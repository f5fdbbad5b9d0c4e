"""Objects of a physical layout with their rest poses and positions, before masses and frictions are varied."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.arrays import FloatArray, Quaternion
from nimbus.datagen.episode.layout import PlacedObject, Vector
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle, quat_multiply
from nimbus.datagen.objects.articulated.pose import swept_vertices
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.objects.model import ObjectModel, RestPose
from nimbus.datagen.random_streams import Streams, generator
from nimbus.datagen.randomize.base import Draws
from nimbus.datagen.randomize.placement import NoRoomError, fill, find_places, footprint, moved, rectangle
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.tasks.task_file import ObjectGroup
from nimbus.datagen.usd.stage import StageInfo

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets


CLEARANCE = 0.03
"""Initial distance between objects [m], for a finger and its positioning error."""
_ABOVE = 0.0005
"""Initial height of objects above the surface [m]; they settle from there."""
_DRAWS = 3
"""Number of layouts that are drawn to check a task before a run."""


def draw_objects(
    task: Task,
    stage: StageInfo,
    streams: Streams,
    *,
    reachable: Mapping[str, Callable[[float, float], bool]],
) -> tuple[list[PlacedObject], Draws]:
    """Draw all groups of a task.

    Args:
        task: Task with the groups.
        stage: Scene of the task.
        streams: Generators by address.
        reachable: Function per region that returns True for a point in the robot's reach.

    Returns:
        Objects, and the drawn values by object name.

    Raises:
        InputError: A region is too small for its objects.
    """
    objects: list[PlacedObject] = []
    drawn: Draws = {}
    taken = [rectangle(*fixture.world_bounds) for fixture in stage.fixtures.values()]
    for name, group in task.objects.items():
        if group.region in task.objects:
            placed, values = _GroupDrawing(name, group, task, stage, streams, _anywhere, taken).draw_inside(objects)
        else:
            placed, values = _GroupDrawing(name, group, task, stage, streams, reachable[group.region], taken).draw()
        objects += placed
        drawn[name] = values
    return objects, drawn


def _anywhere(x: float, y: float) -> bool:
    return True


@dataclass(frozen=True)
class _GroupDrawing:
    """Drawing of one group of a task."""

    name: str
    group: ObjectGroup
    task: Task
    stage: StageInfo
    streams: Streams
    reachable: Callable[[float, float], bool]
    taken: list[FloatArray]
    """Outlines of objects already placed; new outlines are appended."""

    def draw(self) -> tuple[list[PlacedObject], Draws]:
        """Draw the number of objects; a crowded layout omits the last ones, down to the task's minimum."""
        low, high = self.group.count
        asked = int(self.streams(self.name, "count").integers(low, high + 1))
        # Names and their streams do not depend on the number: with one object fewer, the others keep their kinds and
        # variants.
        for count in range(asked, low - 1, -1):
            try:
                return self._place(count)
            except NoRoomError:
                continue
        width, depth = self.task.regions[self.group.region].size
        raise self.task.error(
            ("regions", self.group.region),
            f"{width:g} x {depth:g} m has no reachable space for {low} objects of '{self.name}', "
            f"{CLEARANCE * 100:g} cm apart",
            instead="enlarge it, move it closer to the robot, or lower the count",
        )

    def draw_inside(self, placed: list[PlacedObject]) -> tuple[list[PlacedObject], Draws]:
        """Draw objects in the cavity of the first object of the group that serves as the region."""
        container = next(item for item in placed if item.group == self.group.region)
        cavities = open_library(container.library).model(container.kind, container.variant, container.scale).cavities
        if not cavities:
            what = f"a {container.kind} has no cavity"
            raise self.task.error(("objects", self.name, "region"), what, instead="give a region, or an open object")
        low, high = self.group.count
        names = [
            f"{self.name}_{place}" for place in range(int(self.streams(self.name, "count").integers(low, high + 1)))
        ]
        choices = self._choices(open_library(self.group.library), names)
        cavity = cavities.get("opening", next(iter(cavities.values())))
        try:
            points = fill(cavity, [model for model, _ in choices], self.streams(self.name, "filling"))
        except NoRoomError:
            what = f"a {container.kind} has no space for {len(names)} objects of '{self.name}'"
            raise self.task.error(("objects", self.name, "count"), what, instead="lower the count") from None
        world_T_container = make_transform(container.position, container.wxyz)
        objects: list[PlacedObject] = []
        values: Draws = {"count": len(names)}
        for item, (model, rest), point in zip(names, choices, points, strict=True):
            x, y, z = (float(value) for value in (world_T_container @ np.append(point, 1.0))[:3])
            yaw = float(self.streams(item, "pose").uniform(-math.pi, math.pi))
            wxyz = quat_multiply(quat_from_axis_angle((0, 0, 1), yaw), rest.wxyz)
            objects.append(self._object(item, model, rest, (x, y, z), wxyz))
            values[item] = {"kind": model.kind, "variant": model.variant, "rest_pose": rest.name}
            values[item] |= {"x": x, "y": y, "yaw": yaw}
        return objects, values

    def _place(self, count: int) -> tuple[list[PlacedObject], Draws]:
        library, region = open_library(self.group.library), self.task.regions[self.group.region]
        names = [f"{self.name}_{place}" for place in range(count)]
        choices = self._choices(library, names)
        models = [model for model, _ in choices]
        outlines = [footprint(swept_vertices(model), rest.wxyz) for model, rest in choices]
        places = find_places(
            outlines,
            [self.streams(item, "pose") for item in names],
            center=region.center,
            size=region.size,
            yaw=(-math.pi, math.pi) if self.group.yaw == "any" else self.group.yaw,
            clearance=CLEARANCE,
            obstacles=self.taken,
            # Objects that are fixed in place are used by their handles, whose reach is checked elsewhere.
            reachable=self.reachable if not all(map(self._is_anchored, models)) else _anywhere,
        )
        self.taken.extend(map(moved, outlines, places))
        top = self.stage.surfaces[region.on].upper[2]
        objects = []
        values: dict[str, Any] = {"count": count}
        for item, (model, rest), place in zip(names, choices, places, strict=True):
            joints = self._joints(model, item)
            place_there = (place.x, place.y, top + rest.height + _ABOVE)
            wxyz = quat_multiply(quat_from_axis_angle((0, 0, 1), place.yaw), rest.wxyz)
            objects.append(self._object(item, model, rest, place_there, wxyz, joints=joints))
            values[item] = {"kind": model.kind, "variant": model.variant, "rest_pose": rest.name}
            values[item] |= {"x": place.x, "y": place.y, "yaw": place.yaw} | ({"joints": joints} if joints else {})
        return objects, values

    def _object(
        self,
        name: str,
        model: ObjectModel,
        rest: RestPose,
        position: Vector,
        wxyz: Quaternion,
        *,
        joints: dict[str, float] | None = None,
    ) -> PlacedObject:
        return PlacedObject(
            name=name,
            group=self.name,
            library=model.library,
            kind=model.kind,
            variant=model.variant,
            object_class=self.group.class_of(model.object_class),
            position=position,
            wxyz=wxyz,
            rest_pose=rest.name,
            scale=self._scale(name),
            mass=model.mass,
            friction=model.friction,
            anchored=self._is_anchored(model),
            joints=joints or {},
        )

    def _choices(self, library: ObjectLibrary, names: list[str]) -> list[tuple[ObjectModel, RestPose]]:
        """Draw a model and a rest pose for each name."""
        kinds = list(library.kinds if self.group.kinds == "all" else self.group.kinds)
        chosen = self.streams(self.name, "kinds").choice(len(kinds), size=len(names), replace=not self.group.distinct)
        return [self._choose(library, kinds[kind], item) for kind, item in zip(chosen, names, strict=True)]

    def _is_anchored(self, model: ObjectModel) -> bool:
        return model.anchored if self.group.anchored is None else self.group.anchored

    def _joints(self, model: ObjectModel, item: str) -> dict[str, float]:
        """Draw the initial positions of the joints that the task names and the object has."""
        ranges, rng = self.group.joints or {}, self.streams(item, "joints")
        shares = {name: float(rng.uniform(*ranges[name])) for name in sorted(ranges)}
        limits = {part.name: part.joint.range for part in model.parts if part.name in shares}
        return {name: low + shares[name] * (high - low) for name, (low, high) in limits.items()}

    def _scale(self, item: str) -> float:
        """Draw a scale, rounded to a thousandth so that few different sizes are built."""
        return (
            1.0 if self.group.scale is None else round(float(self.streams(item, "scale").uniform(*self.group.scale)), 3)
        )

    def _choose(self, library: ObjectLibrary, kind: str, item: str) -> tuple[ObjectModel, RestPose]:
        variant = int(self.streams(item, "variant").integers(library.variant_count(kind)))
        model = library.model(kind, variant, self._scale(item))
        lies = bool(self.streams(item, "rest").uniform() < self.group.lying)
        rest = model.rest_pose("lying" if lies else "upright") or model.rest_poses[0]
        return model, rest


def check_room(task: Task, assets: SceneAssets, *, seed: int) -> None:
    """Check that the first layouts of a run have room for the largest number of objects that the task allows.

    Args:
        task: Task to check.
        assets: Assets of the task's scene.
        seed: Seed of the run.

    Raises:
        InputError: A region is too small for its objects; the error gives its location in the file.
    """
    fullest = {name: group.model_copy(update={"count": (group.count[1],) * 2}) for name, group in task.objects.items()}
    for index in range(_DRAWS):
        streams = partial(generator, seed, index, "physical", "objects")
        draw_objects(replace(task, objects=fullest), assets.stage, streams, reachable=assets.reach)
