"""A stored task uses no other files of this user than those with which its episode was made."""

from __future__ import annotations

import json
import os
import re
import traceback
from dataclasses import asdict
from pathlib import Path

import pytest

from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_json
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.navigate.sources.files import file_hash, file_hashes
from nimbus.datagen.tasks.stored_files import check_stored_files, hash_assets, names_files
from nimbus.datagen.tasks.task import load_task, parse_any_task
from nimbus.datagen.tasks.task_file import TaskFile
from tests.support.foreign_scenes import write_hssd
from tests.support.synthetic import make_rendered
from tools.sources import modules


@pytest.mark.parametrize(("room", "line"), [("objects", "library: trash"), ("robots", "robot: panda")])
def test_a_private_file_is_refused(tmp_path: Path, room: str, line: str) -> None:
    kind, name = line.split(": ")
    private = tmp_path / "private.yaml"
    private.write_text((scene_folder(room) / f"{name}.yaml").read_text().replace("damping: [", "damping: [1", 1))
    shipped = load_task("sort_trash")
    task = parse_any_task(shipped.text.replace(line, f"{kind}: {private}"))
    assert names_files(task) and not names_files(shipped)
    check_stored_files(shipped, {}, where="here")
    with pytest.raises(InputError, match="here: its task names files of which the episode states no content"):
        check_stored_files(task, {}, where="here")
    with pytest.raises(InputError, match=f"here: the {kind} {name} changed since this episode was made"):
        check_stored_files(task, hash_assets(shipped), where="here")
    check_stored_files(task, hash_assets(task), where="here")


def test_a_task_file_is_checked_without_the_libraries_of_its_randomizers(tmp_path: Path) -> None:
    """They are not opened: an export of states reads the form of the task only."""
    robot = tmp_path / "own.yaml"
    robot.write_text((scene_folder("robots") / "panda.yaml").read_text())
    text = load_task("sort_trash").text.replace("robot: panda", f"robot: {robot}")
    text = text.replace("\n  mass:", "\n  distractors: {library: blocks, region: start}\n  mass:")
    stated = hash_assets(parse_any_task(text))
    assert {"library trash", "library blocks"} < stated.keys()
    file = parse(text, "task").validate(TaskFile)
    check_stored_files(file, stated, where="here")
    for name in ("library trash", "robot own", "scene tabletop"):
        with pytest.raises(InputError, match=f"the {name} changed since"):
            check_stored_files(file, stated | {name: "other"}, where="here")


@pytest.mark.parametrize("line", ["library: trash", "robot: panda", "scene: tabletop"])
def test_errors_quote_no_private_file(tmp_path: Path, line: str) -> None:
    """They are stored in certificates, which are shared; parsers quote what they cannot read."""
    token, kind = tmp_path / "token.yaml", line.partition(":")[0]
    token.write_text("hf_MyVeryPrivateToken0123456789\n")
    task = parse_any_task(load_task("sort_trash").text.replace(line, f"{kind}: {token}"))
    with pytest.raises(InputError, match="here: a file that its task names is .* used: token.yaml; ") as error:
        check_stored_files(task, {}, where="here")
    assert str(tmp_path) not in str(error.value)
    assert "Private" not in "".join(traceback.format_exception(error.value))


def test_private_scans_are_refused(tmp_path: Path) -> None:
    """A pattern needs no known path."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/office.ply").write_bytes(b"ply")
    text = load_text("navigate_homes", f"scene: {{meshes: {tmp_path}/*/*.ply}}")
    task = parse_any_task(text)
    with pytest.raises(InputError, match="names files of which the episode states no content") as error:
        check_stored_files(task, {}, where="here")
    assert "office" not in str(error.value)
    os.mkfifo(tmp_path / "mine/never read.ply")
    with pytest.raises(InputError, match="names files of which the episode states no content"):
        check_stored_files(task, {"mesh office.ply": "0"}, where="here")
    (tmp_path / "mine/never read.ply").unlink()
    check_stored_files(task, {"mesh office.ply": file_hash(tmp_path / "mine/office.ply")}, where="here")


def test_scans_that_a_stored_scene_names_are_refused(tmp_path: Path) -> None:
    """The foreign dataset knows the hash of its own instance, but not that of a private scan beside the dataset."""
    instance = write_hssd(tmp_path)
    task = parse_any_task(load_text("navigate_homes", f"scene: {{meshes: {instance}}}"))
    own = {f"mesh {instance.name}": file_hash(instance)}
    with pytest.raises(InputError, match="names files of which the episode states no content"):
        check_stored_files(task, own, where="here")
    check_stored_files(task, hash_assets(task), where="here")


def load_text(name: str, scene: str) -> str:
    """Return the text of a shipped task with another scene."""
    text = (scene_folder("tasks") / f"{name}.yaml").read_text()
    return "\n".join(scene if line.startswith("scene:") else line for line in text.splitlines())


def test_files_of_one_name_have_a_common_hash(tmp_path: Path) -> None:
    """The last of them would otherwise stand for all."""
    paths = [tmp_path / "a/x.glb", tmp_path / "b/x.glb"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(path.parent.name)
    assert file_hashes("mesh", paths[1:]) == {"mesh x.glb": file_hash(paths[1])}
    assert file_hashes("mesh", paths) != file_hashes("mesh", paths[1:])
    paths[0].write_text("b")
    assert file_hashes("mesh", paths) == file_hashes("mesh", paths[1:])


@pytest.mark.parametrize("library", ["/elsewhere/things/", "things/", "../own.yaml", "own.yaml", ""])
def test_a_layout_names_no_file(library: str) -> None:
    placed = asdict(make_rendered(0).layout.physical.objects[0])
    from_json(PlacedObject, json.dumps(placed))
    with pytest.raises(ValueError, match="is not a name"):
        from_json(PlacedObject, json.dumps(placed | {"library": library}))


def test_every_stored_task_is_checked() -> None:
    """Only these modules read a stored task; each of them asks whether its files may be opened, and checks them."""
    line = re.compile(r"parse_stored\(|stored_task\(|find_named\(|(provenance|origin)\.task_text")
    texts = {name.removeprefix("nimbus."): path.read_text() for name, path in modules().items()}
    readers = {name for name, text in texts.items() if line.search(text) and "parse" in text}
    checked = {name for name in readers if "check_stored_files" in texts[name] or "check_assets" in texts[name]}
    # Isaac Sim gets the task of its own run.
    assert len(checked) >= 7 and readers - checked <= {"datagen.tasks.own_tasks", "runner.isaac.job"}
    parsers = {name for name in readers if re.search(r"parse\w*\([^)]*task_text", texts[name])}
    assert len(parsers) == 2 and all("find_named(" in texts[name] for name in parsers)
    assert all("own_folder(" in texts[name] for name in parsers)
