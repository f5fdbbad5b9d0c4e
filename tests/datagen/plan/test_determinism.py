"""Equal scenes, queries and streams give equal motions, independently of earlier queries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.plan.motion import MotionPlan, MotionQuery
from nimbus.datagen.plan.ompl import OmplPlanner
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.random_streams import generator
from tests.support.panda_table import (
    ACCELERATION,
    BINS,
    HOME,
    VELOCITY,
    make_scene,
    start_positions,
    table_model,
    top_down,
)

HELD = np.diag([1.0, -1.0, -1.0, 1.0])
MODEL = table_model()

Ask = Callable[[PlanningScene, OmplPlanner, np.random.Generator], list[MotionPlan]]


def carry(scene: PlanningScene, planner: OmplPlanner, rng: np.random.Generator) -> list[MotionPlan]:
    scene.hold("can", HELD)
    start = scene.arm.solve(top_down(0.45, 0.2, 0.09), HOME)
    assert start is not None
    return [planner.plan_pose(scene, start, [top_down(*BINS["right"], 0.13, yaw) for yaw in (0.0, 1.6)], rng=rng)]


def go_home(scene: PlanningScene, planner: OmplPlanner, rng: np.random.Generator) -> list[MotionPlan]:
    return [planner.plan_joints(scene, HOME + [1.2, 0.3, 0, 0.3, 0, 0, 0], HOME, rng=rng)]


def reach_too_far(scene: PlanningScene, planner: OmplPlanner, rng: np.random.Generator) -> list[MotionPlan]:
    return [planner.plan_pose(scene, HOME, [top_down(1.3, 0.0, 0.3)], rng=rng)]


def pick(scene: PlanningScene, planner: OmplPlanner, rng: np.random.Generator) -> list[MotionPlan]:
    x, y, z = scene.body_pose("carton")[:3, 3] + [0, 0, 0.03]
    plan = planner.plan_grasp(scene, HOME, [top_down(x, y, -0.02), top_down(x, y, z, np.pi / 2)], "carton", rng=rng)
    return [plan.approach, plan.reach, plan.lift, planner.join(scene, [plan.approach, plan.reach])]


def two_at_once(scene: PlanningScene, planner: OmplPlanner, rng: np.random.Generator) -> list[MotionPlan]:
    goals = (top_down(*BINS["left"], 0.24),)
    queries = [MotionQuery(scene=scene, start_q=HOME, goals=goals, rng=rng) for _ in range(2)]
    return planner.plan_batch(queries)


ASKS: tuple[Ask, ...] = (carry, go_home, reach_too_far, pick, two_at_once)


def answer(ask: int, seed: int, scene: PlanningScene, planner: OmplPlanner) -> bytes:
    scene.set_world(start_positions(MODEL))
    scene.hold(None)
    plans = ASKS[ask](scene, planner, generator(seed, "determinism", ask))
    return b"".join(
        str(plan.status).encode() + plan.time.tobytes() + plan.positions.tobytes() + plan.velocities.tobytes()
        for plan in plans
    )


def new_planner() -> OmplPlanner:
    return OmplPlanner(velocity_limits=VELOCITY, acceleration_limits=ACCELERATION)


@cache
def alone(ask: int, seed: int) -> bytes:
    """Return the answer of a new planner."""
    return answer(ask, seed, make_scene(MODEL), new_planner())


@pytest.mark.slow
@settings(max_examples=6)
@given(st.lists(st.tuples(st.integers(0, len(ASKS) - 1), st.integers(0, 2)), min_size=1, max_size=6))
def test_a_plan_does_not_depend_on_what_was_asked_before(calls: list[tuple[int, int]]) -> None:
    scene, planner = make_scene(MODEL), new_planner()
    for ask, seed in calls:
        assert answer(ask, seed, scene, planner) == alone(ask, seed), ASKS[ask].__name__


@settings(max_examples=10)
@given(st.permutations([(ask, seed) for ask in (0, 1, 3) for seed in (0, 1)]))
def test_two_planners_that_take_turns_do_not_disturb_each_other(calls: list[tuple[int, int]]) -> None:
    cells = [(make_scene(MODEL), new_planner()) for _ in range(2)]
    for turn, (ask, seed) in enumerate(calls):
        assert answer(ask, seed, *cells[turn % 2]) == alone(ask, seed), ASKS[ask].__name__


def test_another_seed_gives_another_way() -> None:
    assert alone(0, 0) != alone(0, 1)
