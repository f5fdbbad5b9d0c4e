"""Numbers of planners and instances, if starting an instance takes minutes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.runner.cell.queue.instance_roles import InstanceCell, choose_split
from tests.support.simulated_instances import InstanceRun, best_fixed, end_of

CELL = InstanceCell(
    planners=2,
    renderers=1,
    pending=100,
    ready=4,
    plan_seconds=1.0,
    render_seconds=10.0,
    measured=100,
    start_seconds=20.0,
    slots=16,
    most_renderers=4,
)


def test_planner_makes_room_for_an_instance_and_back():
    assert choose_split(CELL) == (1, 2)
    flooded = replace(CELL, planners=1, renderers=2, plan_seconds=30.0, render_seconds=1.0)
    assert choose_split(flooded) == (2, 1)


def test_planners_without_work_all_make_room():
    assert choose_split(replace(CELL, pending=0, ready=60)) == (0, 3)
    lost = replace(CELL, planners=0, renderers=3, pending=1, ready=30)
    assert choose_split(lost)[0] >= 1, "a plan that was lost is made again"


def test_nothing_starts_that_does_not_pay_or_fit():
    assert choose_split(replace(CELL, pending=0, ready=3)) == (2, 1), "a start takes longer than half of the rest"
    assert choose_split(replace(CELL, most_renderers=1)) == (2, 1)
    assert choose_split(replace(CELL, render_seconds=0.0)) == (2, 1), "nothing is measured yet"


@settings(max_examples=200)
@given(
    st.integers(0, 9),
    st.integers(1, 9),
    st.integers(0, 500),
    st.integers(0, 50),
    st.floats(0, 100),
    st.floats(0, 100),
    st.floats(1, 300),
    st.integers(1, 12),
)
def test_workers_stay_as_many_and_instances_fit(
    planners: int,
    renderers: int,
    pending: int,
    ready: int,
    plan: float,
    render: float,
    start: float,
    most: int,
):
    cell = InstanceCell(
        planners=planners,
        renderers=renderers,
        pending=pending,
        ready=ready,
        plan_seconds=plan,
        render_seconds=render,
        measured=10,
        start_seconds=start,
        slots=8,
        most_renderers=most,
    )
    split = choose_split(cell)
    assert sum(split) == planners + renderers and split[1] >= 1
    assert split[1] <= max(most, renderers)


@pytest.mark.parametrize(("gpus", "cores"), [(1, 6), (2, 12)])
@pytest.mark.parametrize(("plan", "render"), [(4.0, 8.0), (10.0, 2.0)])
@pytest.mark.parametrize("start", [30.0, 300.0])
def test_moves_end_about_as_soon_as_the_best_split(gpus: int, cores: int, plan: float, render: float, start: float):
    """The end is within 5 % of that of the best fixed split, and no later than that of the initial split."""
    episodes = int(1800 * cores / (plan + render))
    run = InstanceRun(
        cores=cores, gpus=gpus, episodes=episodes, plan_seconds=plan, render_seconds=render, start_seconds=start
    )
    end = end_of(run)
    assert end <= 1.05 * best_fixed(run)[0] and end <= end_of(run, run.default)
