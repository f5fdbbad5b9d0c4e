"""Answers of policies: each is an array of absolute commands near the posture, or a fault with its reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.policies.policy import PolicyFault, PolicyTask, WildAction, check_actions

TASK = PolicyTask(
    name="t",
    robot="two_joints",
    rate=15.0,
    joint_names=("a", "b", "finger"),
    action_names=("a", "b", "gripper"),
    action_low=np.array([-1.0, -1.0, 0.0]),
    action_high=np.array([1.0, 1.0, 0.04]),
    cameras={},
)
POSTURE = np.array([0.2, -0.2, 0.04])


def check(answer: object, *, execute: int = 1, first: bool = True) -> np.ndarray:
    return check_actions(answer, task=TASK, posture=POSTURE, execute=execute, first=first).actions


def fault(answer: object, *, execute: int = 1) -> str:
    with pytest.raises(PolicyFault) as caught:
        check(answer, execute=execute)
    assert caught.value.reason is Reason.BAD_ACTION
    return caught.value.detail


def test_answer_near_the_posture_is_taken():
    assert np.array_equal(check([POSTURE, POSTURE + 0.01], execute=2)[0], POSTURE)


def test_answer_beyond_the_limits_is_clipped():
    far = check_actions([[2.5, 0.0, -0.03]], task=TASK, posture=POSTURE, execute=1, first=False)
    assert far.actions.tolist() == [[1.0, 0.0, 0.0]] and (far.clipped, far.clipped_arm) == (1, 1)
    assert (far.arm_excess, far.gripper_excess) == (1.5, 0.03)
    hand = check_actions([[0.5, 0.0, 0.041]], task=TASK, posture=POSTURE, execute=1, first=False)
    assert (hand.clipped, hand.clipped_arm, hand.arm_excess) == (1, 0, 0.0)


@pytest.mark.parametrize("answer", [[], [[]], [1.0, 2.0, 3.0], [[1.0, 2.0]], np.zeros((2, 2, 3))])
def test_answer_of_another_shape_is_a_fault(answer: object):
    assert "expected (K, 3): a, b, gripper" in fault(answer)


@pytest.mark.parametrize("answer", ["words", {"actions": 1}, [[1, 2, "x"]], None])
def test_answer_without_numbers_is_a_fault(answer: object):
    assert fault(answer)


def test_answer_that_is_not_finite_is_a_fault():
    assert "not finite" in fault([[0.2, np.nan, 0.0]])


def test_degrees_are_a_fault():
    assert "a of 11.46 is far beyond -1.00 to 1.00" in fault([[np.degrees(0.2), -0.2, 0.04]])


def test_first_action_far_away_is_wild():
    with pytest.raises(WildAction, match=r"a starts 0\.70 from the posture"):
        check([[0.9, -0.2, 0.04]])
    assert check([[0.9, -0.2, 0.04]], first=False).tolist() == [[0.9, -0.2, 0.04]]


def test_later_action_far_beyond_limits_is_wild():
    with pytest.raises(WildAction, match=r"gripper of 0\.30 is far beyond"):
        check([POSTURE, [0.2, -0.2, 0.3]], first=False)


def test_short_answer_names_the_flag():
    assert "lower --execute" in fault([POSTURE] * 3, execute=8)


def test_gripper_in_shares_of_its_way_is_a_fault():
    assert "gripper of 0.30 is far beyond 0.00 to 0.04" in fault([POSTURE, [0.2, -0.2, 0.3]])


@given(arrays(float, (4, 3), elements=st.floats(-1e6, 1e6)))
def test_every_taken_answer_is_within_the_limits(answer: np.ndarray):
    try:
        taken = check(answer, first=False)
    except WildAction:
        return
    assert (taken >= TASK.action_low).all() and (taken <= TASK.action_high).all()
