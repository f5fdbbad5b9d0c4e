"""Navigation tasks in a studio: fields that change the file, and maps and paths on request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.navigate.homes import home_scene
from nimbus.datagen.tasks.task import NavigationTask
from nimbus.datagen.ui.navigation_preview import NavigationPreview, _view_from_above
from nimbus.datagen.ui.task_editor import TaskEditor
from tests.support.desks import ImmediateTasks, NotedScene

TASK = """\
scene: {homes: 2, rooms: [2, 2]}
navigate: {to: object, length: [1 m, 8 m]}
cameras: {front: {size: [32, 24]}}
"""


class NotedViews:
    """Views that record their requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def begin(self, task: NavigationTask) -> None:
        self.asked.append(("begin", task.navigate.to))

    def draw_map(self, task: NavigationTask, *, seed: int, number: int, count: int) -> str:
        self.asked.append(("map", seed, number, count))
        return "one map"

    def plan(self, task: NavigationTask, *, seed: int, index: int) -> str:
        self.asked.append(("plan", seed, index))
        return ""

    def examine(self, task: NavigationTask) -> list[Diagnostic]:
        return []


@pytest.fixture
def views() -> NotedViews:
    return NotedViews()


@pytest.fixture
def editor(tmp_path: Path, views: NotedViews) -> TaskEditor:
    (tmp_path / "walk.yaml").write_text(TASK)
    editor = TaskEditor(NotedScene(), ImmediateTasks(), folder=tmp_path, navigation=views)
    editor.open(str(tmp_path / "walk.yaml"))
    return editor


def test_fields_of_navigation_tasks_write_into_the_file(editor: TaskEditor, views: NotedViews):
    titles = [section.title for section in editor.sections()]
    assert titles == ["Task", "Scenes", "Body", "Goals", "Filters", "Cameras", "Randomization", "File", "Layouts"]
    changes = {"navigate.to": "room", "body.radius": "20 cm", "keep.duplicates": "1 m", "cameras.front.tilt": "5 deg"}
    for name, value in changes.items():
        editor.act(name, value)
        assert editor.draft is not None and editor.draft.value(*name.split(".")) == value
    assert editor.problems == [] and ("begin", "room") in views.asked
    editor.act("navigate.to", "moon")
    assert "unknown goal 'moon'" in str(editor.problems[0])


def test_maps_and_paths_are_made_on_request(editor: TaskEditor, views: NotedViews):
    editor.act("paths", 7)
    editor.act("map", "Next scene")
    assert editor.message == "one map"
    editor.act("episode", 3)
    editor.act("path", "Plan one")
    assert views.asked[-2:] == [("map", 0, 1, 7), ("plan", 0, 3)]


def test_hosts_without_maps_say_so(tmp_path: Path):
    editor = TaskEditor(NotedScene(), ImmediateTasks(), folder=tmp_path)
    editor.open("navigate_homes")
    assert "nimbus studio" in editor.sections()[-1].controls[0].label
    editor.act("changes", "Examine")
    assert "nimbus doctor navigate_homes" in editor.message


def test_homes_are_seen_from_above():
    scene = home_scene(1, (2, 2))
    eye, target = _view_from_above(scene)
    corners = scene.corners.reshape(-1, 3)
    assert eye[2] > corners[:, 2].max()
    assert np.all(corners.min(axis=0) <= target) and np.all(target <= corners.max(axis=0))


@pytest.mark.long
def test_maps_show_paths_and_what_they_cover(editor: TaskEditor):
    task = editor.any_task()
    assert isinstance(task, NavigationTask)
    found = NavigationPreview().draw_map(task, seed=0, number=3, count=2)
    assert found.line.startswith("home_1: 2 rooms") and "2 goals have a path" in found.line
    colors = {tuple(color) for color in found.picture.reshape(-1, 3).tolist()}
    assert {(60, 110, 200), (40, 140, 70), (200, 50, 60), (176, 214, 186)} <= colors
