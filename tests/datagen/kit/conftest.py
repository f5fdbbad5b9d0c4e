"""The extension in a stand-in for Kit, which is made from the contract; names outside the contract raise an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.desks import TASK, LocalChannel, StubLauncher
from tests.support.started_extension import MENU, Started
from tools.contract.kit_behaviour import Kit, played_kit


@pytest.fixture
def kit() -> Iterator[Kit]:
    """Make Kit's modules importable for ``nimbus.datagen.kit``."""
    with played_kit() as kit:
        kit.settings |= {"/exts/nimbus.datagen/task": "sort_trash", "/exts/nimbus.datagen/poll_period": 0.0}
        yield kit


@pytest.fixture
def started(kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Started]:
    from nimbus.datagen.kit import NimbusExtension, extension

    jobs, channels = StubLauncher(), []

    def channel(*_: Any) -> LocalChannel:
        channels.append(LocalChannel(tmp_path))
        return channels[-1]

    monkeypatch.setattr(extension, "ProcessLauncher", lambda *_, **__: jobs)
    monkeypatch.setattr(extension, "ProcessChannel", channel)
    monkeypatch.chdir(tmp_path)
    made = NimbusExtension()
    made.on_startup("nimbus.datagen-0.1.0")
    kit.show(MENU)
    yield Started(made, kit, jobs, channels)
    if kit.menus:
        made.on_shutdown()


@pytest.fixture
def opened(started: Started, tmp_path: Path) -> Started:
    """Return the same with an open task that has one of everything."""
    (tmp_path / "mine.yaml").write_text(TASK)
    started.edit("StringField", "task", str(tmp_path / "mine.yaml"))
    started.press("open")
    assert "No mistake found." in started.label("status")
    return started
