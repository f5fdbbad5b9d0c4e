"""Limits of the joints of a robot that Nimbus knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.finding import fail
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.errors import Diagnostic, InputError


@dataclass(frozen=True, kw_only=True)
class JointLimits:
    """By column of the state; infinite where a joint has none."""

    names: tuple[str, ...]
    low: NDArray[np.float64]
    """[rad, m]"""
    high: NDArray[np.float64]
    """[rad, m]"""
    speed: NDArray[np.float64]
    """[rad/s, m/s]"""

    def check(
        self, where: str, state: NDArray[np.float64], *, fps: float, thresholds: Thresholds
    ) -> Iterator[Diagnostic]:
        """Find the joint that is furthest beyond its limits, and the one that is fastest for its limit.

        Args:
            where: Name of the episode in findings.
            state: (T, J) joint positions [rad or m].
            fps: Rows a second [1/s].
            thresholds: By how much a joint may be beyond its limits.
        """
        if state.shape[1] != len(self.names):
            return
        beyond = np.maximum(self.low - state, state - self.high)
        row, column = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        if beyond[row, column] > thresholds.limit:
            what = f"{self.names[column]} is {beyond[row, column]:.3g} beyond its limit in row {row}"
            yield fail("limits", where, what)
        fast = np.abs(np.diff(state, axis=0)) * fps / self.speed
        row, column = np.unravel_index(int(np.argmax(fast)), fast.shape)
        if fast[row, column] > thresholds.speed:
            what = f"{self.names[column]} moves {fast[row, column]:.1f} times as fast as it may after row {row}"
            yield fail("limits", where, what)


def find_joint_limits(robot: str, joint_names: tuple[str, ...]) -> JointLimits | None:
    """The limits of a robot's joints.

    Args:
        robot: Its name, or the path of its file.
        joint_names: Of the columns of the state.

    Returns:
        None where the robot is not known, or has none of these joints.
    """
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.robots.urdf import assemble

    if not robot or not joint_names:
        return None
    try:
        known = load_robot(robot)
        model = assemble(known.pieces, robot=known.name)
    except InputError:
        return None
    names = [str(joint.get("name")) for joint in model.findall("joint")]
    limits = dict(zip(names, (joint.find("limit") for joint in model.findall("joint")), strict=True))
    if not set(joint_names) & set(limits):
        return None

    def column(key: str, missing: float) -> NDArray[np.float64]:
        """Read one limit of all joints, (J,) [rad or m, or the same per second]."""
        found = (limits.get(name) for name in joint_names)
        return np.array([missing if one is None else float(one.get(key, missing)) for one in found])

    speed = column("velocity", np.inf)
    return JointLimits(
        names=joint_names,
        low=column("lower", -np.inf),
        high=column("upper", np.inf),
        speed=np.where(speed > 0, speed, np.inf),
    )
