"""Positions at which a held object can be released: heights of the surfaces below, free spots, headings."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.execute.motions.release import (
    SIDES,
    draw_spots_inside,
    find_spots_beside,
    find_spots_inside,
    find_spots_on,
    measure_support_heights,
    nearest_rest_pose,
    similar_yaws,
)
from nimbus.datagen.execute.motions.setting_down import plan_release, plan_release_inside
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.skills.pick import Pick
from nimbus.skills.place import Place
from tests.support.one_can import make, thing, workcell

ANGLES = st.floats(-np.pi, np.pi)


@pytest.fixture(scope="module")
def cell() -> SimulatedWorkcell:
    """Return a scene with a can on the table, for reading only."""
    return workcell(thing(), thing("items_1", kind="sponge", x=0.6, y=-0.2, rest="lying"))


def test_a_plumb_line_meets_the_table_beside_a_can_and_the_top_of_the_can_over_it(cell: SimulatedWorkcell):
    top = cell.bounds("items_0")[1][2]
    beside, over = measure_support_heights(cell, np.array([[0.5, 0.2], [0.5, 0.0]]), top=0.5)
    assert beside == pytest.approx(0.0, abs=1e-3)
    assert over == pytest.approx(top, abs=2e-3)


def test_a_plumb_line_passes_what_is_ignored_and_the_robot(cell: SimulatedWorkcell):
    assert measure_support_heights(cell, np.array([[0.5, 0.0]]), top=0.5, ignored=["items_0"])[0] == pytest.approx(
        0, abs=1e-3
    )
    hand = cell.tool_pose()[:2, 3]
    assert measure_support_heights(cell, hand[None], top=1.0)[0] == pytest.approx(0.0, abs=1e-3)


@settings(max_examples=50)
@given(yaw=ANGLES, kind=st.sampled_from(["can", "sponge", "bread"]))
def test_however_it_is_turned_about_the_vertical_the_nearest_rest_is_the_one_it_is_in(yaw: float, kind: str):
    model = open_library("trash").model(kind, 0)
    for rest in model.rest_poses:
        turned = quat_to_matrix(quat_from_axis_angle((0, 0, 1), yaw)) @ quat_to_matrix(rest.wxyz)
        found = nearest_rest_pose(model, turned)
        assert quat_to_matrix(found.wxyz)[2] @ quat_to_matrix(rest.wxyz)[2] == pytest.approx(1.0)


@settings(max_examples=50)
@given(now=ANGLES, along=ANGLES)
def test_sides_go_along_those_of_a_reference_with_the_least_turn(now: float, along: float):
    turn, reference = (quat_to_matrix(quat_from_axis_angle((0, 0, 1), angle)) for angle in (now, along))
    first, *others = similar_yaws(turn, along=reference)
    assert abs(first - now) <= np.pi / 4 + 1e-6
    for yaw in (first, *others):
        assert np.sin(2 * (yaw - along)) == pytest.approx(0.0, abs=1e-6)


def test_a_spot_beside_is_a_gap_away_on_the_side_that_is_named():
    lower, upper = np.array([0.4, -0.1]), np.array([0.5, 0.1])
    (spot,) = find_spots_beside(lower, upper, sides=["left"], gap=0.03)
    np.testing.assert_allclose(spot.position, [0.45, 0.13])
    np.testing.assert_allclose(spot.side, SIDES["left"])


def test_free_spots_come_by_distance_from_the_middle_and_the_middle_itself_comes_last():
    *free, last = find_spots_on(np.array([0.0, 0.0]), np.array([0.2, 0.1]))
    distances = [float(np.linalg.norm(spot.position - (0.1, 0.05))) for spot in free]
    assert distances == sorted(distances) and distances[0] < 1e-9
    assert last.room is None and np.allclose(last.position, (0.1, 0.05))


def test_place_beside_leaves_the_gap_that_is_asked_for():
    cell = workcell(thing(), thing("items_1", kind="sponge", x=0.55, y=-0.15, rest="lying"))
    make(Pick, object="items_1").run(cell)
    make(Place, object="items_1", beside="items_0", side="right", gap=0.04).run(cell)
    cell.wait(4)
    gap = cell.bounds("items_0")[0][1] - cell.bounds("items_1")[1][1]
    assert gap == pytest.approx(0.04, abs=0.006)
    assert cell.lowest_point("items_1") == pytest.approx(0.0, abs=2e-3)


def test_the_middle_of_a_region_comes_first_and_what_sticks_out_last() -> None:
    center, size, outline = np.array([0.5, 0.1]), np.array([0.12, 0.2]), np.array([0.04, 0.06])
    spots = np.array([spot.position for spot in find_spots_inside(center, size, outline=outline)]) - center
    np.testing.assert_allclose(spots[0], 0, atol=1e-12)
    inside = np.all(np.abs(spots) <= (size - outline) / 2 + 1e-9, axis=1)
    count = int(inside.sum())
    assert 20 < count < len(spots) and inside[:count].all()
    assert (np.diff(np.linalg.norm(spots[:count], axis=1)) > -1e-5).all()
    assert np.abs(spots).max(axis=0) == pytest.approx(size / 2)


def test_drawn_spots_keep_half_the_object_inside() -> None:
    center, size, outline = np.array([0.5, 0.1]), np.array([0.12, 0.2]), np.array([0.1, 0.06])
    rng = np.random.default_rng(0)
    for spread, half in ((1.0, (0.01, 0.07)), (0.4, (0.01, 0.04))):
        spots = draw_spots_inside(center, size, outline=outline, spread=spread, rng=rng, count=200)
        furthest = np.abs([spot.position - center for spot in spots]).max(axis=0)
        assert (furthest <= half).all() and (furthest > 0.9 * np.array(half)).all()


def test_spread_without_a_region_is_refused() -> None:
    with pytest.raises(ValueError, match="'spread' is only allowed with 'on'"):
        make(Place, object="items_0", beside="items_1", spread=0.4)


def test_planning_of_a_release_ends():
    asked: list[int] = []

    def plan_pose(scene: object, start: object, goals: list[object], *, rng: object) -> MotionPlan:
        asked.append(len(goals))
        return MotionPlan(status=MotionStatus.NO_IK)

    scene = SimpleNamespace(nearer=lambda _: nullcontext())
    planner = SimpleNamespace(plan_pose=plan_pose)
    cell: Any = SimpleNamespace(look=lambda: scene, planner=planner, arm_command=None, rng=lambda: None, held="can")
    with pytest.raises(SkillFailure, match="no_ik"):
        plan_release(cell, itertools.repeat((np.eye(4), np.eye(4))))
    assert sum(asked) == 2 * 192  # each with and without free space around


def test_in_a_narrow_container_the_first_release_with_room_is_taken_and_else_the_nearest(cell: SimulatedWorkcell):
    def release(x: float, y: float, z: float) -> tuple[np.ndarray, np.ndarray]:
        down = make_transform((x, y, z), (0.0, 1.0, 0.0, 0.0))
        return make_transform((0.0, 0.0, 0.1), (1.0, 0.0, 0.0, 0.0)) @ down, down

    x, y = cell.tool_pose()[:2, 3]
    in_table, far, near = release(x, y, -0.05), release(0.45, 0.35, 0.2), release(x, y, 0.2)
    for ways, expected in (([far, near], near), ([in_table, far, near], far)):
        _, lower = plan_release_inside(cell, ways)
        np.testing.assert_allclose(cell.scene.tool_pose(lower.end), expected[1], atol=1e-3)
    with pytest.raises(SkillFailure, match=r"no_path: .* touches "):
        plan_release_inside(cell, [in_table])
