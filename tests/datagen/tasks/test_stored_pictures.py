"""A stored task draws no other images of this user than those with which its episode was made."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from nimbus.datagen.load.scene_loader import UsdSceneLoader, load_assets
from nimbus.datagen.stages import Request
from nimbus.datagen.tasks import stored_pictures
from nimbus.datagen.tasks.stored_files import check_stored_files
from nimbus.datagen.tasks.stored_pictures import check_pictures, hash_pictures, without_pictures
from nimbus.datagen.tasks.task import Task, parse_task
from tests.support.one_can import TEXT, assets
from tests.support.refusals import refusal


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Return a task that covers the table with the images of a folder in the current one."""
    monkeypatch.chdir(tmp_path)
    Path("Pictures").mkdir()
    for name in ("cat", "dog"):
        Image.new("RGB", (8, 8), (200, 30, 30)).save(f"Pictures/{name}.png")
    return parse_task(f"{TEXT}randomize: {{textures: {{on: [table], folder: Pictures}}}}\n", name="t")


def test_an_episode_states_its_images(task: Task) -> None:
    (scene,) = UsdSceneLoader(task, assets()).process(Request(index=0, variants=(0,)))
    stated = scene.provenance.assets
    assert hash_pictures(task).items() <= stated.items() and len(hash_pictures(task)) == 1
    check_pictures(task, stated, where="here")
    check_stored_files(task, stated, where="here")


def test_images_that_an_episode_does_not_state_are_not_read(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_pictures, "file_hash", pytest.fail)
    assert "states no content: 'Pictures/'" in refusal(check_pictures, task, {}, where="here")


def test_an_environment_map_without_a_suffix_is_an_image(task: Task) -> None:
    Path("sky").symlink_to("/private/holiday.hdr")
    text = task.text.partition("randomize:")[0] + "randomize: {dome: {textures: [sky]}}\n"
    stored = parse_task(text, name="t")
    assert "states no content: 'sky'" in refusal(check_pictures, stored, {}, where="here")
    assert "outside the working directory: 'sky'" in refusal(
        check_pictures, stored, {"pictures of dome": "0"}, where="x"
    )
    assert parse_task(text, name="t", folder=Path("/tasks")).randomize["dome"].picture_places == ("/tasks/sky",)


@pytest.mark.parametrize("change", ["Pictures/cat.png", "Pictures/new.jpg"])
def test_other_images_are_refused(task: Task, change: str) -> None:
    stated = hash_pictures(task)
    Image.new("RGB", (9, 9)).save(change)
    assert "the pictures of textures changed since" in refusal(check_pictures, task, stated, where="here")


def test_a_task_without_images_states_none() -> None:
    plain = parse_task(f"{TEXT}randomize: {{textures: {{on: [table]}}, materials: {{}}}}\n", name="t")
    assert hash_pictures(plain) == {}
    check_pictures(plain, {}, where="here")
    assert without_pictures(plain).randomize == plain.randomize


def test_parsing_and_a_check_of_stored_layouts_read_no_image(task: Task) -> None:
    Path("Pictures").rename("Broken")
    Path("Broken/cat.png").write_bytes(b"no image")
    again = parse_task(task.text.replace("Pictures", "Broken"), name="t")
    assert "not a readable image" in refusal(load_assets, again)
    load_assets(without_pictures(again))
