"""The task's file in Kit's window: saved, and errors shown at their fields."""

from __future__ import annotations

from pathlib import Path

from tests.support.desks import TASK
from tests.support.started_extension import Started


def test_change_is_undone_redone_and_saved(opened: Started, tmp_path: Path):
    opened.edit("StringField", "rate", "30")
    assert "There are unsaved changes." in opened.label("status")
    opened.press("changes Undo")
    assert opened.text == TASK
    opened.press("changes Redo")
    opened.press("disk Save")
    assert (tmp_path / "mine.yaml").read_text() == TASK + "rate: 30\n"
    assert "All changes are saved." in opened.label("status")


def test_save_as_continues_with_the_other_file(opened: Started, tmp_path: Path):
    opened.edit("StringField", "file", str(tmp_path / "other.yaml"))
    opened.press("disk Save as")
    assert (tmp_path / "other.yaml").read_text() == TASK
    assert opened.field("file") == str(tmp_path / "other.yaml")
    opened.press("disk Save as")
    assert "this file is open already" in opened.label("message")


def test_error_stands_at_its_field(opened: Started):
    opened.edit("StringField", "regions.start.size", "[0.1, -1]")
    assert "regions.start.size" in opened.label("status problem")
    assert "regions.start.size" in opened.label("regions.start.size problem")
    opened.edit("StringField", "regions.start.size", "[0.1")
    assert opened.label("message")
