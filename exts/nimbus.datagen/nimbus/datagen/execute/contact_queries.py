"""What touches what, and how far things are from each other: looked at afresh, also where physics sleeps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

if TYPE_CHECKING:
    from nimbus.datagen.tasks.workcell_interface import World


WORLD = "world"
"""Stands for all that never moves: table, floor, walls."""
_TOUCHING = 0.0005
"""[m] Two surfaces so near touch each other."""
_UPWARD = 0.5
"""Least vertical part of the unit normal where one thing rests on another."""


@dataclass(frozen=True)
class ContactQuery:
    """One contact of a thing with another."""

    other: str
    """Name of the object, fixture or robot link; ``world`` for what never moves."""
    upward: float
    """Vertical part of the unit normal that points to the thing: 1 where it lies on the other."""


def is_touching(world: World, name: str) -> list[ContactQuery]:
    """All contacts of an object or a fixture, its moving parts included."""
    model, scratch = world.simulation.model, mujoco.MjData(world.simulation.model)
    scratch.qpos[:] = world.simulation.data.qpos
    margins = model.geom_margin.copy()
    model.geom_margin[:] = _TOUCHING / 2
    try:
        mujoco.mj_fwdPosition(model, scratch)
    finally:
        model.geom_margin[:] = margins
    found = []
    for contact in scratch.contact[: scratch.ncon]:
        one, other = (thing_of(model.body(model.geom_bodyid[geom]).name) for geom in contact.geom)
        if one != other and name in (one, other):
            upward = float(contact.frame[2])  # the normal points from the first to the second
            found.append(ContactQuery(one, upward) if name == other else ContactQuery(other, -upward))
    return found


def thing_of(body: str) -> str:
    """The object, fixture or link that a body belongs to."""
    return body.split(".")[0]


def is_resting_on(world: World, name: str) -> set[str]:
    """Names of what a thing rests on; ``world`` for the table and the floor."""
    return {touch.other for touch in is_touching(world, name) if touch.upward > _UPWARD}


def measure_gap(world: World, name: str, other: str, *, most: float) -> float:
    """Distance between the surfaces of two things [m], 0 where they touch; ``most`` when it is larger."""
    model, data = world.simulation.model, world.simulation.data
    one_geoms, other_geoms = _geoms(model, name), _geoms(model, other)
    points = np.zeros(6)
    distances = (
        mujoco.mj_geomDistance(model, data, one, two, most, points) for one in one_geoms for two in other_geoms
    )
    return max(0.0, min(distances, default=most))


def _geoms(model: mujoco.MjModel, name: str) -> Collection[int]:
    return [geom for geom in range(model.ngeom) if thing_of(model.body(model.geom_bodyid[geom]).name) == name]
