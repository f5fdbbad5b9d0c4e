"""A scene of others among files of the user: its readers open the files of its format, and none beside these."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.navigate.read.hssd import TABLES
from nimbus.datagen.navigate.read.open_scene import further_files, open_scene
from tests.support.foreign_scenes import write_hssd
from tests.support.refusals import refusal

CLASSES = {"chair", "dining_table"}
PRIVATE = "id,main_category\na1b2c3,secret project\nbeef01,secret project\n"


def goal_classes(path: Path) -> set[str]:
    return {part.object_class for part in open_scene(path).goals}


@pytest.mark.parametrize("name", ["metadata/budget.csv", "semantics/budget.csv"])
def test_tables_of_the_user_are_not_read(tmp_path: Path, name: str):
    """An archive may be unpacked in a folder with ``metadata`` of the user; categories enter names and instructions."""
    path = write_hssd(tmp_path)
    before = further_files(path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(PRIVATE)
    assert goal_classes(path) == CLASSES
    assert further_files(path) == before


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_known_datasets_are_read(tmp_path: Path, name: str):
    path, table = write_hssd(tmp_path), tmp_path / name
    table.parent.mkdir(exist_ok=True)
    (tmp_path / "semantics/objects.csv").rename(table)
    assert goal_classes(path) == CLASSES
    assert table in further_files(path)


def test_the_table_that_is_used_is_hashed(tmp_path: Path):
    path = write_hssd(tmp_path)
    (tmp_path / "metadata").mkdir()
    content = (tmp_path / "semantics/objects.csv").read_text()
    (tmp_path / TABLES[0]).write_text(content.replace("dining table", "desk"))
    (tmp_path / TABLES[1]).write_text(content)
    assert goal_classes(path) == {"chair", "desk"}
    assert {file for file in further_files(path) if file.suffix == ".csv"} == {tmp_path / TABLES[0]}
    (tmp_path / TABLES[0]).write_text("id,price\na1b2c3,7\n")
    assert goal_classes(path) == CLASSES
    assert {file for file in further_files(path) if file.suffix == ".csv"} == {tmp_path / TABLES[1]}


def test_a_table_is_no_link_to_a_table_beside_it(tmp_path: Path):
    path, table = write_hssd(tmp_path), tmp_path / "semantics/objects.csv"
    table.with_name("budget.csv").write_text(PRIVATE)
    table.unlink()
    table.symlink_to("budget.csv")
    for read in (open_scene, further_files):
        assert f"{table}: this is a link" in refusal(read, path)
