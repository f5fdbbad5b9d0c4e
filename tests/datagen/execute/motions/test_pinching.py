"""Paths of a hand that pinches something flat: the first one that the arm can follow, and the reason if it can none."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.motions.pinching import CarryPath, reach_carry_path
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.tasks.statements import SkillFailure
from tests.support.one_can import thing, workcell

OVER = 0.2


@pytest.fixture(scope="module")
def cell() -> SimulatedWorkcell:
    return workcell(thing(x=0.6, y=0.3))


def path(height: float) -> CarryPath:
    """Return a path of 4 cm along x at a height [m], of a hand that points down; its first part ends after 1 cm."""
    poses: list[FloatArray] = []
    for x in np.linspace(0.45, 0.49, 5):
        pose = np.diag([1.0, -1.0, -1.0, 1.0])
        pose[:3, 3] = x, 0.0, height
        poses.append(pose)
    return poses[:2], poses[2:]


def test_without_a_path_above_the_table_the_reason_is_that_of_the_descent(cell: SimulatedWorkcell):
    with pytest.raises(SkillFailure, match=r"no corner of towel_0 can be carried: world touches panda_") as caught:
        reach_carry_path(cell, [path(-0.02)], opening=0.04, over=OVER, speed=0.15, carried="corner of towel_0")
    assert caught.value.reason == "no_grasp"


def test_the_hand_is_lowered_to_the_first_path_that_it_can_follow(cell: SimulatedWorkcell):
    first, second = reach_carry_path(
        cell,
        iter([path(-0.02), path(0.05), path(0.1)]),
        opening=0.04,
        over=OVER,
        speed=0.15,
        carried="corner of towel_0",
    )
    assert cell.opening == pytest.approx(0.02)  # of one finger: half the distance
    assert cell.tool_pose()[:3, 3] == pytest.approx((0.45, 0.0, 0.05), abs=5e-3)
    heights = [pose[:3, 3].tolist() for pose in (*first, *second)]
    assert (len(first), heights) == (1, [pytest.approx((x, 0.0, 0.05)) for x in (0.46, 0.47, 0.48, 0.49)])
