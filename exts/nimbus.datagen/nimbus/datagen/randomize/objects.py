"""Which objects there are, how they rest and where: the physical layout before masses and frictions vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from nimbus.datagen.layout import PlacedObject
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.objects.model import ObjectModel, RestPose
from nimbus.datagen.randomize.draft import Draws
from nimbus.datagen.randomize.placement import Float, NoRoomError, find_places, footprint, moved, rectangle
from nimbus.datagen.rotations import multiply, rotation_about
from nimbus.datagen.streams import Streams
from nimbus.datagen.task import Task
from nimbus.datagen.task_file import ObjectGroup
from nimbus.datagen.usd.stage import StageInfo

CLEARANCE = 0.03
"""[m] Between objects at the start: room for a finger and what it may be off by."""
_ABOVE = 0.0005
"""[m] Objects start so far above the surface, and settle."""


def draw_objects(
    task: Task,
    stage: StageInfo,
    streams: Streams,
    *,
    reachable: Mapping[str, Callable[[float, float], bool]],
) -> tuple[list[PlacedObject], Draws]:
    """Draw every group of a task.

    Args:
        task: The task.
        stage: Its scene.
        streams: Generators by address.
        reachable: By region name, whether the robot can work at a point of it.

    Returns:
        The objects, and the values drawn by object name.

    Raises:
        InputError: A region does not hold its objects.
    """
    objects: list[PlacedObject] = []
    drawn: Draws = {}
    taken = [rectangle(*fixture.world_bounds) for fixture in stage.fixtures.values()]
    for name, group in task.objects.items():
        placed, values = _draw_group(name, group, task, stage, streams, reachable[group.region], taken)
        objects += placed
        drawn[name] = values
    return objects, drawn


def _draw_group(
    name: str,
    group: ObjectGroup,
    task: Task,
    stage: StageInfo,
    streams: Streams,
    reachable: Callable[[float, float], bool],
    taken: list[Float],
) -> tuple[list[PlacedObject], Draws]:
    low, high = group.count
    asked = int(streams(name, "count").integers(low, high + 1))
    # A crowded layout does without its last objects, as far as the task allows.
    for count in range(asked, low - 1, -1):
        try:
            return _place_group(name, group, task, stage, streams, reachable, taken, count=count)
        except NoRoomError:
            continue
    width, depth = task.regions[group.region].size
    raise task.error(
        ("regions", group.region),
        f"{width:g} x {depth:g} m do not hold {low} of '{name}' {CLEARANCE * 100:g} cm apart within reach",
        instead="enlarge it, bring it nearer to the robot, or lower the count",
    )


def _place_group(
    name: str,
    group: ObjectGroup,
    task: Task,
    stage: StageInfo,
    streams: Streams,
    reachable: Callable[[float, float], bool],
    taken: list[Float],
    *,
    count: int,
) -> tuple[list[PlacedObject], Draws]:
    library = ObjectLibrary.open(group.library)
    region, surface = task.regions[group.region], stage.surfaces[task.regions[group.region].on]
    kinds = list(library.kinds if group.kinds == "all" else group.kinds)
    chosen = streams(name, "kinds").choice(len(kinds), size=count, replace=not group.distinct)
    names = [f"{name}_{place}" for place in range(count)]
    choices = [_choose(library, kinds[kind], group, streams, item) for kind, item in zip(chosen, names, strict=True)]
    yaw = (-math.pi, math.pi) if group.yaw == "any" else group.yaw
    outlines = [footprint(model.vertices, rest.wxyz) for model, rest in choices]
    places = find_places(
        outlines,
        [streams(item, "pose") for item in names],
        center=region.center,
        size=region.size,
        yaw=yaw,
        clearance=CLEARANCE,
        obstacles=taken,
        reachable=reachable,
    )
    taken += map(moved, outlines, places)
    objects = []
    for item, (model, rest), place in zip(names, choices, places, strict=True):
        height = surface.upper[2] + rest.height + _ABOVE
        placed = PlacedObject(
            name=item,
            group=name,
            library=library.name,
            kind=model.kind,
            variant=model.variant,
            object_class=model.object_class,
            position=(place.x, place.y, height),
            wxyz=multiply(rotation_about((0, 0, 1), place.yaw), rest.wxyz),
            rest_pose=rest.name,
            mass=model.mass,
            friction=model.friction,
        )
        objects.append(placed)
    values: dict[str, Any] = {"count": count}
    for placed, place in zip(objects, places, strict=True):
        values[placed.name] = {"kind": placed.kind, "variant": placed.variant, "rest_pose": placed.rest_pose}
        values[placed.name] |= {"x": place.x, "y": place.y, "yaw": place.yaw}
    return objects, values


def _choose(
    library: ObjectLibrary, kind: str, group: ObjectGroup, streams: Streams, item: str
) -> tuple[ObjectModel, RestPose]:
    model = library.model(kind, int(streams(item, "variant").integers(library.variant_count(kind))))
    lies = bool(streams(item, "rest").uniform() < group.lying)
    rest = model.rest_pose("lying" if lies else "upright") or model.rest_poses[0]
    return model, rest
