"""Check that objects fit into the containers into which the steps place them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.case import make_finding
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.tasks.statements import Skill
from nimbus.datagen.tasks.steps import walk

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.doctor.case import Case
    from nimbus.datagen.objects.model import ObjectModel

_WALL = 0.012
"""Thickness of a fixture's wall, on each side [m]."""
_STICKING_OUT = 0.02
"""Length by which an object may be longer than the opening [m]; a slightly longer one slides in at an angle."""
_YAWS = np.radians(np.arange(0, 180, 5))
"""Headings of an object in the opening that are compared [rad]."""
_TURNING = ("flip", "do")
"""Skills that may leave an object in another rest pose, in addition to ``place`` with ``rest``."""
Room = tuple[float, float]
"""Shorter and longer side of the space in a container [m]."""


def check_fit(case: Case) -> Iterator[Diagnostic]:
    """Compare the two smaller sides of objects with the space inside their receptacles."""
    for keys, groups, rooms in _placements(case):
        for group in groups:
            sides = {
                kind: min(
                    tuple(np.sort(np.ptp(case.library(group).model(kind, 0, scale).bounds, axis=0))[:2])
                    for scale in case.scales(group)
                )
                for kind in case.kinds(group)
            }
            large = [kind for kind, (one, two) in sides.items() if all(one > a or two > b for a, b in rooms)]
            if not large:
                continue
            (one, two), (a, b) = sides[large[0]], max(rooms)
            what = f"'{large[0]}' is at least {one * 100:.0f} x {two * 100:.0f} cm, but only {a * 100:.0f} x "
            what += f"{b * 100:.0f} cm are free inside"
            rest = [kind for kind in sides if kind not in large]
            instead = f"write objects.{group}.kinds: [{', '.join(rest)}]" if rest else "name a larger container"
            yield make_finding("fits", case.task, keys, what, instead=instead, certain=not rest)


def check_carried(case: Case) -> Iterator[Diagnostic]:
    """Find objects that fit only end first, but are carried level, such as a pencil that lies on the table."""
    turned = set(_turned_groups(case))
    for keys, groups, rooms in _placements(case):
        for group in groups:
            kinds = () if group in turned else case.kinds(group)
            long = {kind: size for kind in kinds if (size := _size_outside(case, group, kind, rooms))}
            if not long:
                continue
            (kind, (one, two)), (a, b) = next(iter(long.items())), max(rooms)
            what = f"'{kind}' is {one * 100:.0f} x {two * 100:.0f} cm from above as it starts, but the opening is "
            what += f"{a * 100:.0f} x {b * 100:.0f} cm, and 'place' does not tilt it"
            rest = [kind for kind in kinds if kind not in long]
            instead = f"write objects.{group}.kinds: [{', '.join(rest)}]" if rest else "name a larger container"
            yield make_finding("fits", case.task, keys, what, instead=instead)


def _placements(case: Case) -> Iterator[tuple[tuple[str | int, ...], tuple[str, ...], list[Room]]]:
    """Yield the field, the groups and the possible rooms of each step that places something into a container."""
    for step, loops in walk(case.task.steps):
        into = getattr(step.statement, "into", None)
        if isinstance(step.statement, Skill) and step.name == "place" and into and (rooms := _rooms(case, into, loops)):
            yield (*step.keys, "into"), case.groups(step.target, loops), rooms


def _turned_groups(case: Case) -> Iterator[str]:
    """Yield the groups whose objects a step may bring into another rest pose."""
    for step, loops in walk(case.task.steps):
        if step.name in _TURNING or getattr(step.statement, "rest", None):
            yield from case.groups(step.target, loops)


def _size_outside(case: Case, group: str, kind: str, rooms: list[Room]) -> Room | None:
    """Return the outline from above [m] of a kind that fits into no room as it starts; None if it fits into one."""
    settings = case.task.objects[group]
    names = [name for name, share in (("upright", 1 - settings.lying), ("lying", settings.lying)) if share > 0]
    size = None
    for scale in case.scales(group):
        model = case.library(group).model(kind, 0, scale)
        for name in names:
            sizes = _outlines(model, name)
            spare = [np.array(room) + _STICKING_OUT for room in (*rooms, *(room[::-1] for room in rooms))]
            if any(np.all(sizes <= room, axis=1).any() for room in spare):
                return None
            one, two = np.sort(sizes[np.argmin(sizes.prod(axis=1))])
            size = (float(one), float(two))
    return size


def _outlines(model: ObjectModel, name: str) -> FloatArray:
    """Return the sizes (N, 2) from above of a model in its start pose, one for each heading [m]."""
    rest = model.rest_pose(name) or model.rest_poses[0]
    points = model.vertices @ quat_to_matrix(rest.wxyz).T
    turns = (quat_to_matrix(quat_from_axis_angle((0, 0, 1), float(yaw)))[:2] for yaw in _YAWS)
    return np.array([np.ptp(points @ turn.T, axis=0) for turn in turns])


def _rooms(case: Case, text: str, loops: tuple) -> list[Room]:
    """Return the shorter and the longer side of the space in each possible receptacle [m]."""
    rooms = []
    for name in case.fixtures(text, loops):
        size = np.ptp(np.array(case.assets.stage.fixtures[name].bounds), axis=0)[:2] - 2 * _WALL
        rooms.append(tuple(float(side) for side in np.sort(size)))
    for group in case.groups(text, loops):
        for kind in case.kinds(group):
            for scale in case.scales(group):
                for low, high in case.library(group).model(kind, 0, scale).cavities.values():
                    rooms.append(tuple(float(side) for side in np.sort((high - low)[:2])))
    return rooms
