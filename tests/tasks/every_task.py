"""Every task that comes with Nimbus, for real: some layouts are planned and executed. Run by ``make test-tasks``."""

from __future__ import annotations

import pytest
from task_attempts import successes

from nimbus.datagen.task import task_names


@pytest.mark.parametrize("task", task_names())
def test_most_first_attempts_succeed(task: str):
    assert successes(task, wanted=2, layouts=4) == 2
