"""Devices in other interpreters: a class with LeRobot's interface moves an arm, and its loss causes one line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.robot import Robot, load_robot
from nimbus.datagen.teleoperate.device_file import read_device
from nimbus.datagen.teleoperate.device_process import JoinedInput, ProcessDevice, _parse
from nimbus.datagen.teleoperate.operator_input import (
    DeviceLost,
    InputDevice,
    JointTarget,
    OperatorInput,
    ToolCommand,
    ToolTwist,
)
from tests.support import ROOT

JOINTS = "\n".join(f"      panda_joint{number}: {{entry: two.pos}}" for number in range(2, 8))
DEVICE = f"""interpreter: {sys.executable}
device: tests.support.teleoperators:ScriptedLeader
path: [{ROOT}]
config: {{id: blue, steps: STEPS}}
rate: 100
arms:
  arm:
    joints:
      panda_joint1: {{entry: one.pos, zero: 10.0, reversed: true}}
{JOINTS}
    gripper: {{entry: gripper.pos, open: 100, closed: 0}}
"""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("panda")


def device(tmp_path: Path, robot: Robot, text: str) -> ProcessDevice:
    """Return the device of a file."""
    (tmp_path / "leader.yaml").write_text(text)
    return ProcessDevice(read_device(tmp_path / "leader.yaml", robot), robot, where="leader.yaml")


def inputs(source: InputDevice) -> Iterator[OperatorInput]:
    """Yield input that is not idle."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if not (given := source.poll()).is_idle():
            yield given
        time.sleep(0.005)
    raise TimeoutError


def test_a_leader_arm_moves_the_robot_until_it_is_lost(tmp_path: Path, robot: Robot):
    """The leader arm is first at rest, which gives no input.

    Then it rotates and closes, and then its cable is unplugged.
    """
    seen: list[ToolCommand] = []
    with closing(device(tmp_path, robot, DEVICE.replace("STEPS", "40"))) as leader:
        with pytest.raises(DeviceLost, match="ScriptedLeader: ConnectionError: no answer on the port of 'blue'"):
            for given in inputs(leader):
                seen.append(given.arms["arm"])
        assert leader.poll().is_idle()  # lost once, then tried again in the background
    motions = [one.motion for one in seen if isinstance(one.motion, JointTarget)]
    assert motions and any(one.opening == 0.0 for one in seen)
    first = np.array([motion.positions[0] for motion in motions])
    assert np.all(np.diff(first) < 0) and first[0] < -np.radians(20)
    assert np.allclose([motion.positions[1:] for motion in motions], np.radians(-5.0))


def test_readings_from_before_its_loss_do_not_bring_a_device_back(tmp_path: Path, robot: Robot):
    """The process of the device still disconnects, and nobody has seen the last reading."""
    with closing(device(tmp_path, robot, DEVICE.replace("STEPS", "40"))) as leader:
        with pytest.raises(DeviceLost):
            for _ in inputs(leader):
                time.sleep(0.045)
        assert leader.poll().is_idle()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("ScriptedLeader", "Nothing", "AttributeError: module 'tests.support.teleoperators' has no attribute"),
        ("tests.support.teleoperators", "lerobot_is_not_here", "No module named 'lerobot_is_not_here'"),
        ("id: blue", "port: blue", "unexpected keyword argument 'port'"),
        ("one.pos", "three.pos", "ScriptedLeader has no entry 'three.pos' for the arm 'arm'"),
    ],
)
def test_a_device_that_does_not_fit_is_one_line(tmp_path: Path, robot: Robot, old: str, new: str, words: str):
    text = DEVICE.replace("STEPS", "40").replace(old, new)
    with closing(device(tmp_path, robot, text)) as leader, pytest.raises(InputError, match=words) as caught:
        next(inputs(leader))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  arm:", "  left:", "'panda' has no arm 'left'"),
        ("panda_joint1:", "panda_joint9:", "has no joint 'panda_joint9'"),
        ("      panda_joint7: {entry: two.pos}\n", "", "the joint 'panda_joint7' of 'panda' has no entry"),
        ("open: 100", "open: 0", "open and closed have the same value"),
        ("device: tests.support.teleoperators:", "device: ", "device"),
    ],
)
def test_a_wrong_device_file_is_one_line(tmp_path: Path, robot: Robot, old: str, new: str, words: str):
    (tmp_path / "leader.yaml").write_text(DEVICE.replace("STEPS", "40").replace(old, new))
    with pytest.raises(InputError, match=words) as caught:
        read_device(tmp_path / "leader.yaml", robot)
    assert "\n" not in str(caught.value)


def test_a_missing_interpreter_is_one_line(tmp_path: Path, robot: Robot):
    text = DEVICE.replace("STEPS", "40").replace(sys.executable, "/nowhere/python")
    with pytest.raises(InputError, match="/nowhere/python: No such file"):
        device(tmp_path, robot, text)


def test_paths_begin_in_the_folder_of_the_device_file(tmp_path: Path, robot: Robot, monkeypatch: pytest.MonkeyPatch):
    """The current folder may have an interpreter or modules of another user at the same path."""
    for name in ("mine", "foreign"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/python").write_text(f"#!/bin/sh\ntouch {tmp_path}/started_{name}\n")
        (tmp_path / name / "bin/python").chmod(0o755)
    monkeypatch.chdir(tmp_path / "foreign")
    text = DEVICE.replace("STEPS", "40").replace(sys.executable, "bin/python").replace(f"[{ROOT}]", "[drivers]")
    with closing(device(tmp_path / "mine", robot, text)) as leader:
        leader._process.wait(timeout=60)
    assert (tmp_path / "started_mine").exists() and not (tmp_path / "started_foreign").exists()
    settings = read_device(tmp_path / "mine/leader.yaml", robot)
    assert settings.path == (f"{tmp_path}/mine/drivers",) and settings.folder == f"{tmp_path}/mine"
    (tmp_path / "mine/leader.yaml").write_text(text.replace("bin/python", "python3"))
    assert read_device(tmp_path / "mine/leader.yaml", robot).interpreter == "python3"


class Fixed(InputDevice):
    """Device that gives one input."""

    def __init__(self, name: str, given: dict[str, ToolCommand]) -> None:
        self.name, self._given = name, given

    def poll(self) -> OperatorInput:
        return OperatorInput(arms=self._given)


def test_two_devices_move_one_robot():
    """The stick of one device moves the arm, and the lever of the other closes the gripper."""
    stick = ToolTwist(linear=np.array([0.1, 0.0, 0.0]), angular=np.zeros(3))
    one = Fixed("stick", {"left": ToolCommand(motion=stick), "right": ToolCommand(motion=stick, opening=1.0)})
    joined = JoinedInput([one, Fixed("", {"left": ToolCommand(opening=0.0)})])
    given = joined.poll().arms
    assert given["left"].motion is stick and given["left"].opening == 0.0 and given["right"].opening == 1.0
    assert joined.name == "stick"


@pytest.mark.parametrize(
    "line",
    ['{"action": {"a": 1' + "0" * 400 + "}}", "[" * 100_000, '{"action": {"a": NaN}}', '{"action": {"a": 1e309}}'],
)
def test_extreme_line_is_an_error(line: str):
    """An exception would end the listening thread, and the device would seem silent."""
    entries, error = _parse(line)
    assert entries is None and error
