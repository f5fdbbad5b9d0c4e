"""Errors with an open task are one line, and nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.ui.document.draft import TaskDraft
from nimbus.datagen.ui.document.safe_file import read_content
from nimbus.datagen.ui.preview import Preview
from tests.support.runs import TINY, run_and

BROKEN = {
    "a robot that is no YAML": ("robot", "robot.yaml", "urdf: [", "robot.yaml"),
    "a robot without a model": ("robot", "robot.yaml", "{}", "robot.yaml"),
    "a scene that is no USD": ("scene", "scene.usda", "not a stage", "scene.usda"),
}


@pytest.mark.parametrize(("field", "name", "content", "said"), BROKEN.values(), ids=BROKEN)
def test_a_robot_or_a_scene_that_does_not_load_is_one_line(
    tmp_path: Path, field: str, name: str, content: str, said: str
):
    (tmp_path / name).write_text(content)
    (path := tmp_path / "mine.yaml").write_text(TINY.read_text())
    draft = TaskDraft(str(path))
    draft.set((field,), name)
    with pytest.raises(InputError, match=said) as caught:
        Preview().bare(draft.task())
    assert "\n" not in str(caught.value)
    assert draft.value(field) == name
    draft.undo()
    assert draft.text == TINY.read_text()


def test_a_library_that_does_not_load_is_one_line_at_its_field(tmp_path: Path):
    (tmp_path / "things.yaml").write_text("kinds: 3")
    (path := tmp_path / "mine.yaml").write_text(TINY.read_text())
    draft = TaskDraft(str(path))
    draft.set(("objects", "items", "library"), "things.yaml")
    with pytest.raises(InputError, match="things.yaml") as caught:
        Preview().assets(draft.task())
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_task_that_is_saved_while_it_is_run_changes_nothing_of_the_run(tmp_path: Path):
    (path := tmp_path / "mine.yaml").write_text(TINY.read_text())
    draft, out = TaskDraft(str(path)), tmp_path / "out"

    def save() -> None:
        draft.set(("objects", "items", "kinds"), ["bottle"])
        draft.save()

    assert run_and(save, "--episodes", "2", "--images", "none", out=out, task=path) == 0
    texts = []
    for file in sorted((out / "episodes").glob("*.hdf5")):
        with EpisodeFile(file) as episode:
            texts.append(episode.provenance.task_text)
    assert texts == [TINY.read_text()] * 2
    assert path.read_text() == draft.text


def test_pipe_is_no_task_file(tmp_path: Path):
    """Opening a pipe would block the whole page until a writer appears."""
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(InputError, match="regular file"):
        read_content(tmp_path / "a.yaml")
    with pytest.raises(InputError, match="regular file"):
        TaskDraft(str(tmp_path / "a.yaml"))
    assert read_content(tmp_path / "b.yaml") is None
