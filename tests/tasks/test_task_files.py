"""The shipped task files stay short, because users read them first."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.tasks.task import Task, load_any_task, load_task
from tests.support.shipped_tasks import MANIPULATION, NAVIGATION

FAMILIES = {
    "folding",
    "pick and place",
    "sorting",
    "stacking",
    "insertion",
    "pouring",
    "routing",
    "articulated",
    "wiping and sweeping",
    "pushing",
    "conveyor",
    "two-arm",
    "long-horizon",
}


@cache
def manipulation_tasks() -> dict[str, Task]:
    """Load all tasks of arms, by name."""
    return {name: load_task(name) for name in MANIPULATION}


@pytest.mark.parametrize("name", (*MANIPULATION, *NAVIGATION))
def test_a_task_file_is_at_most_thirty_lines_of_a_hundred_columns(name: str):
    lines = load_any_task(name).text.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("name", MANIPULATION)
def test_a_task_file_says_what_it_is_and_has_a_step_a_line(name: str):
    task = manipulation_tasks()[name]
    lines = task.text.splitlines()
    assert lines[0].startswith("# ") and task.family in FAMILIES
    start = lines.index("steps:") + 1
    for line in lines[start : lines.index("success:")]:
        assert sum(f"{skill}: " in line for skill in ("pick", "place", "open", "close", "pour", "handover")) <= 1


@pytest.mark.parametrize("name", NAVIGATION)
def test_a_navigation_task_says_what_it_is(name: str):
    task = load_any_task(name)
    assert task.text.startswith("# ") and task.family == "navigation"


def test_there_are_many_tasks_of_every_family_and_half_of_them_fit_into_twenty_lines():
    families = Counter(task.family for task in manipulation_tasks().values())
    assert len(manipulation_tasks()) >= 25 and set(families) == FAMILIES
    assert families["articulated"] >= 6 and families["long-horizon"] >= 5
    assert median(len(task.text.splitlines()) for task in manipulation_tasks().values()) <= 20


@pytest.mark.parametrize("what", ["robots", "stages"])
def test_no_robot_or_scene_is_there_for_one_task(what: str):
    uses = Counter(Path(task.robot if what == "robots" else task.scene).stem for task in manipulation_tasks().values())
    assert not [name for name in scene_names(what) if uses[name] == 1]
