"""Shipped robots; some models are in wheels that may be missing on this machine."""

from __future__ import annotations

import pytest

from nimbus.datagen.robots.robot import Robot, load_robot
from nimbus.datagen.robots.robot_file import list_wheels
from nimbus.datagen.robots.wheels import find_wheel


def load_shipped_robot(name: str) -> Robot:
    """Load a robot; skip the test if a wheel of its model is missing."""
    if missing := [wheel for wheel in list_wheels(name) if find_wheel(wheel) is None]:
        pytest.skip(f"nimbus robot fetch {name} downloads {missing[0]}")
    return load_robot(name)
