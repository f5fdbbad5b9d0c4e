"""The editor as a real process: it edits and saves, its end is detected, and the process that replaces it gets the
typed values."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.ui.remote.editor_process import EditorConnection, ProcessChannel
from nimbus.datagen.ui.remote.messages import EditorState
from tests.support import ROOT

TINY = ROOT / "tests/support/tiny.yaml"
_PATIENCE = 300.0
"""[s]"""


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[EditorConnection, list[ProcessChannel]]]:
    monkeypatch.chdir(tmp_path)
    channels: list[ProcessChannel] = []

    def start() -> ProcessChannel:
        channels.append(ProcessChannel(sys.executable))
        return channels[-1]

    link = EditorConnection(start)
    yield link, channels
    link.close()
    assert all(channel.process.poll() is not None for channel in channels)


def until(link: EditorConnection, holds: Callable[[EditorState], object]) -> EditorState:
    """Poll repeatedly, as a host does."""
    end = time.monotonic() + _PATIENCE
    while not holds(link.state):
        assert time.monotonic() < end, link.problem or link.state
        link.poll()
        time.sleep(0.02)
    return link.state


@pytest.mark.slow
def test_a_task_is_opened_edited_and_saved_and_an_editor_that_is_killed_loses_nothing(link: Any, tmp_path: Path):
    """A task that does not exist and an invalid request are answered before."""
    link, channels = link
    mine = tmp_path / "mine.yaml"
    mine.write_text(TINY.read_text())
    link.act("open", "nowhere")
    assert "nowhere" in until(link, lambda state: state["message"])["message"]
    channels[0].send("not json")
    assert "invalid request" in until(link, lambda state: "request" in state["message"])["message"]
    link.act("open", str(mine))
    state = until(link, lambda state: state["sections"][1:])
    assert (state["path"], state["problems"]) == (str(mine), [])
    link.act("rate", "30")
    assert "rate: 30" in until(link, lambda state: state["unsaved"])["text"]
    channels[0].process.kill()
    until(link, lambda _: len(channels) == 2)
    assert "the editor ended" in link.problem
    link.act("disk", "Save")
    until(link, lambda state: "rate: 30" in mine.read_text() and not state["unsaved"])


def test_an_editor_that_never_starts_is_not_started_for_ever(tmp_path: Path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such library >&2\nexit 3\n")
    broken.chmod(0o755)
    started: list[ProcessChannel] = []

    def start() -> ProcessChannel:
        started.append(ProcessChannel(str(broken)))
        return started[-1]

    link = EditorConnection(start)
    link.act("open", "sort_trash")
    end = time.monotonic() + _PATIENCE
    while len(started) < 3 or link.poll():
        assert time.monotonic() < end
        link.poll()
        time.sleep(0.01)
    for _ in range(20):
        link.poll()
    assert len(started) == 3
    assert "no such library" in link.problem
    link.close()
