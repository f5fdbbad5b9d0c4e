"""Stages: the content of a scene, and faulty stage files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.usd.stage import layout_room, read_stage
from tests.support.refusals import refusal


@pytest.fixture
def stages(tmp_path: Path) -> Path:
    """Return a copy of the stages that may be changed."""
    return shutil.copytree(scene_folder("stages"), tmp_path / "stages")


def change(stages: Path, old: str, new: str) -> Path:
    path = stages / "tabletop.usda"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def stage_refusal(path: Path) -> str:
    said = refusal(read_stage, str(path))
    assert said.startswith(str(path))
    return said


def test_the_tabletop_has_a_bin_for_each_class_and_a_table():
    stage = read_stage("tabletop")
    assert {fixture.object_class for fixture in stage.fixtures.values()} == {"recycling", "organic", "residual"}
    assert {fixture.group for fixture in stage.fixtures.values()} == {"bins"}
    assert stage.robot_position == (0, 0, 0)
    assert stage.surfaces["table"].upper[2] == pytest.approx(0, abs=1e-3)
    assert {"table", "floor", "backdrop", *stage.fixtures} <= set(stage.roles)


def test_fixtures_have_bounds_in_their_own_frame():
    for fixture in read_stage("tabletop").fixtures.values():
        low, high = np.array(fixture.bounds)
        assert np.all(high - low > 0.1) and np.all(high - low < 0.4)
        assert low[2] == pytest.approx(0, abs=2e-3)
        assert np.allclose((low + high)[:2] / 2, 0, atol=0.01)


def test_a_stage_is_known_by_name_and_by_path():
    named, by_path = read_stage("tabletop"), read_stage(str(scene_folder("stages") / "tabletop.usda"))
    assert by_path.fixtures == named.fixtures and by_path.content_hash == named.content_hash


def test_the_hash_follows_the_stage_and_what_it_refers_to(stages: Path):
    same = read_stage(str(stages / "tabletop.usda")).content_hash
    assert same == read_stage("tabletop").content_hash
    prop = stages / "props" / "bin.usda"
    prop.write_text(prop.read_text() + "\n# other\n")
    moved = shutil.copytree(stages, stages.parent / "moved")
    assert read_stage(str(moved / "tabletop.usda")).content_hash != same


def test_an_unknown_stage_is_answered_with_the_known_ones():
    line = "task.yaml:2:8: scene: unknown scene 'tabletopp'; did you mean 'tabletop'? known: table, tabletop"
    assert refusal(read_stage, "tabletopp", where="task.yaml:2:8: scene") == line


def test_a_missing_reference_is_one_line(stages: Path):
    said = stage_refusal(change(stages, "./props/bin.usda", "./props/bucket.usda"))
    assert "refers to" in said and "bucket.usda', which does not exist" in said


def test_a_missing_texture_is_one_line(stages: Path):
    os.remove(stages / "textures" / "label_organic.png")
    assert "label_organic.png', which does not exist" in stage_refusal(stages / "tabletop.usda")


def test_a_stage_without_a_place_for_the_robot_is_one_line(stages: Path):
    said = stage_refusal(change(stages, 'role = "robot_mount"', 'role = "other"'))
    assert said.endswith(
        "the stage has no mount for the robot; give one Xform the customData nimbus:role = robot_mount"
    )


@pytest.mark.parametrize("content", ["", "not a stage", '#usda 1.0\ndef Xform "World" {'])
def test_a_file_that_is_no_stage_is_one_line(content: str, tmp_path: Path):
    path = tmp_path / "broken.usda"
    path.write_text(content)
    stage_refusal(path)


@pytest.mark.parametrize("scene", [{"family": "no"}, {"family": "home", "seed": "x", "look": {}}, {"family": 3}])
def test_a_room_of_a_foreign_layout_is_one_line(scene: dict[str, object]):
    layout = PhysicalLayout(objects=(), drawn={"scene": scene})
    assert "needs a room that this version cannot make" in refusal(layout_room, read_stage("tabletop"), layout)
