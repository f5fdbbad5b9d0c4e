"""Inverse kinematics: postures for poses."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.plan.ik import solve_ik, trace_line
from nimbus.datagen.plan.scene import PlanningScene
from tests.support.panda_table import HOME, make_scene, table_model, top_down

SCENE = make_scene(table_model())


def angle_between(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.arccos(np.clip((np.trace(one[:3, :3].T @ other[:3, :3]) - 1) / 2, -1, 1)))


@settings(max_examples=60)
@given(x=st.floats(0.35, 0.6), y=st.floats(-0.25, 0.25), z=st.floats(0.25, 0.45), yaw=st.floats(-1.5, 1.5))
def test_every_posture_has_the_tool_at_the_pose_within_limits(x: float, y: float, z: float, yaw: float) -> None:
    target = top_down(x, y, z, yaw)
    found = solve_ik(SCENE, target, seed_q=HOME, rng=np.random.default_rng(0))
    assert found
    for q in found:
        pose = SCENE.tool_pose(q)
        assert np.linalg.norm(pose[:3, 3] - target[:3, 3]) < 2e-4 and angle_between(pose, target) < 2e-3
        assert SCENE.within_limits(q) and not SCENE.in_collision(q)
    distances = [np.linalg.norm(q - HOME) for q in found]
    assert distances == sorted(distances)


def test_postures_are_distinct(scene: PlanningScene) -> None:
    found = solve_ik(
        scene, top_down(0.5, 0.1, 0.3), seed_q=HOME, rng=np.random.default_rng(1), solutions=4, restarts=20
    )
    assert len(found) == 4
    assert all(np.abs(one - other).max() >= 0.1 for i, one in enumerate(found) for other in found[:i])


def test_a_pose_out_of_reach_has_no_posture(scene: PlanningScene) -> None:
    assert solve_ik(scene, top_down(1.2, 0.0, 0.3), seed_q=HOME, rng=np.random.default_rng(0)) == []


def test_a_pose_inside_the_table_has_no_free_posture(scene: PlanningScene) -> None:
    pose = top_down(0.5, 0.3, -0.01)
    assert solve_ik(scene, pose, seed_q=HOME, rng=np.random.default_rng(0)) == []
    assert solve_ik(scene, pose, seed_q=HOME, rng=np.random.default_rng(0), accept=lambda q: True) != []


def test_a_hand_in_the_table_is_tried_once(scene: PlanningScene) -> None:
    rng, same = np.random.default_rng(0), np.random.default_rng(0)
    checks = scene.check_count
    assert solve_ik(scene, top_down(0.5, 0.3, -0.01), seed_q=HOME, rng=rng, restarts=40) == []
    assert scene.check_count - checks == 2
    for trial in range(40):
        same.normal(scale=0.25 * (trial + 1), size=len(HOME))
    assert rng.random() == same.random()


@settings(max_examples=30)
@given(dx=st.floats(-0.1, 0.1), dy=st.floats(-0.1, 0.1), dz=st.floats(-0.15, 0.1), turn=st.floats(-0.5, 0.5))
def test_a_traced_line_is_straight_even_and_continuous(dx: float, dy: float, dz: float, turn: float) -> None:
    start = SCENE.tool_pose(HOME)
    goal = top_down(start[0, 3] + dx, start[1, 3] + dy, start[2, 3] + dz, turn)
    path = trace_line(SCENE, HOME, goal)
    assert path is not None
    fractions = np.linspace(0.0, 1.0, len(path))
    for q, fraction in zip(path, fractions, strict=True):
        pose = SCENE.tool_pose(q)
        expected = start[:3, 3] + fraction * (goal[:3, 3] - start[:3, 3])
        assert np.linalg.norm(pose[:3, 3] - expected) < 2e-4
        assert abs(angle_between(start, pose) - fraction * angle_between(start, goal)) < 3e-3
    assert np.abs(np.diff(path, axis=0)).max() < 0.15


def test_a_line_out_of_reach_cannot_be_traced(scene: PlanningScene) -> None:
    assert trace_line(scene, HOME, top_down(1.1, 0.0, 0.4)) is None
