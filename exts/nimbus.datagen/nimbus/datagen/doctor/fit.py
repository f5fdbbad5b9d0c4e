"""Whether what is put into something fits in there, at least one way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.finding import make_finding
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.tasks.statements import Skill
from nimbus.datagen.tasks.steps import walk

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case

_WALL = 0.012
"""[m] Of a fixture, on each side."""


def check_fit(case: Case) -> Iterator[Diagnostic]:
    """Compare the two smaller sides of objects with the room inside of what receives them."""
    for step, loops in walk(case.task.steps):
        statement = step.statement
        if not isinstance(statement, Skill) or step.name != "place" or not getattr(statement, "into", None):
            continue
        rooms = _rooms(case, statement.into, loops)  # pyright: ignore[reportAttributeAccessIssue]
        if not rooms:
            continue
        keys = (*step.keys, "into")
        for group in case.groups(step.target, loops):
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
            what = f"'{large[0]}' is {one * 100:.0f} x {two * 100:.0f} cm at least, the room inside {a * 100:.0f} x "
            what += f"{b * 100:.0f} cm"
            rest = [kind for kind in sides if kind not in large]
            instead = f"write objects.{group}.kinds: [{', '.join(rest)}]" if rest else "name something larger"
            yield make_finding("fits", case.task, keys, what, instead=instead, certain=not rest)


def _rooms(case: Case, text: str, loops: tuple) -> list[tuple[float, float]]:
    """Shorter and longer side of every room that may be meant, seen from above [m]."""
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
