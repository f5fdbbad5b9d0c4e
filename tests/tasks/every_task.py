"""Attempts with every shipped task and robot: some layouts are planned and executed, nothing is rendered.

Run by ``make test-tasks``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.tasks.task import task_names
from tests.support.task_attempts import elsewhere, successes


@pytest.mark.parametrize("task", task_names())
def test_most_first_attempts_succeed(task: str):
    assert successes(task, wanted=2, layouts=4) == 2


@pytest.mark.parametrize(("robot", "x"), [("ur10", 0.5), ("dual_panda", 0.45)])
def test_the_other_robots_put_a_block_elsewhere(robot: str, x: float, tmp_path: Path):
    assert elsewhere(robot, x, tmp_path).outcome.success
