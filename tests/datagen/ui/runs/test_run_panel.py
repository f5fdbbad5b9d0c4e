"""The panel without a toolkit: its processes, and its modules that load in a Python without Nimbus's dependencies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files import installation
from nimbus.datagen.ui.document.allowed_folders import AllowedFolders
from nimbus.datagen.ui.runs import launch
from nimbus.datagen.ui.runs.launch import Process, ProcessLauncher, environment, find_interpreter
from nimbus.datagen.ui.runs.run_panel import RunPanel, read_run_status

DEPENDENCIES = (
    *("newton", "mujoco", "warp", "usdex", "pxr", "ompl", "mink", "toppra", "ruckig", "pydantic", "yaml", "scipy"),
    *("h5py", "av", "PIL", "rich", "platformdirs", "trimesh", "coacd"),
)
BLOCKER = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {DEPENDENCIES!r}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocker())
"""
LOADED_IN_KIT = (
    "errors",
    "episode.layout",
    "episode.trajectory",
    "episode.observation",
    "ui.runs.launch",
    "ui.runs.run_panel",
    "ui",
)


def ended(process: Process, *, within: float = 60.0) -> int:
    deadline = time.monotonic() + within
    while (code := process.poll()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return code


def test_the_panel_loads_without_any_of_our_dependencies():
    names = ", ".join(f"nimbus.datagen.{name}" for name in LOADED_IN_KIT)
    command = [sys.executable, "-c", BLOCKER + f"import {names}"]
    done = subprocess.run(command, env=environment(os.environ), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_runs_as_a_process_of_its_own(tmp_path: Path):
    process = ProcessLauncher(tmp_path, interpreter=sys.executable).start(["tasks"])
    assert ended(process) == 0
    assert "sort_trash" in process.output()


def test_the_hosts_own_environment_does_not_reach_a_process():
    host = {"PYTHONHOME": "/kit", "PYTHONPATH": "/kit", "LD_LIBRARY_PATH": "/kit", "LANG": "C"}
    assert environment(host) == {"LANG": "C", "PYTHONPATH": str(launch.PACKAGE_FOLDER)}


def test_an_interpreter_that_is_not_there_is_one_line():
    with pytest.raises(InputError, match="no such Python interpreter"):
        find_interpreter("/nowhere/python")


def test_no_interpreter_at_all_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(installation, "PACKAGE_FOLDER", tmp_path / "a/b/c")
    monkeypatch.delenv("NIMBUS_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    panel = RunPanel(ProcessLauncher(tmp_path))
    panel.set_task("sort_trash")
    panel.run()
    fix = "in a checkout of Nimbus, type: make .venv/installed; then name its .venv/bin/python in the panel"
    assert panel.problem.endswith(fix)
    assert panel.can_run


def test_only_an_own_environment_of_a_checkout_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    python = tmp_path / ".venv/bin/python"
    for path in (tmp_path / "exts/nimbus.datagen/x", tmp_path / "pyproject.toml", tmp_path / "constraints.txt", python):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(installation, "PACKAGE_FOLDER", tmp_path / "exts/nimbus.datagen")
    monkeypatch.delenv("NIMBUS_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_interpreter() == str(python)
    monkeypatch.setattr(launch, "is_own", lambda path: path != tmp_path / ".venv")
    with pytest.raises(InputError, match=f"type: make -C {tmp_path} .venv/installed; then name its .venv/bin/python"):
        find_interpreter()


def test_a_default_folder_that_leads_elsewhere_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The current folder may be of others, with a link to a dataset of this user."""
    (tmp_path / "foreign/out").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "foreign")
    Path("out/sort_trash").symlink_to(tmp_path / "mine")
    panel = RunPanel(ProcessLauncher(tmp_path), allowed=AllowedFolders([Path()]))
    panel.set_task("sort_trash")
    panel.run()
    assert panel.problem.startswith("out/sort_trash: this is a link") and panel.can_run
    panel.set_task("open_drawer")
    assert panel.out_folder == tmp_path / "foreign/out/open_drawer"


@pytest.fixture
def heard() -> Iterator[None]:
    """Restore the default handling of Ctrl-C, which background jobs ignore, and which their shells cannot trap."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_a_process_that_is_cancelled_hears_of_it_as_of_ctrl_c(tmp_path: Path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\ntrap 'echo stored; exit 130' INT\necho ready\nwhile :; do sleep 0.05; done\n")
    script.chmod(0o755)
    process = ProcessLauncher(tmp_path / "logs", interpreter=str(script)).start(["run"])
    deadline = time.monotonic() + 60
    while "ready" not in process.output():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert os.getpgid(process._process.pid) == process._process.pid
    process.cancel()
    assert ended(process) == 130
    assert "stored" in process.output()


def test_the_status_of_an_earlier_run_is_not_shown(tmp_path: Path):
    (tmp_path / "status.json").write_text('{"state": "done", "target": 3, "settled": 3}')
    status = read_run_status(tmp_path)
    assert status and status.share == 1.0
    assert read_run_status(tmp_path, since=time.time() + 60) is None


@pytest.mark.parametrize("text", ["", "[]", "{", '"a"', '{"target": "x", "failures": 3, "remaining_seconds": "soon"}'])
def test_a_status_that_is_none_shows_nothing(tmp_path: Path, text: str):
    (tmp_path / "status.json").write_text(text)
    status = read_run_status(tmp_path)
    assert status is None or status.share == 0.0
