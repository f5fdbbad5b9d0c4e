"""Grippers that move between two postures of any number of joints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nimbus.datagen.robots.robot import Gripper
from tests.support.shipped_robots import load_shipped_robot

REST: dict[str, Any] = {
    "links": ("a", "b"),
    "fingers": ("a", "b"),
    "opening": 0.06,
    "effort_limit": 1.0,
    "stiffness": 1.0,
    "damping": 0.1,
    "pad_width": 0.02,
    "pad_height": 0.02,
    "finger_thickness": 0.02,
    "finger_depth": 0.05,
}
angles = st.floats(-2, 2).map(lambda value: round(value, 3))


def gripper(opened: object, closed: object, **more: object) -> Gripper:
    names = tuple(f"joint_{index}" for index in range(3))
    return Gripper.model_validate(REST | {"joints": names, "open": opened, "closed": closed} | more)


@given(
    st.lists(st.tuples(angles, angles), min_size=3, max_size=3).filter(lambda p: all(abs(a - b) > 0.01 for a, b in p))
)
def test_command_goes_between_both_postures(postures: list[tuple[float, float]]):
    opened, closed = ([pair[at] for pair in postures] for at in (0, 1))
    hand = gripper(opened, closed)
    assert np.allclose(hand.joint_positions(np.array([hand.open, hand.closed])), [opened, closed])
    middle = np.array((hand.open + hand.closed) / 2)
    assert np.allclose(hand.joint_positions(middle), (np.array(opened) + closed) / 2)
    assert np.allclose(hand.command_of(hand.joint_positions(middle)), middle)


@pytest.mark.parametrize(
    ("opened", "closed", "more", "said"),
    [
        ([0.1, 0.2], [1.0, 1.0, 1.0], {}, "open has 2 entries for 3 joints"),
        ([0.1, 0.2, 0.3], [1.0, 0.2, 1.0], {}, "'joint_1' is at one position in both postures"),
        ([0.1, "x", 0.3], [1.0, 0.2, 1.0], {}, "'open' has an entry that is not a number"),
        ([0.1, 0.2, 0.3], [1.0, 0.3, 1.0], {"ratios": (1.0, 1.0, 1.0)}, "follow from postures"),
        (0.1, [1.0, 0.3, 1.0], {}, "closed"),
    ],
)
def test_wrong_postures_are_refused(opened: object, closed: object, more: dict[str, object], said: str):
    with pytest.raises(ValidationError, match=said):
        gripper(opened, closed, **more)


def test_pads_may_touch_the_held_object():
    assert gripper([0.1, 0.2, 0.3], [1.0, 1.0, 1.0], links=["palm", "a"]).links == ("palm", "a", "b")


def test_hand_starts_in_its_open_posture():
    robot = load_shipped_robot("panda_allegro")
    posture = dict(zip(robot.joint_names, robot.home_joints, strict=True))
    assert posture["joint_1_0"] == pytest.approx(0.294) and posture["joint_13_0"] == pytest.approx(1.021)
    assert dict(robot.locked)["joint_9_0"] == pytest.approx(1.4)
