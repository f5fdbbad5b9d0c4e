"""The files of a stored task are opened only if this user ran the task, or names it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from nimbus.datagen import registry
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.load.navigation_loader import NavigationLoader
from nimbus.datagen.load.scene_loader import UsdSceneLoader
from nimbus.datagen.stages import Request
from nimbus.datagen.tasks import own_tasks
from nimbus.datagen.tasks.own_tasks import (
    find_named,
    is_named,
    name_task,
    own_folder,
    own_pictures,
    parse_stored,
    record_own,
)
from nimbus.datagen.tasks.task import load_any_task, load_task, manipulation_of, parse_task
from nimbus.datagen.tasks.task_file import TaskFile
from tests.support.one_can import TEXT, assets
from tests.support.refusals import refusal

SHIPPED = load_task("sort_trash").text


@pytest.fixture(autouse=True)
def new_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty cache and working directory, and no task of a command."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(own_tasks, "_named", {})
    monkeypatch.chdir(tmp_path)


def stored(text: str, **hashes: str) -> Provenance:
    return Provenance(task_text=text, task_hash="", assets=hashes)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("robot: panda", "robot: pipe.yaml"),
        ("scene: tabletop", "scene: pipe.yaml"),
        ("scene: tabletop", "scene: {file: pipe}"),
        ("library: trash", "library: ./pipe.yaml"),
        ("scene: tabletop", "scene: {family: kitchen, bench: ./pipe.yaml}"),
        ("\n  mass:", "\n  distractors: {library: pipe.yaml, region: start}\n  mass:"),
        ("robot: panda", "robot: pipe"),
        ("scene: tabletop", "scene: pipe"),
        ("library: trash", "library: pipe"),
        ("scene: tabletop", "scene: {family: kitchen, bench: pipe}"),
        ("\n  mass:", "\n  distractors: {library: pipe, region: start}\n  mass:"),
    ],
)
def test_no_file_of_a_foreign_task_is_opened(line: str, other: str) -> None:
    """A reader would wait for a writer of the pipe. A name that does not come with Nimbus counts as a file."""
    for name in ("pipe", "pipe.yaml"):
        os.mkfifo(name)
    text = SHIPPED.replace(line, other, 1)
    assert text != SHIPPED
    error = refusal(parse_stored, stored(text), name="t", where="here")
    assert error.startswith("here: its task names the file '") and "pipe" in error and "--task FILE" in error


@pytest.mark.parametrize("scene", ["{meshes: '*/*.glb'}", "{splats: [{splat: pipe.spz}]}", "{meshes: pipe}"])
def test_no_scan_of_a_foreign_task_is_listed(scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nimbus.datagen.navigate.sources.meshes.find_files", pytest.fail)
    text = (scene_folder("tasks") / "navigate_homes.yaml").read_text()
    text = "\n".join(f"scene: {scene}" if line.startswith("scene:") else line for line in text.splitlines())
    assert "here: its task names the file " in refusal(parse_stored, stored(text), name="t", where="here")


def test_images_count_where_they_are_drawn() -> None:
    text = f"{TEXT}randomize: {{textures: {{on: [table], folder: Pictures}}}}\n"
    assert parse_stored(stored(text), name="t", where="here").text == text
    assert "names the file 'Pictures/'" in refusal(parse_stored, stored(text), name="t", where="here", draws=True)


@pytest.mark.parametrize("scene", ["tabletop", "kitchen", "{family: kitchen, bench: table, size: [4.5, 5.5]}"])
def test_a_task_without_own_files_needs_no_record(scene: str) -> None:
    text = SHIPPED.replace("scene: tabletop", f"scene: {scene}")
    assert parse_stored(stored(text), name="t", where="here", draws=True).text == text


@pytest.mark.parametrize("name", ["navigate_homes", "navigate_splats"])
def test_generated_homes_need_no_record(name: str) -> None:
    text = (scene_folder("tasks") / f"{name}.yaml").read_text()
    assert parse_stored(stored(text), name="t", where="here", draws=True).text == text


def test_a_run_records_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another text, other content or another cache is not the same task."""
    shutil.copy(scene_folder("robots") / "panda.yaml", "own.yaml")
    Path("t.yaml").write_text(TEXT.replace("robot: panda", "robot: own.yaml"))
    task = load_task("t.yaml")
    (scene,) = UsdSceneLoader(task, assets()).process(Request(index=0, variants=(0,)))
    made = scene.provenance
    assert parse_stored(made, name="t", where="here").text == task.text
    changed = stored(task.text, **made.assets | {"robot panda": "other"}), stored(task.text + "# 1\n", **made.assets)
    for provenance in changed:
        assert "files of foreign tasks are not opened" in refusal(parse_stored, provenance, name="t", where="here")
    monkeypatch.setenv("NIMBUS_CACHE", str(Path("other cache").absolute()))
    assert "files of foreign tasks are not opened" in refusal(parse_stored, made, name="t", where="here")


def test_files_of_an_own_task_lie_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder may be a copy of an own dataset with files of another user beside it."""
    robot = scene_folder("robots") / "panda.yaml"
    for name in ("mine", "fork"):
        Path(name).mkdir()
        shutil.copy(robot, f"{name}/own.yaml")
    Path("mine/t.yaml").write_text(TEXT.replace("robot: panda", "robot: own.yaml"))
    (scene,) = UsdSceneLoader(load_task("mine/t.yaml"), assets()).process(Request(index=0, variants=(0,)))
    monkeypatch.chdir("fork")
    own = str(tmp_path / "mine/own.yaml")
    assert manipulation_of(parse_stored(scene.provenance, name="t", where="here")).robot == own
    form = parse(scene.provenance.task_text, "task").validate(TaskFile)
    assert form.seen_from(own_folder(scene.provenance)).robot == own
    assert own_folder(stored("other")) == Path()


def test_a_task_that_moved_is_recorded_again(tmp_path: Path) -> None:
    record_own("text", {}, folder=tmp_path / "old", pictures=[tmp_path / "old/a.png"])
    record_own("text", {}, folder=tmp_path / "new", pictures=[tmp_path / "new/a.png"])
    assert own_folder(stored("text")) == tmp_path / "new"
    assert own_pictures(stored("text")) == (tmp_path / "old/a.png", tmp_path / "new/a.png")


def test_episodes_of_a_stored_task_do_not_record_it() -> None:
    """A command that renders a foreign episode again makes episodes with its task."""
    shutil.copy(scene_folder("robots") / "panda.yaml", "own.yaml")
    task = parse_task(TEXT.replace("robot: panda", "robot: own.yaml"), name="t")
    (scene,) = UsdSceneLoader(task, assets()).process(Request(index=0, variants=(0,)))
    assert "foreign tasks" in refusal(parse_stored, scene.provenance, name="t", where="here")


@pytest.mark.parametrize(
    "scene",
    [
        """{family: workshop, bench: 'file:{"file": "look\\u002eusda", "surface": "table"}'}""",
        """{family: workshop, bench: 'room:{"family": "kitchen", "bench": "look\\u002eusda"}'}""",
        """'file:{"file": "look\\u002eusda"}'""",
        """'room:{"family": "kitchen", "bench": "look\\u002eusda"}'""",
    ],
)
def test_no_path_hides_in_the_text_form_of_settings(scene: str) -> None:
    text = SHIPPED.replace("scene: tabletop", f"scene: {scene}")
    error = refusal(parse_stored, stored(text), name="t", where="here")
    assert "a stage is not named by a text that begins with room: or file:" in error


def test_demonstrations_of_a_foreign_task_stay_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that do not execute its steps go on without them."""
    text = TEXT[: TEXT.index("steps:")] + "steps:\n  - do: {demo: take}\nsuccess:\n  - nothing_on_floor\n"
    text += "instructions: [Move it.]\n"
    provenance, skill = stored(text), registry.lookup("skill", "do")
    with monkeypatch.context() as patched:
        patched.setitem(skill._identity.__globals__, "read_demonstration", pytest.fail)
        closed = manipulation_of(parse_stored(provenance, name="t", where="here"))
        assert closed.steps[0].canonical() == {"do": {"demo": "missing demonstration"}}
        found = find_named(closed, provenance, where="here")
        assert found is None
        assert "names the file 'take.demo.json'" in refusal(find_named, closed, provenance, where="here", runs=True)
    record_own(text, {}, folder=Path("/mine"))
    opened: list[str] = []
    monkeypatch.setitem(skill._identity.__globals__, "read_demonstration", lambda path: opened.append(path) or _Take())
    task = manipulation_of(parse_stored(provenance, name="t", where="here"))
    assert opened == ["/mine/take.demo.json"] and task.steps[0].canonical() == {"do": {"demo": "demonstration 1"}}
    assert find_named(task, provenance, where="here", runs=True) is None


class _Take:
    def content_hash(self) -> str:
        return "1"


def test_a_navigation_run_records_its_task() -> None:
    Path("a.ply").write_bytes(b"ply")
    text = (scene_folder("tasks") / "navigate_homes.yaml").read_text()
    text = "\n".join("scene: {meshes: a.ply}" if line.startswith("scene:") else line for line in text.splitlines())
    Path("t.yaml").write_text(text)
    loader = NavigationLoader(load_any_task("t.yaml"))  # pyright: ignore[reportArgumentType]
    assert parse_stored(stored(text, **loader._hashes), name="t", where="here").text == text
    assert "foreign tasks" in refusal(parse_stored, stored(text), name="t", where="here")


def test_a_task_of_the_command_stands_for_a_stored_one_of_equal_content() -> None:
    """Its paths begin at its own file, not in the working directory, which may be a foreign dataset."""
    text = SHIPPED.replace("robot: panda", "robot: own.yaml")
    Path("mine").mkdir()
    Path("mine/task.yaml").write_text(f"# my notes\n{text}")
    name_task("mine/task.yaml")
    found = manipulation_of(parse_stored(stored(text), name="t", where="here"))
    assert found.robot == "mine/own.yaml" and is_named(found)
    form = parse(text, "task").validate(TaskFile)
    assert find_named(form, stored(text), where="here") is found
    other = text.replace("own.yaml", "../own.yaml")
    assert "that of the command differs" in refusal(parse_stored, stored(other), name="t", where="here")


def test_records_are_private(tmp_path: Path) -> None:
    record_own("text", {"robot a": "1"}, folder=tmp_path)
    folder = tmp_path / "cache/own_tasks"
    assert folder.stat().st_mode & 0o777 == 0o700 and len(list(folder.iterdir())) == 1
