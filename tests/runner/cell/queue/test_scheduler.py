from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.queue.scheduler import Choice, FreeWorker, Resize, Snapshot, choose, default_split, resize
from tests.support.simulated_cell import UNBOUNDED, Cell, simulate

PLANNER, RENDERER = FreeWorker(Role.PLANNER), FreeWorker(Role.RENDERER)
BUSY = Snapshot(
    pending=100,
    planning=2,
    ready=5,
    free_slots=8,
    slots=16,
    planners=2,
    renderers=2,
    plan_seconds=1.0,
    render_seconds=2.5,
    plan_yield=0.8,
)


def test_workers_with_work_keep_their_role():
    assert choose(PLANNER, BUSY) is Choice.PLAN
    assert choose(RENDERER, BUSY) is Choice.RENDER


def test_a_planner_without_work_or_without_a_free_slot_renders():
    assert choose(PLANNER, replace(BUSY, pending=0)) is Choice.RENDER
    assert choose(PLANNER, replace(BUSY, free_slots=0)) is Choice.RENDER


def test_a_starved_renderer_plans():
    assert choose(RENDERER, replace(BUSY, ready=0)) is Choice.PLAN
    assert choose(RENDERER, replace(BUSY, ready=0, free_slots=0)) is Choice.WAIT


def test_fixed_roles_wait_for_their_own_work():
    fixed = replace(BUSY, fixed=True)
    assert choose(PLANNER, replace(fixed, free_slots=0)) is Choice.WAIT
    assert choose(RENDERER, replace(fixed, ready=0)) is Choice.WAIT
    assert choose(PLANNER, fixed) is Choice.PLAN


def test_at_the_end_a_switch_must_take_less_than_what_is_left():
    end = replace(BUSY, pending=0, planning=0, ready=5)  # 6.25 s for each of two renderers
    assert choose(FreeWorker(Role.PLANNER, 6.0), end) is Choice.RENDER
    assert choose(FreeWorker(Role.PLANNER, 7.0), end) is Choice.WAIT


def test_a_worker_whose_side_is_the_slow_one_does_not_leave_it_at_a_cost():
    start = replace(BUSY, ready=0)  # renderers starve, but two planners make more than they can render
    assert choose(FreeWorker(Role.RENDERER, 1.0), start) is Choice.WAIT
    assert choose(FreeWorker(Role.RENDERER, 1.0), replace(start, renderers=6)) is Choice.PLAN


def test_going_to_and_fro_must_be_worth_two_costs_unless_the_way_back_is_free():
    # One planner more fills the 12 slots beyond the workers' own in 15 s; then they take 30 s to run empty.
    starved = replace(BUSY, pending=400, ready=0, planners=1, renderers=3)
    assert choose(FreeWorker(Role.RENDERER, 20.0), starved) is Choice.PLAN
    assert choose(FreeWorker(Role.RENDERER, 30.0), starved) is Choice.WAIT
    assert choose(FreeWorker(Role.RENDERER, 30.0, switch_once=True), starved) is Choice.PLAN


def test_a_role_that_nobody_has_is_taken_at_any_cost():
    assert choose(FreeWorker(Role.PLANNER, 1e6), replace(BUSY, free_slots=0, renderers=0)) is Choice.RENDER
    unknown = replace(BUSY, free_slots=0, renderers=0, render_seconds=0.0)
    assert choose(FreeWorker(Role.PLANNER, 1e6), unknown) is Choice.RENDER


def test_nothing_is_paid_on_no_measurement():
    assert choose(FreeWorker(Role.RENDERER, 1.0), replace(BUSY, ready=0, renderers=6, render_seconds=0)) is Choice.WAIT


snapshots = st.builds(
    Snapshot,
    pending=st.integers(0, 1000),
    planning=st.integers(0, 8),
    ready=st.integers(0, 20),
    free_slots=st.integers(0, 20),
    slots=st.integers(1, 40),
    planners=st.integers(0, 64),
    renderers=st.integers(0, 64),
    plan_seconds=st.floats(0, 1e3),
    render_seconds=st.floats(0, 1e3),
    plan_yield=st.floats(1e-3, 1),
    fixed=st.booleans(),
)


@given(st.sampled_from(Role), st.floats(0, 1e4), st.booleans(), snapshots)
def test_only_work_that_is_there_is_chosen_and_none_is_left_when_it_is_free(
    role: Role, cost: float, once: bool, cell: Snapshot
):
    mine = {Role.PLANNER: "planners", Role.RENDERER: "renderers"}[role]
    cell = replace(cell, **{mine: max(1, getattr(cell, mine))})
    choice = choose(FreeWorker(role, cost, once), cell)
    can = {Choice.PLAN: cell.pending > 0 and cell.free_slots > 0, Choice.RENDER: cell.ready > 0, Choice.WAIT: True}
    assert can[choice]
    if cost == 0 and not cell.fixed and choice is Choice.WAIT:
        assert not can[Choice.PLAN] and not can[Choice.RENDER]


@pytest.mark.parametrize("planners", [1, 2, 3])
@pytest.mark.parametrize("slots", [4, 16, UNBOUNDED])
@pytest.mark.parametrize("variation", [0.0, 0.7])
def test_free_switches_end_within_two_percent_of_the_ideal_from_any_split(planners: int, slots: int, variation: float):
    cell = Cell(planners=planners, renderers=4 - planners, slots=slots, variation=variation)
    outcome = simulate(cell)
    assert outcome.stored == 320
    assert cell.ideal <= outcome.end <= 1.02 * cell.ideal


@pytest.mark.parametrize(("planners", "end"), [(1, 402), (2, 401), (3, 801)])
def test_fixed_roles_take_as_long_as_the_slower_side(planners: int, end: float):
    outcome = simulate(Cell(planners=planners, renderers=4 - planners, fixed=True))
    assert outcome.end == pytest.approx(end, abs=2)
    assert outcome.switches == 0


@pytest.mark.parametrize(
    ("cost", "once", "slots", "most"),
    [(5, False, 16, 1.09), (5, True, 16, 1.05), (5, True, 4, 1.05), (60, False, UNBOUNDED, 1.20)],
)
@pytest.mark.parametrize("planners", [1, 2, 3])
def test_switches_that_cost_end_near_the_bound(cost: float, once: bool, slots: int, most: float, planners: int):
    cell = Cell(planners=planners, renderers=4 - planners, slots=slots, switch_seconds=cost, switch_once=once)
    assert cell.bound <= simulate(cell).end <= most * cell.bound


@given(
    planners=st.integers(0, 4),
    renderers=st.integers(0, 4),
    slots=st.integers(1, 40),
    cost=st.sampled_from([0.0, 5.0, 1e3]),
    once=st.booleans(),
    plan_yield=st.sampled_from([0.0, 0.1, 1.0]),
    seed=st.integers(0, 100),
)
@settings(max_examples=60)
def test_no_cell_ever_stands_still(
    planners: int, renderers: int, slots: int, cost: float, once: bool, plan_yield: float, seed: int
):
    cell = Cell(
        planners=planners if planners + renderers else 1,
        renderers=renderers,
        slots=slots,
        switch_seconds=cost,
        switch_once=once,
        plan_yield=plan_yield,
        episodes=40,
        variation=0.7,
        seed=seed,
    )
    assert simulate(cell).stored == round(40 * plan_yield)


@pytest.mark.parametrize(
    ("cores", "split"), [(1, (1, 0)), (2, (1, 1)), (3, (1, 2)), (4, (1, 3)), (7, (2, 5)), (16, (5, 11))]
)
def test_the_default_split_makes_the_slower_side_fast(cores: int, split: tuple[int, int]):
    assert default_split(cores, 1.0, 2.5, plan_yield=0.8) == split


@pytest.mark.parametrize(
    ("current", "wanted", "change"),
    [
        ((1, 1), (1, 1), Resize()),
        ((1, 1), (3, 1), Resize(planners=2)),
        ((3, 1), (1, 3), Resize(to_renderer=2)),
        ((1, 3), (2, 1), Resize(to_renderer=-1, renderers=-1)),
        ((3, 1), (1, 2), Resize(to_renderer=1, planners=-1)),
        ((2, 1), (1, 4), Resize(to_renderer=1, renderers=2)),
    ],
)
def test_resizing_changes_roles_before_it_starts_or_stops_anybody(
    current: tuple[int, int], wanted: tuple[int, int], change: Resize
):
    assert resize(current, wanted) == change


@given(st.tuples(*[st.integers(0, 200)] * 2), st.tuples(*[st.integers(0, 200)] * 2))
def test_resizing_leads_to_what_was_asked(current: tuple[int, int], wanted: tuple[int, int]):
    change = resize(current, wanted)
    there = (
        current[0] - change.to_renderer + change.planners,
        current[1] + change.to_renderer + change.renderers,
    )
    assert there == wanted
    assert change.planners * change.renderers >= 0


def test_a_planner_without_work_renders_although_nobody_knows_yet_how_long_that_takes():
    cell = Snapshot(
        pending=0,
        planning=0,
        ready=3,
        free_slots=5,
        slots=8,
        planners=1,
        renderers=1,
        plan_seconds=2.0,
        render_seconds=0.0,
    )
    assert choose(FreeWorker(Role.PLANNER, 4.0, switch_once=True), cell) is Choice.RENDER
