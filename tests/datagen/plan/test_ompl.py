"""The default planner, on a Panda at a table with bins."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh

from nimbus.datagen.plan.motion import MotionPlan, MotionQuery, MotionStatus
from nimbus.datagen.plan.ompl import OmplPlanner
from nimbus.datagen.plan.path import path_is_free
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.random_streams import generator
from nimbus.datagen.registry import lookup
from tests.support.panda_table import BINS, HOME, make_scene, table_model, top_down

HELD = np.diag([1.0, -1.0, -1.0, 1.0])


def above(bin_name: str, height: float = 0.24) -> list[np.ndarray]:
    return [top_down(*BINS[bin_name], height, yaw) for yaw in np.pi / 2 * np.arange(-2, 2)]


def posture(scene: PlanningScene, x: float, y: float, z: float) -> np.ndarray:
    q = scene.arm.solve(top_down(x, y, z), HOME)
    assert q is not None
    return q


def carry(scene: PlanningScene, planner: OmplPlanner, index: int) -> MotionPlan:
    """Return a query that carries the can from the middle of the table to a point behind the wall of a bin."""
    scene.hold("can", HELD)
    start = posture(scene, 0.45, 0.2 * (-1) ** index, 0.09)
    goals = above(list(BINS)[index % 3], 0.13)
    return planner.plan_pose(scene, start, goals, rng=generator(0, "test", index))


@pytest.mark.parametrize("index", range(6))
def test_a_held_object_is_carried_into_a_bin_and_touches_nothing(
    scene: PlanningScene, exact: PlanningScene, planner: OmplPlanner, index: int
) -> None:
    plan = carry(scene, planner, index)
    assert plan, plan.detail
    exact.hold("can", HELD)
    assert path_is_free(plan.positions, lambda q: not exact.in_collision(q), step=0.005)
    assert plan.duration < 3.5 and plan.statistics["clearance"] > 0
    goal = above(list(BINS)[index % 3], 0.13)[plan.goal_index]
    np.testing.assert_allclose(scene.tool_pose(plan.end), goal, atol=2e-3)


def plans_hash(indices: list[int]) -> str:
    from tests.support.panda_table import ACCELERATION, VELOCITY, make_scene, table_model

    scene = make_scene(table_model())
    planner = OmplPlanner(velocity_limits=VELOCITY, acceleration_limits=ACCELERATION)
    plans = {index: carry(scene, planner, index).positions.tobytes() for index in indices}
    return hashlib.sha256(b"".join(plans[index] for index in sorted(plans))).hexdigest()


def test_plans_are_the_same_bytes_in_any_order_and_in_another_process() -> None:
    here = plans_hash([0, 1, 2])
    folder = str(Path(__file__).parent)
    code = (
        f"import sys; sys.path[:0] = {[folder, *sys.path]!r}; import test_ompl; print(test_ompl.plans_hash([2, 0, 1]))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here


def test_the_streams_seed_decides_the_path(scene: PlanningScene, planner: OmplPlanner) -> None:
    scene.hold("can", HELD)
    start = posture(scene, 0.45, 0.2, 0.09)
    one, same, other = (planner.plan_pose(scene, start, above("right", 0.13), rng=generator(s, "a")) for s in (1, 1, 2))
    assert one.positions.tobytes() == same.positions.tobytes() != other.positions.tobytes()


def test_a_clear_way_is_a_straight_edge(scene: PlanningScene, planner: OmplPlanner) -> None:
    plan = planner.plan_joints(scene, HOME, HOME + [0.3, 0, 0, 0, 0, 0, 0.2], rng=generator(0, "a"))
    assert plan and len(plan.waypoints) == 2
    np.testing.assert_array_equal(plan.positions[0], HOME)


def test_why_there_is_no_motion_is_said(scene: PlanningScene, planner: OmplPlanner) -> None:
    rng = generator(0, "a")
    far = planner.plan_pose(scene, HOME, [top_down(1.3, 0, 0.3)], rng=rng)
    assert far.status is MotionStatus.NO_IK and not far
    buried = posture(scene, 0.63, 0.05, 0.0)
    start = planner.plan_joints(scene, buried, HOME, rng=rng)
    assert start.status is MotionStatus.START_IN_COLLISION and "world" in start.detail and "finger" in start.detail
    goal = planner.plan_joints(scene, HOME, buried, rng=rng)
    assert goal.status is MotionStatus.GOAL_IN_COLLISION and "world" in goal.detail
    beyond = planner.plan_joints(scene, HOME, HOME + 3.0, rng=rng)
    assert beyond.status is MotionStatus.OUT_OF_LIMITS


def test_the_search_gives_up_after_its_limit_of_checks(scene: PlanningScene) -> None:
    from tests.support.panda_table import ACCELERATION, VELOCITY

    planner = OmplPlanner(velocity_limits=VELOCITY, acceleration_limits=ACCELERATION, max_checks=20)
    assert carry(scene, planner, 2).status is MotionStatus.NO_PATH


def test_a_start_within_the_margin_can_be_left(scene: PlanningScene, planner: OmplPlanner) -> None:
    start = posture(scene, 0.63, 0.05, 0.0095 + 0.002)
    assert scene.in_collision(start) and not scene.touches(start)
    assert planner.plan_joints(scene, start, HOME, rng=generator(0, "a"))
    assert scene.margin == 0.004


def test_a_line_lifts_an_object_that_rests_on_the_table(scene: PlanningScene, planner: OmplPlanner) -> None:
    x, y, z = scene.body_pose("can")[:3, 3]
    start = posture(scene, x, y, z)
    scene.hold("can", np.linalg.inv(scene.tool_pose(start)) @ scene.body_pose("can"))
    assert scene.in_collision(start)
    plan = planner.plan_line(scene, start, top_down(x, y, z + 0.1), speed=0.25)
    assert plan, plan.detail
    places = np.array([scene.tool_pose(q)[:3, 3] for q in plan.positions])
    np.testing.assert_allclose(places[:, :2], [[x, y]] * len(places), atol=5e-4)
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() * 15 < 2 * 0.25


def test_a_line_through_an_object_is_blocked_and_names_it(scene: PlanningScene, planner: OmplPlanner) -> None:
    x, y, z = scene.body_pose("carton")[:3, 3]
    plan = planner.plan_line(scene, posture(scene, x, y + 0.02, z + 0.2), top_down(x, y + 0.02, z))
    assert plan.status is MotionStatus.LINE_BLOCKED and "carton" in plan.detail


def test_a_line_out_of_reach_is_blocked(scene: PlanningScene, planner: OmplPlanner) -> None:
    plan = planner.plan_line(scene, HOME, top_down(1.2, 0.0, 0.3))
    assert plan.status is MotionStatus.LINE_BLOCKED and "reach" in plan.detail


def test_a_pick_takes_the_first_grasp_that_works_and_its_parts_fit_together(
    scene: PlanningScene, exact: PlanningScene, planner: OmplPlanner
) -> None:
    x, y, z = scene.body_pose("carton")[:3, 3] + [0, 0, 0.03]
    inside_the_table, out_of_reach = top_down(x, y, -0.02), top_down(1.2, 0, 0.1)
    # The carton is 4 cm thick along x: the fingers close along x.
    good = top_down(x, y, z, np.pi / 2)
    plan = planner.plan_grasp(scene, HOME, [inside_the_table, out_of_reach, good], "carton", rng=generator(0, "a"))
    assert plan, plan.detail
    assert plan.grasp_index == 2 and plan.attempts.get("grasp: no_ik", 0) + plan.attempts.get(
        "grasp: goal_in_collision", 0
    ) == sum(plan.attempts.values())
    np.testing.assert_array_equal(plan.approach.positions[-1], plan.reach.positions[0])
    np.testing.assert_array_equal(plan.reach.positions[-1], plan.lift.positions[0])
    np.testing.assert_allclose(scene.tool_pose(plan.reach.end), plan.world_T_tool, atol=2e-3)
    assert scene.tool_pose(plan.lift.end)[2, 3] == pytest.approx(z + 0.10, abs=1e-3)
    for motion in (plan.approach, plan.reach):
        assert path_is_free(motion.positions, lambda q: not exact.in_collision(q), step=0.005)


def test_a_pick_without_a_feasible_grasp_counts_why(scene: PlanningScene, planner: OmplPlanner) -> None:
    grasps = [top_down(1.2, 0, 0.1), top_down(0.5, 0.2, -0.02)]
    plan = planner.plan_grasp(scene, HOME, grasps, "carton", rng=generator(0, "a"))
    assert not plan and plan.status in (MotionStatus.NO_IK, MotionStatus.GOAL_IN_COLLISION)
    assert plan.attempts["grasp: no_ik"] >= 1 and plan.attempts["grasp: goal_in_collision"] >= 1


def test_joined_plans_flow_without_a_stop_and_touch_nothing(
    scene: PlanningScene, exact: PlanningScene, planner: OmplPlanner
) -> None:
    x, y, z = scene.body_pose("carton")[:3, 3] + [0, 0, 0.03]
    pick = planner.plan_grasp(scene, HOME, [top_down(x, y, z, np.pi / 2)], "carton", rng=generator(0, "a"))
    joined = planner.join(scene, [pick.approach, pick.reach])
    assert joined and joined.duration < pick.approach.duration + pick.reach.duration - 0.1
    np.testing.assert_array_equal(joined.positions[[0, -1]], [HOME, pick.reach.end])
    assert path_is_free(joined.positions, lambda q: not exact.in_collision(q), step=0.005)
    assert np.linalg.norm(joined.velocities[1:-1], axis=1).min() > 0.02


def test_a_bin_in_a_cubby_is_reached_around_its_edges(planner: OmplPlanner) -> None:
    model = table_model(cubby=True)
    scene, exact = make_scene(model), make_scene(model, margin=0.0)
    reaching_in = trimesh.transformations.rotation_matrix(0.8, [1, 0, 0]) @ top_down(0, 0, 0, np.pi / 2)
    reaching_in[:3, 3] = 0.45, 0.40, 0.22
    plan = planner.plan_pose(scene, HOME - [1.2, 0, 0, 0, 0, 0, 0], [reaching_in], rng=generator(2, "cubby"))
    assert plan and len(plan.waypoints) > 2
    assert path_is_free(plan.positions, lambda q: not exact.in_collision(q), step=0.005)


def test_a_batch_gives_what_single_queries_give(scene: PlanningScene, planner: OmplPlanner) -> None:
    def query(index: int) -> MotionQuery:
        return MotionQuery(scene=scene, start_q=HOME, goals=tuple(above("left")), rng=generator(0, "batch", index))

    batch = planner.plan_batch([query(0), query(1)])
    single = planner.plan_pose(scene, HOME, above("left"), rng=generator(0, "batch", 1))
    assert batch[1].positions.tobytes() == single.positions.tobytes()


def test_the_planner_is_found_by_its_name() -> None:
    assert lookup("planner", "ompl") is OmplPlanner
