"""Operator input: motion of each tool and opening of its gripper in one control period, for any device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class PoseTarget:
    """Target pose of the tool, for example from a frame dragged in the browser."""

    world_T_tool: FloatArray
    """(4, 4) pose [m]."""


@dataclass(frozen=True, kw_only=True)
class HandlePose:
    """Pose of a handle that moves freely in its own space, such as a tracked controller.

    Only its motion since the clutch was engaged counts, so that the operator can reposition the handle.
    """

    space_T_handle: FloatArray
    """(4, 4) pose [m], with axes parallel to those of the world."""
    is_engaged: bool
    """False while the operator repositions the handle; the tool then stays in place."""


@dataclass(frozen=True, kw_only=True)
class ToolTwist:
    """Velocity of the tool in the axes of the world, for example from sticks, keys or a six-axis mouse."""

    linear: FloatArray
    """(3,) velocity [m/s]."""
    angular: FloatArray
    """(3,) angular velocity about the origin of the tool [rad/s]."""


@dataclass(frozen=True, kw_only=True)
class JointTarget:
    """Target posture of the arm, for example from a leader arm with the same joints."""

    positions: FloatArray
    """(J,) joint positions [rad or m]."""


ToolMotion: TypeAlias = PoseTarget | HandlePose | ToolTwist | JointTarget


@dataclass(frozen=True, kw_only=True)
class ToolCommand:
    """Input for one arm in one control period."""

    motion: ToolMotion | None = None
    """Motion of the tool; None keeps its target."""
    opening: float | None = None
    """Opening of the gripper, from 0 (closed) to 1 (open); None keeps it."""


@dataclass(frozen=True, kw_only=True)
class OperatorInput:
    """Input for all arms in one control period; arms without a command keep their targets."""

    arms: Mapping[str, ToolCommand] = field(default_factory=dict)

    def is_idle(self) -> bool:
        """Return True if the input requests nothing; recording begins at the first input that is not idle."""
        return all(one.motion is None and one.opening is None for one in self.arms.values())


IDLE = OperatorInput()
"""Input that requests nothing."""


class DeviceLost(InputError):
    """Raised when a device does not answer; the recording so far is kept."""


class InputDevice(ABC):
    """Source of the operator's input."""

    name: str = ""
    """Kind of the device, stored with each demonstration: ``keyboard``, ``gamepad``, …"""

    @abstractmethod
    def poll(self) -> OperatorInput:
        """Return the newest input without waiting.

        Raises:
            DeviceLost: The device does not answer.
        """

    def close(self) -> None:
        """Release the device."""
        return


def check_input(given: OperatorInput, *, joint_counts: Mapping[str, int]) -> None:
    """Check input from outside this process.

    Args:
        given: Input to check.
        joint_counts: Number of joints of each arm, by its name.

    Raises:
        InputError: It names an unknown arm, or a value has the wrong shape or is not finite.
    """
    for arm, command in given.arms.items():
        if arm not in joint_counts:
            known = ", ".join(joint_counts)
            raise InputError(f"no arm '{arm}'", where="operator's input", instead=f"the robot has {known}")
        for name, value, shape in _arrays(command, joint_counts[arm]):
            if np.shape(value) != shape:
                what = f"{name} of '{arm}' has the shape {np.shape(value)}"
                raise InputError(what, where="operator's input", instead=f"give an array of shape {shape}")
            if not np.isfinite(value).all():
                what = f"{name} of '{arm}' is not finite"
                raise InputError(what, where="operator's input", instead="check the device, then connect it again")


def _arrays(command: ToolCommand, joint_count: int) -> list[tuple[str, ArrayLike, tuple[int, ...]]]:
    opening: list[tuple[str, ArrayLike, tuple[int, ...]]] = []
    if command.opening is not None:
        opening.append(("opening", command.opening, ()))
    match command.motion:
        case PoseTarget(world_T_tool=pose) | HandlePose(space_T_handle=pose):
            return [("pose", pose, (4, 4)), *opening]
        case ToolTwist(linear=linear, angular=angular):
            return [("linear", linear, (3,)), ("angular", angular, (3,)), *opening]
        case JointTarget(positions=positions):
            return [("positions", positions, (joint_count,)), *opening]
        case None:
            return opening
