"""The editor's process: it is replaced if it dies, and a failed start is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.desks import TASK
from tests.support.started_extension import Started


def test_an_editor_that_dies_is_followed_by_another_with_the_same_text(opened: Started):
    opened.edit("StringField", "rate", "30")
    opened.channel.dead = "the editor ended: Killed"
    opened.look()
    opened.look()
    assert len(opened.channels) == 2 and opened.channels[0].closed == 1
    assert opened.text == TASK + "rate: 30\n"
    assert "Killed" in opened.label("problem")


def test_an_editor_that_dies_does_not_open_a_file_of_others(started: Started, tmp_path: Path):
    """A file in the current folder with the name of the open task may be of others."""
    started.press("open")
    (tmp_path / "sort_trash.yaml").write_text(TASK)
    shown = started.text
    started.channel.dead = "the editor ended: Killed"
    started.look()
    started.look()
    assert len(started.channels) == 2
    assert started.text == shown != TASK
    assert started.channel.editor.state()["source"] == "sort_trash"


def test_an_editor_that_cannot_be_started_is_one_line(started: Started, monkeypatch: pytest.MonkeyPatch):
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.kit import extension

    def missing(*_: Any) -> Any:
        raise InputError("no Python with Nimbus's dependencies was found", instead="make one")

    monkeypatch.setattr(extension, "ProcessChannel", missing)
    started.press("open")
    assert started.label("problem") == "no Python with Nimbus's dependencies was found; make one"
