"""Kinds of several libraries in one catalogue."""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.propose.catalogue import Catalogue
from nimbus.datagen.robots.robot import load_robot
from tests.support.refusals import refusal


def test_libraries_of_one_name_are_refused(tmp_path: Path):
    paths = [tmp_path / name / "mine.yaml" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes((scene_folder("objects") / "beads.yaml").read_bytes())
    told = refusal(Catalogue, load_robot("panda"), [str(path) for path in paths])
    assert told == f"{paths[1]}: two libraries have the name 'mine'; rename one of them"
