"""The extension in a Kit that is played by the contract: what is not in the contract raises."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from contract.kit_behaviour import Kit
from contract.names import Contract
from contract.standin import StandIn

MENU = "Tools/Replicator/Nimbus"
UPDATE = "omni.kit.app:GLOBAL_EVENT_UPDATE"
SUMMARY = {
    **{"name": "sort_trash", "robot": "panda", "scene": "tabletop", "randomized": ["light"]},
    **{"objects": ["items: 2 to 4 of trash"], "cameras": ["front: 320 x 240"]},
}


class Job:
    """A process that ends when the test says so."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.code, self.text, self.cancelled = list(words), None, "", 0

    def poll(self) -> int | None:
        return self.code

    def output(self) -> str:
        return self.text

    def cancel(self) -> None:
        self.cancelled += 1

    def end(self, code: int, text: str = "") -> None:
        self.code, self.text = code, text


class Jobs(list[Job]):
    """Remembers what was started."""

    def start(self, words: Sequence[str]) -> Job:
        self.append(Job(words))
        return self[-1]


@pytest.fixture
def kit() -> Iterator[Kit]:
    kit = Kit()
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(kit.behaviour(standin.make))
    kit.settings |= {"/exts/nimbus.datagen/task": "sort_trash", "/exts/nimbus.datagen/poll_period": 0.0}
    with standin.installed():
        yield kit


@pytest.fixture
def started(kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Any, Kit, Jobs]]:
    """The extension, started, its window open; processes are the test's."""
    from nimbus.datagen.kit import NimbusExtension, extension

    jobs = Jobs()
    monkeypatch.setattr(extension, "ProcessLauncher", lambda *_, **__: jobs)
    monkeypatch.chdir(tmp_path)
    started = NimbusExtension()
    started.on_startup("nimbus.datagen-0.1.0")
    kit.show(MENU)
    yield started, kit, jobs
    if kit.menus:
        started.on_shutdown()


def checked(kit: Kit, jobs: Jobs) -> None:
    """Press what checks the task, and let the check end well."""
    kit.press("check")
    jobs[-1].end(0, json.dumps(SUMMARY))
    kit.dispatch(UPDATE)


def test_starting_adds_one_menu_entry_and_opens_nothing(kit: Kit):
    from nimbus.datagen.kit import NimbusExtension

    extension = NimbusExtension()
    extension.on_startup("nimbus.datagen-0.1.0")
    assert (list(kit.menus), kit.windows, kit.stage, len(kit.observers)) == ([MENU], [], "", 1)
    extension.on_shutdown()
    assert (kit.menus, len(kit.observers)) == ({}, 0)


def test_the_window_is_dockable_and_begins_with_what_can_be_done(started: tuple[Any, Kit, Jobs]):
    _, kit, _ = started
    able = {name: kit.find("Button", name).enabled for name in ("check", "sample", "run", "cancel", "report")}
    assert able == {"check": True, "sample": False, "run": False, "cancel": False, "report": True}


def test_open_and_check_shows_what_is_in_the_task(started: tuple[Any, Kit, Jobs]):
    _, kit, jobs = started
    kit.edit("StringField", "task", "mine.yaml")
    checked(kit, jobs)
    assert jobs[-1].words == ["check", "mine.yaml"]
    assert "camera front: 320 x 240" in kit.find("Label", "summary").text
    assert kit.find("Button", "run").enabled


def test_a_task_that_is_wrong_says_so_in_one_line(started: tuple[Any, Kit, Jobs]):
    _, kit, jobs = started
    kit.press("check")
    jobs[-1].end(2, json.dumps({"problem": "mine.yaml:3: robot: unknown robot 'panada'"}))
    kit.dispatch(UPDATE)
    assert kit.find("Label", "problem").text == "mine.yaml:3: robot: unknown robot 'panada'"
    assert not kit.find("Button", "run").enabled


def test_show_the_next_layout_opens_its_stage(started: tuple[Any, Kit, Jobs]):
    _, kit, jobs = started
    checked(kit, jobs)
    kit.edit("IntDrag", "seed", 7)
    shown = []
    for _ in range(2):
        kit.press("sample")
        jobs[-1].end(0)
        kit.dispatch(UPDATE)
        shown.append(kit.stage)
    assert jobs[-1].words[:6] == ["export-usd", "sort_trash", "--seed", "7", "--index", "1"]
    assert [Path(stage).name for stage in shown] == ["sort_trash-s7-000000.usda", "sort_trash-s7-000001.usda"]


def test_unsaved_changes_of_the_open_stage_are_not_lost(started: tuple[Any, Kit, Jobs]):
    _, kit, jobs = started
    checked(kit, jobs)
    kit.has_pending_edit = True
    kit.press("sample")
    jobs[-1].end(0)
    kit.dispatch(UPDATE)
    assert kit.stage == ""
    assert "not saved" in kit.find("Label", "problem").text


def test_run_starts_a_process_and_shows_its_progress(started: tuple[Any, Kit, Jobs], tmp_path: Path):
    _, kit, jobs = started
    checked(kit, jobs)
    kit.edit("IntDrag", "episodes", 40)
    kit.edit("StringField", "folder", str(tmp_path / "made"))
    kit.press("run")
    words = ["run", "--task", "sort_trash", "--seed", "0", "--episodes", "40", "--out", str(tmp_path / "made")]
    assert jobs[-1].words == words
    (tmp_path / "made").mkdir()
    status = {"state": "running", "target": 40, "settled": 10, "stored": 9, "failures": {"no_path": 3}}
    (tmp_path / "made/status.json").write_text(json.dumps(status))
    kit.dispatch(UPDATE)
    assert kit.find("Label", "progress").text == "running, 10 of 40 episodes, 9 stored, 3 failed attempts"
    bar = next(widget for widget in kit.widgets if type(widget).__name__ == "ProgressBar")
    assert bar.model.get_value_as_float() == 0.25


def test_cancel_asks_the_run_to_stop(started: tuple[Any, Kit, Jobs]):
    _, kit, jobs = started
    checked(kit, jobs)
    kit.press("run")
    kit.press("cancel")
    assert jobs[-1].cancelled == 1
    assert "stopping" in kit.find("Label", "progress").text
    jobs[-1].end(130)
    kit.dispatch(UPDATE)
    assert kit.find("Label", "problem").text == "stopped"
    assert kit.find("Button", "run").enabled


def test_open_report_opens_the_page_of_the_run(started: tuple[Any, Kit, Jobs], monkeypatch: pytest.MonkeyPatch):
    _, kit, _ = started
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    kit.press("report")
    assert "no report yet" in kit.find("Label", "problem").text
    page = Path("out/sort_trash/report.html")
    page.parent.mkdir(parents=True)
    page.touch()
    kit.press("report")
    assert opened == [page.absolute().as_uri()]


def test_shutting_down_leaves_nothing(started: tuple[Any, Kit, Jobs]):
    extension, kit, jobs = started
    checked(kit, jobs)
    kit.press("run")
    window, panel = weakref.ref(kit.windows[0]), extension._panel
    extension.on_shutdown()
    kit.widgets.clear()
    gc.collect()
    assert (kit.menus, kit.windows, len(kit.observers), len(kit.edits)) == ({}, [], 0, 0)
    assert window() is None
    assert panel._observers == []
    assert jobs[-1].cancelled == 0, "a run goes on"
    assert kit.settings["/persistent/exts/nimbus.datagen/task"] == "sort_trash"


def test_a_hot_reload_starts_afresh_with_the_task_of_before(started: tuple[Any, Kit, Jobs]):
    extension, kit, _ = started
    kit.edit("StringField", "task", "other")
    extension.on_shutdown()
    extension.on_startup("nimbus.datagen-0.1.0")
    kit.show(MENU)
    assert kit.find("StringField", "task").model.get_value_as_string() == "other"
    assert (list(kit.menus), len(kit.observers)) == ([MENU], 1)


def test_every_control_is_pressed_by_a_test_of_this_file(started: tuple[Any, Kit, Jobs]):
    _, kit, _ = started
    text = Path(__file__).read_text()
    for widget in kit.widgets:
        if type(widget).__name__ in ("Button", "StringField", "IntDrag"):
            kind, verb = type(widget).__name__, "press" if type(widget).__name__ == "Button" else "edit"
            names = [name for name in widget.played_names if name]
            asked = [f'kit.{verb}("{name}")' if verb == "press" else f'kit.edit("{kind}", "{name}"' for name in names]
            assert any(ask in text for ask in asked), names


def test_names_that_kit_does_not_have_raise_in_the_stand_in(kit: Kit):
    import omni.ui as ui  # pyright: ignore[reportMissingImports]
    import omni.usd  # pyright: ignore[reportMissingImports]

    with pytest.raises(AttributeError, match="contract"):
        ui.Buton  # noqa: B018
    with pytest.raises(AttributeError, match="contract"):
        omni.usd.get_context().get_stag()
    with pytest.raises(AttributeError, match="contract"):
        ui.Label("a").txt = "b"
    with pytest.raises(TypeError, match="colour"):
        ui.Label("a", colour="red")
    with pytest.raises(ModuleNotFoundError):
        import omni.isaac.core  # noqa: F401  # pyright: ignore[reportMissingImports]
    with pytest.raises(NotImplementedError):
        omni.usd.get_context().close_stage()
