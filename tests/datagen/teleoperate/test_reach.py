"""Keys at the end of the reach: the tool stops on its line, and the opposite key moves it at once."""

from __future__ import annotations

import itertools
from typing import Any, cast
from xml.etree.ElementTree import tostring

import mujoco
import numpy as np
import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.robots.urdf import assemble
from nimbus.datagen.teleoperate.operator_input import PoseTarget, ToolCommand, ToolMotion, ToolTwist
from nimbus.datagen.teleoperate.page_input import SPEED
from nimbus.datagen.teleoperate.tool_follower import ToolFollower
from tests.support.shipped_robots import load_shipped_robot

WAYS = [way for way in itertools.product((-1, 0, 1), repeat=3) if any(way)]
AXES = [way for way in WAYS if np.count_nonzero(way) == 1]


class Joints:
    """Joints of an arm without mass: they are where they were commanded to be.

    Args:
        name: Name of a shipped robot.
    """

    rate = 15.0

    def __init__(self, name: str) -> None:
        robot = load_shipped_robot(name)
        self.arm, self.joint_names = robot.arms[0], robot.joint_names
        root = assemble(robot.pieces, robot=name)
        for link in root.iter("link"):
            for shape in (*link.findall("visual"), *link.findall("collision")):
                link.remove(shape)
        spec = mujoco.MjSpec.from_string(tostring(root, encoding="unicode"))
        spec.compiler.boundmass, spec.compiler.boundinertia, spec.compiler.balanceinertia = 1e-3, 1e-6, True
        spec.compiler.fusestatic = False
        self.model = spec.compile()
        self.reference = np.array(robot.home_joints)

    def joint_positions(self) -> FloatArray:
        return self.reference.copy()


class Operator:
    """Operator who holds keys.

    Args:
        name: Name of a shipped robot.
    """

    def __init__(self, name: str) -> None:
        self._joints = Joints(name)
        self.follower = ToolFollower(cast(Any, self._joints), self._joints.arm)

    @property
    def place(self) -> FloatArray:
        return self.follower.commanded_pose[:3, 3]

    def give(self, motion: ToolMotion | None, count: int) -> FloatArray:
        """Give the same input for some periods; return the position of the tool (N, 3) after each."""
        columns = [self._joints.joint_names.index(joint) for joint in self._joints.arm.arm.joints]
        places = []
        for _ in range(count):
            self._joints.reference[columns] = self.follower.step(ToolCommand(motion=motion))[:-1]
            places.append(self.place)
        return np.array(places)

    def hold(self, way: tuple[int, ...], count: int) -> FloatArray:
        """Hold the keys of a direction."""
        return self.give(ToolTwist(linear=SPEED * np.array(way), angular=np.zeros(3)), count)


def push(operator: Operator, way: tuple[int, ...], *, off: float = 0.005) -> None:
    """Hold the keys of a direction far beyond the end of the reach, then the opposite ones; check the distance of the
    tool from its line [m].
    """
    line = np.array(way) / np.linalg.norm(way)
    start, pose = operator.place, operator.follower.commanded_pose
    speed = SPEED * float(np.linalg.norm(way)) / Joints.rate
    count = 0
    while not operator.follower.is_out_of_reach:
        there = operator.hold(way, 1)
        assert np.linalg.norm(np.cross(there[-1] - start, line)) < off, "the tool moves along its line"
        count += 1
        assert count * speed < 2.5, "an arm is shorter"
    rest = np.concatenate([operator.hold(way, 15), operator.give(None, 8)]) - start
    assert np.linalg.norm(np.cross(rest, line), axis=1).max() < off, "the tool stays on its line"
    end = operator.place
    if len(operator.follower.step(ToolCommand())) > 6:  # an arm with fewer joints does not keep the rotation
        assert np.allclose(operator.follower.commanded_pose[:3, :3], pose[:3, :3], atol=0.02)
    back = operator.hold((-way[0], -way[1], -way[2]), 6) - end
    assert back[-1] @ line < -0.02, "the opposite keys move it"
    assert np.linalg.norm(np.cross(back, line), axis=1).max() < off


@pytest.mark.parametrize("way", AXES)
def test_tool_stops_on_its_line(way: tuple[int, ...]):
    push(Operator("panda"), way)


@pytest.mark.long
@pytest.mark.parametrize(("robot", "off"), [("panda", 0.005), ("ur5", 0.005), ("so101", 0.03)])
@pytest.mark.parametrize("way", WAYS)
def test_tool_of_any_arm_stops_on_its_line(robot: str, off: float, way: tuple[int, ...]):
    push(Operator(robot), way, off=off)


def test_small_arm_moves_to_its_side():
    """An arm of five joints cannot keep the rotation there, but it keeps the height."""
    operator = Operator("so101")
    start = operator.place
    operator.hold((0, 1, 0), 16)
    operator.give(None, 6)
    way = operator.place - start
    assert way[1] > 0.2 and np.abs(way[[0, 2]]).max() < 0.005


def test_keys_bring_a_frame_back_that_was_dragged_too_far():
    operator = Operator("panda")
    far = operator.follower.commanded_pose
    far[:3, 3] += (1.0, 0.5, 0.0)
    operator.give(PoseTarget(world_T_tool=far), 30)
    end = operator.place
    operator.hold((-1, 0, 0), 6)
    assert operator.place[0] < end[0] - 0.02
