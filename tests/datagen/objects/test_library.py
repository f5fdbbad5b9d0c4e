"""Library files: their content, their errors, and the files made from them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.motions.grasps import model_axes
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.objects import libraries
from nimbus.datagen.objects import library as library_module
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.robots.robot import load_robot
from tests.support.refusals import refusal

SMALL = """\
classes: [recycling]
kinds:
  post:
    class: recycling
    category: wooden post
    variants: 3
    size: {width: [30 mm, 40 mm], height: [60 mm, 80 mm]}
    mass: [20 g, 40 g]
    friction: [0.5, 0.8]
    shapes:
      - {family: loft, profile: [[0, 1], [1, 0.8]], ends: flat}
    texture:
      - {paint: plain, colors: ["#a08050"]}
"""


def library(tmp_path: Path, text: str) -> ObjectLibrary:
    path = tmp_path / "posts.yaml"
    path.write_text(text)
    return open_library(path)


def test_a_library_of_ones_own_opens_by_path(tmp_path: Path) -> None:
    posts = library(tmp_path, SMALL)
    assert posts.kinds == ("post",)
    assert posts.classes == ("recycling",)
    assert posts.variant_count("post") == 3
    assert posts.kind("post").category == "wooden post"
    assert 0.03 <= posts.model("post", 0).bounds[1, 0] * 2 <= 0.04


def test_opening_twice_gives_the_same_models() -> None:
    assert open_library("trash").model("can", 0) is open_library("trash").model("can", 0)


def test_a_run_builds_no_model_of_the_library_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    trash = open_library("trash")
    built: list[tuple[str, int]] = []
    fresh = ObjectLibrary(trash.name, trash._kinds, trash.classes, trash.content_hash)
    monkeypatch.setattr(library_module, "build_object", lambda *address: built.append((address[1], address[3])))
    variants = [(kind, variant) for kind in trash.kinds for variant in range(trash.variant_count(kind))]
    for kind, variant in variants * 2:
        fresh.model(kind, variant)
    assert built == variants


def test_the_content_hash_follows_the_file(tmp_path: Path) -> None:
    first = library(tmp_path, SMALL)
    (tmp_path / "b").mkdir()
    assert library(tmp_path / "b", SMALL).content_hash == first.content_hash
    (tmp_path / "c").mkdir()
    assert library(tmp_path / "c", SMALL.replace("80 mm", "90 mm")).content_hash != first.content_hash


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("friction:", "fricton:", r"posts\.yaml:\d+:\d+: kinds\.post.*fricton.*did you mean 'friction'"),
        ("20 g, 40 g", "40 g, 20 g", r"posts\.yaml:8:\d+: kinds\.post\.mass.*reversed"),
        ("class: recycling\n", "class: recyling\n", r"posts\.yaml.*recyling.*recycling"),
        (
            "family: loft",
            "family: lofty",
            r"posts\.yaml:11:\d+: kinds\.post\.shapes\[0\]\.family: unknown family 'lofty'; did you mean 'loft'",
        ),
        (
            "paint: plain",
            "paint: plane",
            r"posts\.yaml:13:\d+: kinds\.post\.texture\[0\]\.paint: unknown paint 'plane'; did you mean 'plain'",
        ),
        ('"#a08050"', '"brown"', r"posts\.yaml:13:\d+: .*colors\[0\].*brown"),
        ("ends: flat", "ends: flat, bands: {label: [0, 5]}", r"posts\.yaml:11:\d+: .*band 'label' is from row 0 to 5"),
        ("20 g, 40 g", "20 kg, 40 furlong", r"posts\.yaml:8:\d+: .*mass"),
        ("[0, 1], [1, 0.8]", "[0, 1]", r"posts\.yaml:11:\d+: .*profile"),
    ],
)
def test_a_mistake_in_a_library_is_one_line_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    told = refusal(library, tmp_path, SMALL.replace(old, new, 1))
    assert re.search(message, told), told


def test_a_layer_on_a_part_that_is_not_there_names_the_parts(tmp_path: Path) -> None:
    posts = library(tmp_path, SMALL.replace("paint: plain,", "paint: plain, on: side,"))
    with pytest.raises(InputError, match="posts.*post.*no part 'side'.*did you mean 'sides'"):
        posts.model("post", 0)


def test_unknown_libraries_kinds_and_variants_are_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown object library 'trahs'; did you mean 'trash'"):
        open_library("trahs")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(InputError, match="write mine/ for the folder"):
        patch.setattr(libraries, "_opened", {})  # another test may have opened a library of this name
        patch.chdir(tmp_path)
        (tmp_path / "mine").mkdir()
        open_library("mine")
    trash = open_library("trash")
    with pytest.raises(InputError, match="unknown kind 'botle'; did you mean 'bottle'"):
        trash.model("botle", 0)
    with pytest.raises(InputError, match="no variant 99 of 'bottle'; write 0 to 15"):
        trash.model("bottle", 99)
    with pytest.raises(InputError, match="nowhere.yaml"):
        open_library("nowhere.yaml")


def test_a_library_of_ones_own_is_known_by_its_name_once_it_is_open(tmp_path: Path) -> None:
    (tmp_path / "fence.yaml").write_text(SMALL)
    with pytest.raises(InputError, match="unknown object library 'fence'"):
        open_library("fence")
    fence = open_library(tmp_path / "fence.yaml")
    assert open_library("fence") is fence


def test_a_name_means_the_library_opened_last(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    library(tmp_path / "a", SMALL)
    gripper = load_robot("panda").gripper.shape
    first = model_axes("posts", "post", 0, gripper)
    library(tmp_path / "b", SMALL.replace("[30 mm, 40 mm]", "[50 mm, 52 mm]"))
    assert model_axes("posts", "post", 0, gripper).widths.mean() > first.widths.mean() + 0.005


def test_a_library_that_comes_with_nimbus_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "trash.yaml").write_text(SMALL)
    with pytest.raises(InputError, match="Nimbus already has an object library 'trash'; rename yours"):
        open_library(tmp_path / "trash.yaml")
    assert open_library(scene_folder("objects") / "trash.yaml") is open_library("trash")


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "deep" / "cache"))
    folder = cache_folder("objects")
    assert folder == tmp_path / "deep" / "cache" / "objects"
    assert folder.is_dir()


def test_a_cache_that_cannot_be_a_folder_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="NIMBUS_CACHE"):
        cache_folder("objects")
