"""A stored task draws no other images of this user than those with which its episode was made."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from nimbus.datagen.episode.layout import Dome, SurfaceLook
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.load.scene_loader import UsdSceneLoader, load_assets
from nimbus.datagen.stages import Request
from nimbus.datagen.tasks import own_tasks, stored_pictures
from nimbus.datagen.tasks.own_tasks import name_task, record_own
from nimbus.datagen.tasks.stored_files import check_stored_files
from nimbus.datagen.tasks.stored_pictures import check_pictures, hash_pictures, shown_layout, without_pictures
from nimbus.datagen.tasks.task import Task, load_task, parse_task
from tests.support.one_can import TEXT, assets
from tests.support.refusals import refusal
from tests.support.synthetic import make_layout


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Return a task that covers the table with the images of a folder in the current one."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("Pictures").mkdir()
    for name in ("cat", "dog"):
        Image.new("RGB", (8, 8), (200, 30, 30)).save(f"Pictures/{name}.png")
    return parse_task(f"{TEXT}randomize: {{textures: {{on: [table], folder: Pictures}}}}\n", name="t")


def stated_by(assets: dict[str, str], task: Task | None = None) -> Provenance:
    """Return the provenance of an episode; that of a task is recorded as an own one."""
    if task is not None:
        record_own(task.text, assets, folder=Path.cwd(), pictures=[Path.cwd() / "Pictures"])
    return Provenance(task_text=task.text if task else "", task_hash="", assets=assets)


def test_an_episode_states_its_images(task: Task) -> None:
    task = load_own(task)
    (scene,) = UsdSceneLoader(task, assets()).process(Request(index=0, variants=(0,)))
    stated = scene.provenance.assets
    assert hash_pictures(task).items() <= stated.items() and len(hash_pictures(task)) == 1
    check_pictures(task, scene.provenance, where="here")
    check_stored_files(task, stated, where="here")


def test_images_that_an_episode_does_not_state_are_not_read(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_pictures, "file_hash", pytest.fail)
    assert "states no content: 'Pictures'" in refusal(check_pictures, task, stated_by({}), where="here")
    stated = stated_by({"pictures of textures": "0"})
    assert "no task of yours draws: 'Pictures'" in refusal(check_pictures, task, stated, where="here")


def test_an_environment_map_without_a_suffix_is_an_image(task: Task) -> None:
    Path("sky").symlink_to("/private/holiday.hdr")
    text = task.text.partition("randomize:")[0] + "randomize: {dome: {textures: [sky]}}\n"
    stored = parse_task(text, name="t")
    assert "states no content: 'sky'" in refusal(check_pictures, stored, stated_by({}), where="here")
    stated = stated_by({"pictures of dome": "0"})
    assert "no task of yours draws: 'sky'" in refusal(check_pictures, stored, stated, where="here")
    assert parse_task(text, name="t", folder=Path("/tasks")).randomize["dome"].picture_places == ("/tasks/sky",)


@pytest.mark.parametrize("change", ["Pictures/cat.png", "Pictures/new.jpg"])
def test_other_images_are_refused(task: Task, change: str) -> None:
    stated = stated_by(hash_pictures(task), task)
    Image.new("RGB", (9, 9)).save(change)
    assert "the pictures of textures changed since" in refusal(check_pictures, task, stated, where="here")


@pytest.mark.usefixtures("task")
def test_a_task_without_images_states_none() -> None:
    plain = parse_task(f"{TEXT}randomize: {{textures: {{on: [table]}}, materials: {{}}}}\n", name="t")
    assert hash_pictures(plain) == {}
    check_pictures(plain, stated_by({}), where="here")
    assert without_pictures(plain).randomize == plain.randomize


def test_parsing_and_a_check_of_stored_layouts_read_no_image(task: Task) -> None:
    Path("Pictures").rename("Broken")
    Path("Broken/cat.png").write_bytes(b"no image")
    again = parse_task(task.text.replace("Pictures", "Broken"), name="t")
    assert "not a readable image" in refusal(load_assets, again)
    load_assets(without_pictures(again))


def shown(picture: Path | str, provenance: Provenance, *, is_dome: bool = False) -> str:
    """Return the path that is opened for the image of a stored layout."""
    dome = Dome(texture=str(picture), content="0", intensity=1.0, turn=0.0, sky=(1, 1, 1), ground=(1, 1, 1))
    look = SurfaceLook(picture=str(picture), picture_hash="0")
    plain = make_layout()
    visual = replace(plain.visual, dome=dome) if is_dome else replace(plain.visual, surfaces={"table": look})
    made = shown_layout(replace(plain, visual=visual), provenance, where="here").visual
    return made.dome.texture if made.dome else made.surfaces["table"].picture


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail on any question about a file in the folder ``private``."""
    for name in ("stat", "lstat", "open", "readlink"):
        real = getattr(os, name)

        def ask(path: Any, *args: Any, real: Any = real, **options: Any) -> Any:
            assert "private" not in str(path)
            return real(path, *args, **options)

        monkeypatch.setattr(os, name, ask)


def provenance_of(task: Task) -> Provenance:
    (scene,) = UsdSceneLoader(task, assets()).process(Request(index=0, variants=(0,)))
    return scene.provenance


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("is_dome", [False, True])
@pytest.mark.parametrize("name", ["private/pin.txt", "private/owl.png", "Pictures/../private/owl.png", "", "a\0.png"])
def test_an_image_of_a_foreign_layout_is_not_asked_for(task: Task, is_dome: bool, name: str) -> None:
    """Neither a shipped task nor one of this user allows a layout to name other files."""
    own = load_own(task)
    shipped = parse_task(TEXT, name="t")
    for made in (provenance_of(own), provenance_of(shipped)):
        given = str(Path.cwd() / name) if name else "/"
        assert "is not opened" in refusal(shown, given, made, is_dome=is_dome)


def load_own(task: Task) -> Task:
    Path("t.yaml").write_text(task.text)
    return load_task("t.yaml")


def test_an_image_of_an_own_run_is_shown_from_any_folder(task: Task, tmp_path: Path, monkeypatch: Any) -> None:
    made, other = provenance_of(load_own(task)), tmp_path / "other"
    (other / "Pictures").mkdir(parents=True)
    (other / "Pictures/owl.png").touch()
    monkeypatch.chdir(other)
    assert shown(tmp_path / "Pictures/cat.png", made) == str(tmp_path / "Pictures/cat.png")
    assert "is not opened" in refusal(shown, other / "Pictures/owl.png", made)
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "other cache"))
    assert "no task of yours draws" in refusal(shown, tmp_path / "Pictures/cat.png", made)


def test_a_task_of_the_command_finds_images_beside_its_file(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_tasks, "_named", {})
    Path("t.yaml").write_text(task.text)
    name_task("t.yaml")
    foreign = Provenance(task_text=task.text, task_hash="", assets={})
    assert shown("/elsewhere/Pictures/cat.png", foreign) == str(Path("Pictures/cat.png").absolute())


def test_a_link_out_of_the_own_folder_of_images_is_not_shown(task: Task, tmp_path: Path) -> None:
    made = provenance_of(load_own(task))
    Path("Pictures/link.png").symlink_to("/private/holiday.png")
    assert "link out of its folder" in refusal(shown, tmp_path / "Pictures/link.png", made)
