"""Limit of the steps that verify does again: the task's text comes with the dataset."""

from __future__ import annotations

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks.task import parse_task
from nimbus.runner.checks.recompute import check_length, count_steps

_TASK = """instructions: [Tidy up.]
robot: panda
scene: tabletop
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.4, 0.5]}
objects:
  items: {library: trash, kinds: all, count: [2, 4], region: start, yaw: any}
steps:
  - for item in items:
      - try: [pick: item]
        recover: [retry]
        at_most: 3
  - repeat:
      - {repeat: [home, home], times: 10}
    times: 20
success:
  - nothing_on_floor
"""


def test_steps_of_loops_in_loops_multiply() -> None:
    steps = parse_task(_TASK).steps
    assert [count_steps((step,), members=4) for step in steps] == [4 * (1 + 3), 20 * 10 * 2]


def test_a_foreign_task_of_endless_loops_is_one_line() -> None:
    steps = parse_task(_TASK.replace("times: 10", "times: 100").replace("times: 20", "times: 100")).steps
    with pytest.raises(
        InputError, match="its loops may execute 20,016 steps; a comparison executes at most 500"
    ) as error:
        check_length(steps, members=4, where="a.hdf5")
    assert error.value.where == "a.hdf5"
