"""The demonstrator during a push: it recovers from the effects of the push, and the record contains the recovery and
can be replayed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Disturbance, PhysicalLayout
from nimbus.datagen.episode.trajectory import DISTURBED, Trajectory
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.random_streams import generator
from nimbus.runner.checks.replay import replay_actions
from tests.support.one_can import layout, simulation, task, thing

SPONGE = thing(kind="sponge")


def attempt(at: PhysicalLayout) -> Trajectory:
    return run_attempt(task(), simulation(), at, streams=partial(generator, 0), planner="ompl")


def pushed(*, time: float, speed: float, body: str = SPONGE.name, force: float = 0.0) -> PhysicalLayout:
    push = Disturbance(
        body=body,
        time=time,
        duration=0.12,
        force=(0.0, force or SPONGE.mass * speed / 0.12, 0.0),
        is_slippery=body == SPONGE.name,
        unnoticed=0.3,
    )
    return replace(layout(SPONGE), disturbance=push)


def phases(made: Trajectory) -> list[str]:
    return [f"{part.skill} {part.phase}" for part in made.segments]


@pytest.mark.slow
def test_sponge_that_slips_is_picked_again():
    at = pushed(time=2.1, speed=0.1)
    made = attempt(at)
    said = phases(made)
    assert made.outcome.success, made.outcome
    first = said.index(f"{DISTURBED} pushed")
    assert said[first : first + 3] == [f"{DISTURBED} {phase}" for phase in ("pushed", "unnoticed", "stop")]
    assert "pick grasp" in said[:first] and "pick grasp" in said[first:]
    again = replay_actions(task(), at, made)
    assert again.outcome.success and np.array_equal(again.joint_positions, made.joint_positions)


@pytest.mark.slow
def test_pushed_arm_plans_from_where_it_is():
    made = attempt(pushed(time=0.6, speed=0.0, body="panda_hand", force=95.0))
    assert made.outcome.success, made.outcome
    said = phases(made)
    assert said[:5] == [
        "pick reach",
        *(f"{DISTURBED} {phase}" for phase in ("pushed", "unnoticed", "stop")),
        *said[4:5],
    ]


@pytest.mark.slow
def test_push_that_moves_nothing_changes_no_plan():
    made = attempt(pushed(time=0.3, speed=0.0))
    assert f"{DISTURBED} stop" not in phases(made) and f"{DISTURBED} pushed" in phases(made)
    assert made.outcome.success, made.outcome
