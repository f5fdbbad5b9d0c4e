"""The extension starts nothing by itself, and leaves nothing when it is shut down."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from tests.support.started_extension import MENU, Started
from tools.contract.kit_behaviour import Kit


def test_starting_adds_one_menu_entry_and_opens_nothing(kit: Kit):
    from nimbus.datagen.kit import NimbusExtension

    extension = NimbusExtension()
    extension.on_startup("nimbus.datagen-0.1.0")
    assert (list(kit.menus), kit.windows, kit.stage, len(kit.observers)) == ([MENU], [], "", 1)
    extension.on_shutdown()
    assert (kit.menus, len(kit.observers)) == ({}, 0)


def test_nothing_is_started_before_somebody_asks(started: Started):
    assert (started.channels, started.jobs) == ([], [])
    assert started.kit.find("StringField", "task").model.get_value_as_string() == "sort_trash"


def test_shutting_down_leaves_nothing(opened: Started):
    opened.press("run")
    kit, extension = opened.kit, opened.extension
    window, panel = weakref.ref(kit.windows[0]), extension._panel
    extension.on_shutdown()
    kit.widgets.clear()
    gc.collect()
    assert (kit.menus, kit.windows, len(kit.observers), len(kit.edits)) == ({}, [], 0, 0)
    assert window() is None
    assert panel._observers == [] and panel.runs._observers == []
    assert opened.channel.closed == 1
    assert opened.jobs[-1].cancelled == 0, "a run goes on"
    assert kit.settings["/persistent/exts/nimbus.datagen/task"].endswith("mine.yaml")


def test_a_hot_reload_starts_afresh_with_the_task_of_before(started: Started):
    started.edit("StringField", "task", "other")
    started.extension.on_shutdown()
    started.extension.on_startup("nimbus.datagen-0.1.0")
    started.kit.show(MENU)
    assert started.kit.find("StringField", "task").model.get_value_as_string() == "other"
    assert (list(started.kit.menus), len(started.kit.observers)) == ([MENU], 1)


def test_logs_lie_in_a_new_folder_of_our_own(kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Another user could have made a folder with a known name, with links in it."""
    from nimbus.datagen.kit import NimbusExtension, extension

    folders: dict[Path, int] = {}
    monkeypatch.setattr(
        extension, "ProcessLauncher", lambda folder, **_: folders.setdefault(folder, folder.stat().st_mode)
    )
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for _ in range(2):
        made = NimbusExtension()
        made.on_startup("nimbus.datagen-0.1.0")
        made.on_shutdown()
    assert [mode & 0o777 for mode in folders.values()] == [0o700, 0o700]


def test_an_unused_log_folder_is_removed(kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from nimbus.datagen.kit import NimbusExtension

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    extension = NimbusExtension()
    extension.on_startup("nimbus.datagen-0.1.0")
    assert len(list(tmp_path.iterdir())) == 1
    extension.on_shutdown()
    assert list(tmp_path.iterdir()) == []
