"""Shipped robots pick a block and place it elsewhere, in physics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.task_attempts import elsewhere

ROBOTS = {"ur5": 0.45, "xarm7": 0.45, "z1": 0.38, "baxter": 0.32}
"""Distance of the block ahead of the scene's place for robots [m]; for the others see ``make test-tasks``."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "robot", [pytest.param(name, marks=pytest.mark.long if name == "z1" else ()) for name in ROBOTS]
)
def test_a_robot_puts_a_block_elsewhere(robot: str, tmp_path: Path):
    found = elsewhere(robot, ROBOTS[robot], tmp_path)
    assert found.contacts["held_penetration"].max() < 0.002
