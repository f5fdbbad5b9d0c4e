"""Setup of an episode's robot in physics."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PhysicalLayout, RobotSetup
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.usd.stage import read_stage
from tests.support.one_can import layout, thing


@lru_cache
def simulator() -> NewtonSimulation:
    return NewtonSimulation(read_stage("tabletop"), load_robot("panda"), rate=15.0)


def loaded(**setup: object) -> NewtonSimulation:
    made = simulator()
    made.load(dataclasses.replace(layout(), robot=RobotSetup(**setup)))  # type: ignore[arg-type]
    return made


def reached(made: NewtonSimulation, periods: int = 3) -> np.ndarray:
    """Return the joint positions while the first joint is commanded to rotate."""
    action = made.present_action()
    found = []
    for period in range(periods):
        action[0] += 0.02 * (period + 1)
        made.advance(action)
        found.append(made.joint_positions()[0])
    return np.array(found)


def test_a_delay_makes_the_motors_late_and_the_reference_with_them():
    prompt, late = reached(loaded()), reached(loaded(delay=0.1))
    assert np.all(late < prompt - 1e-3)
    made = loaded(delay=0.1)
    reached(made)
    assert abs(made.joint_positions()[0] - made.reference[0]) < 0.01, "the robot is where it was told to be by now"


def test_gains_change_how_commands_are_followed():
    nominal = reached(loaded())
    for factor in ({"stiffness": 0.7}, {"damping": 1.5}):
        assert np.abs(reached(loaded(**factor)) - nominal).max() > 2e-4, factor
    assert np.array_equal(reached(loaded()), nominal), "and the next episode has its own"


def test_an_arm_starts_where_it_was_drawn():
    made = loaded(start={"panda_joint2": 0.1})
    home = np.array(made.robot.arm.home)
    assert np.allclose(made.joint_positions()[:7] - home, [0, 0.1, 0, 0, 0, 0, 0], atol=1e-6)


def test_the_base_of_a_robot_is_moved_and_turned_with_all_that_hangs_on_it():
    before = loaded().body_pose("panda_hand")
    after = loaded(offset=(0.02, -0.01, 0.03), yaw=math.radians(10)).body_pose("panda_hand")
    turn = np.array([[math.cos(0.1745329), -math.sin(0.1745329)], [math.sin(0.1745329), math.cos(0.1745329)]])
    assert np.allclose(after[:2, 3], turn @ before[:2, 3] + (0.02, -0.01), atol=1e-6)
    assert after[2, 3] == pytest.approx(before[2, 3] + 0.03)


def test_all_arms_move_with_the_base_of_the_robot():
    """Two arms on separate bases keep their distance."""
    simulation = NewtonSimulation(read_stage("tabletop"), load_robot("dual_panda"), rate=15.0)
    found: list[np.ndarray] = []
    for setup in (RobotSetup(), RobotSetup(offset=(0.02, -0.01, 0.03), yaw=math.radians(10))):
        simulation.load(PhysicalLayout(objects=(), robot=setup))
        left, right = (simulation.body_pose(f"{arm}_panda_hand") for arm in ("left", "right"))
        found.append(np.linalg.inv(left) @ right)
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


def test_a_layout_without_a_setup_loads_as_ever():
    made = simulator()
    made.load(PhysicalLayout(objects=(thing(),)))
    assert np.allclose(made.joint_positions()[:7], made.robot.arm.home, atol=1e-6)
