"""Displaced training rows: the arm and the object in its hand moved off a demonstration's path."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.policies.displaced_rows import displace_rows, find_held_spans, joint_axes
from nimbus.datagen.robots.robot import load_robot
from tests.support.panda_table import HOME, start_positions, table_model
from tests.support.synthetic import make_trajectory

ROBOT = load_robot("panda")
BODIES = (*(f"panda_link{index}" for index in range(8)), "panda_hand", "block", "can")
HELD, CLOSED, OPEN = 0.02, 0.0, 0.04
STEPS = 30


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return table_model()


def poses(model: mujoco.MjModel, posture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and quaternions of the bodies, with the block 10 cm in front of the hand."""
    data = mujoco.MjData(model)
    data.qpos[:] = start_positions(model)
    data.qpos[[model.joint(name).qposadr[0] for name in ROBOT.arm.joints]] = posture
    mujoco.mj_kinematics(model, data)
    hand, block = data.body("panda_hand"), model.joint(model.body("block").jntadr[0]).qposadr[0]
    data.qpos[block : block + 3] = hand.xpos + 0.1 * hand.xmat.reshape(3, 3)[:, 2]
    data.qpos[block + 3 : block + 7] = hand.xquat
    mujoco.mj_kinematics(model, data)
    return tuple(np.array([getattr(data.body(name), part) for name in BODIES]) for part in ("xpos", "xquat"))  # pyright: ignore[reportReturnType]


def carrying(model: mujoco.MjModel) -> Trajectory:
    """Make a motion in which the hand holds the block from row 10 to row 25, and then opens."""
    postures = HOME + 0.02 * np.arange(STEPS)[:, None] * np.array([1, 0.5, 0, 0, 0, 0.5, 1])
    bodies = [poses(model, posture) for posture in postures]
    rows = np.arange(STEPS)
    finger = np.where((rows >= 10) & (rows < 25), HELD, OPEN)
    command = np.where((rows >= 10) & (rows < 25), CLOSED, OPEN)
    return replace(
        make_trajectory(steps=STEPS),
        joint_names=ROBOT.joint_names,
        joint_positions=np.column_stack([postures, finger, finger]),
        joint_velocities=np.zeros((STEPS, 9)),
        action_names=ROBOT.action_names,
        actions=np.column_stack([postures, command]),
        body_names=BODIES,
        body_positions=np.array([one[0] for one in bodies]),
        body_wxyz=np.array([one[1] for one in bodies]),
    )


def test_rows_are_those_in_which_the_fingers_hold_and_stay(model: mujoco.MjModel):
    (span,) = find_held_spans(ROBOT, carrying(model), {"block", "can"})
    assert (span.held, span.rows.tolist()) == ("block", list(range(11, 22)))


def test_nothing_is_held_at_rest(model: mujoco.MjModel):
    made = carrying(model)
    still = replace(made, **{name: getattr(made, name)[[15] * STEPS] for name in ("body_positions", "body_wxyz")})
    assert not list(find_held_spans(ROBOT, still, {"block"}))


def test_hand_and_object_are_where_the_displaced_joints_put_them(model: mujoco.MjModel):
    made = carrying(model)
    (span,) = find_held_spans(ROBOT, made, {"block"})
    offsets = np.random.default_rng(0).normal(scale=0.05, size=(len(span.rows), 7))
    found = displace_rows(span, made, joint_axes(ROBOT), offsets)
    np.testing.assert_allclose(found.joint_positions[:, :7], made.joint_positions[span.rows, :7] + offsets)
    for row in range(0, len(span.rows), 5):
        places, turns = poses(model, found.joint_positions[row, :7])
        for name in ("panda_hand", "block"):
            body = BODIES.index(name)
            np.testing.assert_allclose(found.body_positions[row, body], places[body], atol=1e-6)
            assert abs(found.body_wxyz[row, body] @ turns[body]) == pytest.approx(1.0)
    can = BODIES.index("can")
    np.testing.assert_array_equal(found.body_positions[:, can], made.body_positions[span.rows, can])
