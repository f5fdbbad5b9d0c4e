"""The task's file: saved, reloaded, started from another, its mistakes told at their fields."""

from __future__ import annotations

from pathlib import Path

from started_extension import TASK, Started

from nimbus.datagen.panel.problem import Problem


def test_save_writes_the_file_and_undo_and_redo_go_back_and_forth(opened: Started, tmp_path: Path):
    opened.edit("StringField", "rate", "30")
    assert opened.said("file").endswith("(not saved)")
    opened.press("undo")
    assert opened.text == TASK
    opened.press("redo")
    opened.press("save")
    assert (tmp_path / "mine.yaml").read_text() == TASK + "rate: 30\n"
    assert opened.said("file") == str(tmp_path / "mine.yaml")


def test_what_others_wrote_is_taken_over_or_saved_over(opened: Started, tmp_path: Path):
    opened.edit("StringField", "rate", "30")
    (tmp_path / "mine.yaml").write_text(TASK.replace("panda", "ur5"))
    opened.press("save")
    assert "written by somebody else" in opened.said("said")
    opened.press("reload")
    assert "robot: ur5" in opened.text
    opened.press("undo")
    opened.press("save over")
    assert (tmp_path / "mine.yaml").read_text() == TASK + "rate: 30\n"


def test_save_as_goes_on_with_another_file(opened: Started, tmp_path: Path):
    opened.edit("StringField", "save as", str(tmp_path / "other.yaml"))
    assert (tmp_path / "other.yaml").read_text() == TASK
    assert opened.said("file") == str(tmp_path / "other.yaml")


def test_a_task_that_comes_with_nimbus_can_be_started_from(opened: Started, tmp_path: Path):
    opened.choose("start from", "stack_blocks")
    assert opened.said("file") == str(tmp_path / "stack_blocks.yaml")
    opened.edit("StringField", "rate", "30")
    opened.choose("start from", "sort_trash")
    assert "not saved" in opened.said("said")


def test_a_mistake_stands_at_its_field(opened: Started):
    opened.edit("StringField", "objects.items.kinds", "[spoon]")
    opened.edit("StringField", "regions.start.size", "[0.1, -1]")
    assert "regions.start.size" in opened.said("problems")
    assert "regions.start.size" in opened.said("regions.start.size problem")
    opened.edit("StringField", "regions.start.size", "[0.1")
    assert opened.said("said")


def test_what_the_doctor_finds_stands_at_its_field(opened: Started):
    opened.channel.sketch.findings = [Problem(field="objects.items.region", what="out of reach")]
    opened.press("examine")
    assert "out of reach" in opened.said("problems")
    assert "out of reach" in opened.said("objects.items.region problem")
