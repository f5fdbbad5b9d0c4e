"""Runs from the window: the process with the selected options, its progress, its end, and its report."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from tests.support.desks import TASK
from tests.support.started_extension import Started


def test_run_starts_a_process_and_shows_its_progress(opened: Started, tmp_path: Path):
    opened.edit("IntDrag", "run seed", 3)
    opened.edit("IntDrag", "episodes", 40)
    opened.edit("StringField", "folder", str(tmp_path / "made"))
    opened.press("run")
    words = ["run", "--task", str(tmp_path / "mine.yaml"), "--seed", "3", "--episodes", "40"]
    assert opened.jobs[-1].words == [*words, "--out", str(tmp_path / "made")]
    (tmp_path / "made").mkdir()
    status = {"state": "running", "target": 40, "settled": 10, "stored": 9, "failures": {"no_path": 3}}
    (tmp_path / "made/status.json").write_text(json.dumps(status))
    opened.look()
    assert opened.label("progress") == "running, 10 of 40 episodes, 9 stored, 3 failed attempts"
    bar = next(widget for widget in opened.kit.widgets if type(widget).__name__ == "ProgressBar")
    assert bar.model.get_value_as_float() == 0.25


def test_a_task_that_is_not_saved_or_wrong_is_not_run(started: Started, tmp_path: Path):
    started.press("run")
    assert "no task is open" in started.label("problem")
    started.edit("StringField", "task", "sort_trash")
    started.press("open")
    started.press("run")
    assert "the task is not saved" in started.label("problem")
    started.press("disk Save")
    started.edit("StringField", "rate", "-3")
    started.press("disk Save")
    started.press("run")
    assert "rate" in started.label("problem")
    assert started.jobs == []


def test_a_file_of_others_with_the_name_of_the_task_is_not_run(started: Started, tmp_path: Path):
    (tmp_path / "sort_trash.yaml").write_text(TASK)
    started.edit("StringField", "task", "sort_trash")
    started.press("open")
    started.press("run")
    assert "the task is not saved" in started.label("problem")
    assert started.jobs == []
    started.press("changes Overwrite")
    started.press("run")
    assert started.jobs[-1].words[:3] == ["run", "--task", str(tmp_path / "sort_trash.yaml")]


def test_cancel_asks_the_run_to_stop(opened: Started):
    opened.press("run")
    opened.press("cancel")
    assert opened.jobs[-1].cancelled == 1
    assert "stopping" in opened.label("progress")
    opened.jobs[-1].end(130)
    opened.look()
    assert opened.label("problem") == "stopped"
    assert opened.kit.find("Button", "run").enabled


def test_open_report_opens_the_page_of_the_run(opened: Started, monkeypatch: pytest.MonkeyPatch):
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    opened.press("report")
    assert "no report yet" in opened.label("problem")
    opened.press("run")
    page = Path("out/mine/report.html")
    page.parent.mkdir(parents=True)
    page.write_text("<p>all is well</p>")
    opened.press("report")
    (address,) = shown
    text = Path(url2pathname(urlsplit(address).path)).read_text()
    assert 'sandbox=""' in text and "default-src" in text  # the dataset may come from others
    assert "&lt;p&gt;all is well&lt;/p&gt;" in text
