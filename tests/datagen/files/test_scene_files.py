"""Names and paths in task files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import resolve_from, scene_file, scene_folder
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.tasks.task import load_task, parse_task
from tests.support.one_can import TEXT

OWN = (
    TEXT.replace("robot: panda", "robot: robots/mine.yaml")
    .replace("scene: tabletop", "scene: ../shared/room.usda\npipeline: ./pipes.yaml")
    .replace("library: trash", "library: things.yml")
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a task with its own robot, stage and library, all named relative to the task file."""
    folder = tmp_path / "tasks"
    (folder / "robots").mkdir(parents=True)
    (folder / "own.yaml").write_text(OWN)
    shutil.copy(scene_folder("robots") / "panda.yaml", folder / "robots" / "mine.yaml")
    shutil.copy(scene_folder("objects") / "trash.yaml", folder / "things.yml")
    shutil.copytree(scene_folder("stages"), tmp_path / "shared")
    (tmp_path / "shared" / "tabletop.usda").rename(tmp_path / "shared" / "room.usda")
    return folder


@pytest.mark.parametrize("name", ["panda", "", "a_b"])
def test_a_name_is_no_path(name: str):
    assert resolve_from(Path("folder"), name) == name


@pytest.mark.parametrize(
    ("written", "seen"),
    [("a.yaml", "folder/a.yaml"), ("b/a.yaml", "folder/b/a.yaml"), ("../a.usda", "folder/../a.usda"), ("/a", "/a")],
)
def test_a_relative_path_begins_where_the_file_is_that_names_it(written: str, seen: str):
    assert resolve_from(Path("folder"), written) == seen


def test_what_a_task_names_by_a_path_is_seen_from_the_task(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    task = load_task("tasks/own.yaml")
    assert (task.robot, task.scene) == ("tasks/robots/mine.yaml", "tasks/../shared/room.usda")
    assert task.pipeline == "tasks/pipes.yaml"
    assets = load_assets(task)
    assert assets.stage.path.samefile("shared/room.usda") and assets.stage.name == "room"
    assert [library.name for library in assets.libraries.values()] == ["things"]


def test_where_a_task_lies_does_not_change_what_it_is(project: Path, monkeypatch: pytest.MonkeyPatch):
    from_afar = load_task(project / "own.yaml").content_hash
    monkeypatch.chdir(project)
    assert load_task("own.yaml").content_hash == from_afar == parse_task(OWN, name="own").content_hash


def test_two_libraries_of_one_name_are_refused(project: Path):
    (project / "more").mkdir()
    shutil.copy(project / "things.yml", project / "more" / "things.yaml")
    second = "  more: {library: more/things.yaml, kinds: [jar], region: start}\nsteps:"
    (project / "own.yaml").write_text(OWN.replace("steps:", second))
    with pytest.raises(InputError, match=r"own.yaml:\d+:\d+: objects.more.library: two object libraries have the name"):
        load_assets(load_task(project / "own.yaml"))


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + ".yaml"])
def test_a_name_longer_than_a_file_can_have_is_one_line(name: str):
    with pytest.raises(InputError):
        scene_file("robots", name, kind="robot")
