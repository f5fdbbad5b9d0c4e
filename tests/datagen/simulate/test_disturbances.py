"""A push in physics: it acts at its time, with its strength, and leaves the model unchanged."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Disturbance
from nimbus.datagen.execute.planner import settle
from nimbus.datagen.simulate.newton import NewtonSimulation
from tests.support.one_can import layout, simulation, thing

CAN = thing()
PUSH = Disturbance(
    body=CAN.name, time=0.4, duration=0.1, force=(0.0, CAN.mass * 0.2 / 0.1, 0.0), is_slippery=True, unnoticed=0.2
)


@lru_cache
def loaded() -> NewtonSimulation:
    return simulation(CAN)


def places(disturbance: Disturbance | None, body: str, periods: int = 12) -> np.ndarray:
    """Return the positions (T, 3) of a body after each period, from the start of the recording."""
    made = loaded()
    made.load(dataclasses.replace(layout(CAN), disturbance=disturbance))
    settle(made)
    command = made.present_action()
    found = []
    for _ in range(periods):
        made.advance(command)
        found.append(made.body_pose(body)[:3, 3])
    return np.array(found)


def test_object_is_pushed_at_its_time():
    still, pushed = places(None, CAN.name), places(PUSH, CAN.name)
    moved = pushed - still
    assert np.abs(moved[:6]).max() == 0.0, "0.4 s are six periods; it did not begin while things settled"
    assert moved[-1, 1] > 0.01 > abs(moved[-1, 0])
    assert np.array_equal(pushed, places(PUSH, CAN.name))


def test_friction_is_as_before_after_a_push():
    places(None, CAN.name)
    friction, priority = loaded().model.geom_friction.copy(), loaded().model.geom_priority.copy()
    places(PUSH, CAN.name)
    assert np.array_equal(loaded().model.geom_friction, friction)
    assert np.array_equal(loaded().model.geom_priority, priority)
    assert not loaded().data.xfrc_applied.any()


@pytest.mark.parametrize("force", [40.0, 90.0])
def test_pushed_arm_gives_way_and_returns(force: float):
    push = Disturbance(body="panda_hand", time=0.0, duration=0.15, force=(0.0, force, 0.0))
    away = np.linalg.norm(places(push, "panda_hand") - places(None, "panda_hand"), axis=1)
    assert away.max() > 0.004 and away[-1] < 1e-3
