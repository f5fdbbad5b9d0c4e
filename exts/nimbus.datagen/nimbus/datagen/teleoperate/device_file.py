"""Device file: a teleoperation device in another Python interpreter, and the meaning of its values for a robot."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.strict_yaml import StrictModel, load
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.teleoperate.operator_input import JointTarget, ToolCommand, ToolTwist

_MOVED = np.radians(0.5)
"""Motion of a leader arm's joint below which the joint counts as still [rad]; encoders flicker by a tenth of it."""
_STICK = 0.02
"""Fraction of the gripper's travel below which a lever counts as still."""
_SCALES = {"degrees": pi / 180, "radians": 1.0}
"""Radians per unit."""


class LeaderJoint(StrictModel):
    """Joint of a leader arm that controls a joint of the robot."""

    entry: str = Field(description="entry of the device's action, such as shoulder_pan.pos")
    unit: Literal["degrees", "radians"] = "degrees"
    zero: float = Field(0.0, description="value of the entry, in this unit, at which the robot's joint is at 0")
    is_reversed: bool = Field(False, alias="reversed", description="the joint turns in the opposite direction")

    def position(self, value: float) -> float:
        """Return the position of the robot's joint [rad]."""
        return (value - self.zero) * _SCALES[self.unit] * (-1.0 if self.is_reversed else 1.0)


class GripperLever(StrictModel):
    """Entry of the device that opens and closes the gripper."""

    entry: str
    open: float = Field(description="value of the open gripper")
    closed: float = Field(description="value of the closed gripper")
    keep: float | None = Field(None, description="value that keeps the gripper as it is")

    @model_validator(mode="after")
    def _moves(self) -> GripperLever:
        if self.open == self.closed:
            raise PydanticCustomError("gripper", "open and closed have the same value")
        return self


class DeviceArm(StrictModel):
    """Entries that move one arm: joints of a leader arm, or velocities."""

    joints: dict[str, LeaderJoint] = Field(
        default={}, description="joint of the leader arm for each joint of the arm, by the name of the robot's joint"
    )
    velocity: tuple[str, str, str] | None = Field(
        None, description="entries with velocities along x, y and z of the world, each from -1 to 1"
    )
    speed: Annotated[float, Field(gt=0, le=1)] = Field(0.25, description="speed at full deflection [m/s]")
    gripper: GripperLever | None = None

    @model_validator(mode="after")
    def _one_way(self) -> DeviceArm:
        if bool(self.joints) == (self.velocity is not None):
            raise PydanticCustomError("arm", "give either joints or velocity")
        return self

    def entries(self) -> tuple[str, ...]:
        """Return the names of the entries that the arm needs."""
        gripper = (self.gripper.entry,) if self.gripper else ()
        return (*(joint.entry for joint in self.joints.values()), *(self.velocity or ()), *gripper)


class DeviceFile(StrictModel):
    """Settings of a teleoperation device that has the interface of LeRobot's teleoperators."""

    interpreter: str = Field(description="Python interpreter with the device's packages")
    device: str = Field(pattern=r"^[\w.]+:\w+$", description="class of the device, as package.module:Class")
    path: tuple[str, ...] = Field((), description="additional folders with modules")
    config: dict[str, str | int | float | bool | None] = Field(
        {}, description="arguments of the device's configuration"
    )
    rate: Annotated[float, Field(ge=5, le=200)] = Field(60.0, description="readings per second [Hz]")
    arms: dict[str, DeviceArm] = Field(
        min_length=1, description="entries for each arm, by its name; a single arm is named arm"
    )

    _folder: str | None = PrivateAttr(default=None)

    @property
    def folder(self) -> str | None:
        """Folder of the file, in which the device's process starts; None for the current folder."""
        return self._folder

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with paths that begin in a folder; an interpreter by its name is searched in ``PATH``."""
        given = Path(self.interpreter).expanduser()
        interpreter = self.interpreter if given.name == self.interpreter else str(folder / given)
        places = tuple(str(folder / Path(place).expanduser()) for place in self.path)
        moved = self.model_copy(update={"interpreter": interpreter, "path": places})
        moved._folder = str(folder)
        return moved

    def check(self, robot: Robot, *, where: str) -> None:
        """Check that the file fits a robot.

        Raises:
            InputError: An arm or a joint does not exist, or a joint has no entry.
        """
        for name, arm in self.arms.items():
            if name not in robot.arm_names:
                hint = suggest(name, robot.arm_names)
                raise InputError(f"'{robot.name}' has no arm '{name}'", where=where, instead=hint)
            joints = robot.with_arm(name).arm.joints
            for joint in arm.joints:
                if joint not in joints:
                    hint = suggest(joint, joints)
                    what = f"the arm '{name}' of '{robot.name}' has no joint '{joint}'"
                    raise InputError(what, where=where, instead=hint)
            if arm.joints and (missing := [joint for joint in joints if joint not in arm.joints]):
                what = f"the joint '{missing[0]}' of '{robot.name}' has no entry"
                raise InputError(what, where=where, instead="give an entry for each joint, or velocity")

    def commands(self, entries: Mapping[str, float], robot: Robot) -> dict[str, ToolCommand]:
        """Convert the values of the device to commands for the arms.

        Args:
            entries: Values of the device's action, by entry.
            robot: Robot that the device moves.
        """
        return {name: self._command(arm, entries, robot.with_arm(name)) for name, arm in self.arms.items()}

    def _command(self, arm: DeviceArm, entries: Mapping[str, float], robot: Robot) -> ToolCommand:
        opening = None
        if (lever := arm.gripper) and (value := entries[lever.entry]) != lever.keep:
            opening = float(np.clip((value - lever.closed) / (lever.open - lever.closed), 0.0, 1.0))
        if arm.velocity is None:
            positions = [arm.joints[joint].position(entries[arm.joints[joint].entry]) for joint in robot.arm.joints]
            return ToolCommand(motion=JointTarget(positions=np.array(positions)), opening=opening)
        deflection = np.clip([entries[name] for name in arm.velocity], -1.0, 1.0)
        twist = ToolTwist(linear=arm.speed * deflection, angular=np.zeros(3)) if deflection.any() else None
        return ToolCommand(motion=twist, opening=opening)


class StillnessFilter:
    """Filter of values that a device at rest repeats, so that a recording starts with the first motion."""

    def __init__(self) -> None:
        self._positions: dict[str, FloatArray] = {}
        self._openings: dict[str, float] = {}

    def changes(self, commands: Mapping[str, ToolCommand]) -> dict[str, ToolCommand]:
        """Return the commands without targets and openings that have not changed."""
        return {name: self._change(name, command) for name, command in commands.items()}

    def _change(self, name: str, command: ToolCommand) -> ToolCommand:
        motion, opening = command.motion, command.opening
        if isinstance(motion, JointTarget):
            before = self._positions.setdefault(name, motion.positions)
            if np.abs(motion.positions - before).max() < _MOVED:
                motion = None
            else:
                self._positions[name] = motion.positions
        if opening is not None:
            if abs(opening - self._openings.setdefault(name, opening)) < _STICK:
                opening = None
            else:
                self._openings[name] = opening
        return ToolCommand(motion=motion, opening=opening)


def read_device(path: Path, robot: Robot) -> DeviceFile:
    """Read a device file, and check that it fits a robot; its paths begin in its folder.

    Args:
        path: File of the device.
        robot: Robot that the device moves.

    Raises:
        InputError: The file is not a device file, or does not fit the robot.
    """
    found = load(path, DeviceFile)
    found.check(robot, where=str(path))
    return found.seen_from(path.absolute().parent)
