"""Report on a robot, and the cache of reports, so that a robot is checked again only after a change."""

from __future__ import annotations

import importlib.metadata
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.usd.robot import robot_hash
from nimbus.datagen.usd.stage import read_stage
from nimbus.datagen.version import versioned_hash

CHECK_VERSION = 1
"""Version of the check. Increase it when the report, the picture or the errors change for any robot."""
ROBOT_SCENE = "table"
"""Scene in which a robot is checked."""
_PACKAGES = ("mujoco", "newton", "mink")
"""Packages whose versions affect the report."""


@dataclass(frozen=True, kw_only=True)
class ArmReport:
    """One arm of a robot."""

    name: str
    joints: tuple[dict[str, Any], ...]
    """Name, lower and upper limit, velocity, acceleration, effort and home of each joint [rad, s, N m]."""
    tool_link: str
    tool_home: tuple[float, float, float]
    """Position of the tool at home, in the frame of the base [m]."""
    gripper_joints: tuple[str, ...]
    opening: float
    """Largest opening of the gripper [m]."""
    reach: tuple[float, float] | None
    """Smallest and largest distance from the robot's base, in the direction of the tool at home, at which the tool can
    point straight down [m]; None if there is none."""
    watched_pairs: int
    """Number of pairs of links that are checked for collisions."""


@dataclass(frozen=True, kw_only=True)
class RobotReport:
    """Properties of a robot whose file has no error."""

    name: str
    description: str
    links: int
    mass: float
    """Mass [kg]."""
    arms: tuple[ArmReport, ...]
    notes: tuple[str, ...]
    """Links with shapes and no mass, and their handling by the simulator."""


_REPORT = TypeAdapter(RobotReport)


class KeptReport:
    """Location of one robot's report and picture in the cache.

    Args:
        name_or_path: A name from ``scenes/robots``, or the path of a file.

    Raises:
        InputError: The robot does not exist, or its file or model has an error.
    """

    def __init__(self, name_or_path: str) -> None:
        self._robot = robot = load_robot(name_or_path)
        versions = [importlib.metadata.version(package) for package in _PACKAGES]
        content = f"{robot_hash(robot)} {read_stage(ROBOT_SCENE).content_hash} {versions}"
        self._place = cache_folder("robot_checks") / f"{robot.name}-{versioned_hash(content.encode(), CHECK_VERSION)}"

    def read(self, picture: Path) -> RobotReport | None:
        """Return the report and write the picture; return None if the cache contains none.

        Args:
            picture: The PNG to write.
        """
        drawn: bytes | None = None
        report: RobotReport | None = None
        with suppress(OSError, ValueError):
            drawn = self._place.with_suffix(".png").read_bytes()
            report = _REPORT.validate_json(self._place.with_suffix(".json").read_bytes())
        if drawn is None or report is None:
            return None
        picture.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(picture, drawn, durable=False, shared=True)  # replaces the file even if it is a link
        return replace(report, description=self._robot.description)

    def write(self, report: RobotReport, picture: Path) -> None:
        """Store a report and its picture.

        Args:
            report: The report.
            picture: The PNG that was drawn.
        """
        with writing(self._place.parent):
            for ending, content in ((".png", picture.read_bytes()), (".json", _REPORT.dump_json(report))):
                write_atomic(self._place.with_suffix(ending), content, durable=False, shared=True)
