"""The planner ``curobo`` with the stand-in: Nimbus's code runs completely, in two processes, but no code of cuRobo
runs."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.plan.curobo.planner import BATCH, CuroboPlanner
from nimbus.datagen.plan.motion import MotionQuery, MotionStatus
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.verify import first_collision
from nimbus.datagen.random_streams import generator
from tests.support.panda_table import ACCELERATION, BINS, HOME, VELOCITY, make_scene, table_model, top_down

pytestmark = pytest.mark.usefixtures("curobo")

MODEL = table_model()
RNG = generator(0, "curobo")
AWAY = HOME + [0.6, 0.2, 0.0, 0.3, 0.0, 0.2, 0.0]


@pytest.fixture
def scene() -> PlanningScene:
    return make_scene(MODEL)


@pytest.fixture
def planner() -> CuroboPlanner:
    return CuroboPlanner(velocity_limits=VELOCITY, acceleration_limits=ACCELERATION)


def above(name: str, height: float = 0.35) -> list[np.ndarray]:
    return [top_down(*BINS[name], height, yaw) for yaw in (0.0, 1.6)]


def test_a_motion_is_timed_at_our_limits_and_checked_in_our_geometry(
    scene: PlanningScene, planner: CuroboPlanner
) -> None:
    plan = planner.plan_joints(scene, HOME, AWAY, rng=RNG)
    assert plan, plan.detail
    np.testing.assert_array_equal(plan.positions[[0, -1]], [HOME, AWAY])
    assert not plan.velocities[[0, -1]].any()
    np.testing.assert_allclose(np.diff(plan.time), planner.period)
    assert (np.abs(np.diff(plan.positions, axis=0)) / planner.period <= planner.velocity * 1.001).all()
    assert first_collision(scene, plan.positions) is None and 0.0 < plan.clearance <= 0.05
    assert plan.statistics["plan_time"] > 0 and plan.statistics["timing_time"] > 0
    slow = CuroboPlanner(velocity_limits=0.5 * VELOCITY, acceleration_limits=0.25 * ACCELERATION)
    assert slow.plan_joints(scene, HOME, AWAY, rng=RNG).duration == pytest.approx(2 * plan.duration, abs=0.15)


def test_the_first_pose_of_a_set_that_can_be_reached_is_named(scene: PlanningScene, planner: CuroboPlanner) -> None:
    goals = [top_down(1.3, 0.0, 0.3), *above("left")]
    plan = planner.plan_pose(scene, HOME, goals, rng=RNG)
    assert plan and plan.goal_index == 1, plan.detail
    np.testing.assert_allclose(scene.tool_pose(plan.end), goals[1], atol=2e-3)


def test_why_there_is_no_motion_is_said(scene: PlanningScene, planner: CuroboPlanner) -> None:
    assert planner.plan_pose(scene, HOME, [top_down(1.3, 0, 0.3)], rng=RNG).status is MotionStatus.NO_IK
    buried = scene.arm.solve(top_down(0.63, 0.05, 0.0), HOME)
    assert buried is not None
    start = planner.plan_joints(scene, buried, HOME, rng=RNG)
    assert start.status is MotionStatus.START_IN_COLLISION and "world" in start.detail
    assert planner.plan_joints(scene, HOME, buried, rng=RNG).status is MotionStatus.GOAL_IN_COLLISION
    assert planner.plan_joints(scene, HOME, HOME + 3.0, rng=RNG).status is MotionStatus.OUT_OF_LIMITS


def test_a_success_of_curobo_that_touches_something_is_refused(scene: PlanningScene, planner: CuroboPlanner) -> None:
    x, y, z = scene.body_pose("carton")[:3, 3]
    ends = [scene.arm.solve(top_down(x + dx, y, z + 0.02), HOME) for dx in (-0.15, 0.15)]
    assert ends[0] is not None and ends[1] is not None
    plan = planner.plan_joints(scene, ends[0], ends[1], rng=RNG)
    assert plan.status is MotionStatus.REJECTED and "carton" in plan.detail


def test_a_pick_and_its_lines_are_those_of_the_default_planner(scene: PlanningScene, planner: CuroboPlanner) -> None:
    x, y, z = scene.body_pose("carton")[:3, 3] + [0, 0, 0.03]
    pick = planner.plan_grasp(scene, HOME, [top_down(x, y, z, np.pi / 2)], "carton", rng=RNG)
    assert pick, pick.detail
    np.testing.assert_array_equal(pick.approach.positions[-1], pick.reach.positions[0])
    scene.hold("carton", np.linalg.inv(pick.world_T_tool) @ scene.body_pose("carton"))
    carried = planner.plan_pose(scene, pick.lift.end, above("left"), rng=RNG)
    assert carried, carried.detail
    assert planner.join(scene, [carried])


def test_batch_equals_single_plans(scene: PlanningScene, planner: CuroboPlanner) -> None:
    """The queries include poses, goal sets, postures, two worlds, a held object and failures, and exceed a batch."""
    other = make_scene(MODEL)
    other.hold("can", np.diag([1.0, -1.0, -1.0, 1.0]))
    far, left, right = (top_down(1.3, 0.0, 0.3),), tuple(above("left")), tuple(above("right"))
    queries = [MotionQuery(scene=scene, start_q=HOME, goals=left[:1], rng=RNG) for _ in range(BATCH)]
    queries += [
        MotionQuery(scene=where, start_q=HOME, goals=goals, rng=RNG)
        for where, goals in ((scene, far), (scene, right[:1]), (other, right[:1]), (scene, left), (other, left))
    ]
    queries += [MotionQuery(scene=where, start_q=HOME, goal_q=AWAY, rng=RNG) for where in (other, scene)]
    plans = planner.plan_batch(queries)
    assert [plan.status for plan in plans[BATCH:]] == ["no_ik", *["success"] * 6]
    singles = [planner.plan_batch([query])[0] for query in queries[BATCH - 1 :]]
    assert [plan.positions.tobytes() for plan in plans[BATCH - 1 :]] == [one.positions.tobytes() for one in singles]
    assert [plan.goal_index for plan in plans[BATCH - 1 :]] == [one.goal_index for one in singles]
    posed = planner.plan_pose(scene, HOME, left, rng=RNG)
    assert posed.positions.tobytes() == plans[BATCH + 3].positions.tobytes()


def test_query_keeps_its_own_limits(scene: PlanningScene, planner: CuroboPlanner) -> None:
    slow = CuroboPlanner(velocity_limits=0.5 * VELOCITY, acceleration_limits=0.25 * ACCELERATION)
    fast = MotionQuery(scene=scene, start_q=HOME, goal_q=AWAY, rng=RNG)
    calm = MotionQuery(
        scene=scene, start_q=HOME, goal_q=AWAY, rng=RNG, velocity=slow.velocity, acceleration=slow.acceleration
    )
    both = planner.plan_batch([fast, calm])
    assert both[1].positions.tobytes() == slow.plan_joints(scene, HOME, AWAY, rng=RNG).positions.tobytes()
    assert both[1].duration > 1.5 * both[0].duration


def test_equal_queries_give_equal_motions_whatever_was_asked_before(
    scene: PlanningScene, planner: CuroboPlanner
) -> None:
    first = planner.plan_pose(scene, HOME, above("left"), rng=RNG)
    scene.hold("can", np.diag([1.0, -1.0, -1.0, 1.0]))
    planner.plan_pose(scene, HOME, above("right"), rng=RNG)
    scene.hold(None)
    assert planner.plan_pose(scene, HOME, above("left"), rng=RNG).positions.tobytes() == first.positions.tobytes()


def test_the_planner_is_found_by_its_name_and_has_no_state_of_its_own() -> None:
    from nimbus.datagen.registry import lookup

    assert lookup("planner", "curobo") is CuroboPlanner
