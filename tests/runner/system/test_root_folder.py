"""Commands work in the root folder, and still find what the user wrote relative to his own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.files import start_folder
from nimbus.runner.cli import parameters, parse_command
from nimbus.runner.system import root_folder
from nimbus.runner.system.output import shorten_paths
from nimbus.runner.system.root_folder import work_in_root
from tests.support.runs import RUNNER

_PRINTS = """
import os
import sys
from pathlib import Path
from nimbus.datagen.errors import InputError
from nimbus.runner import cli
from nimbus.runner.commands import hash
from nimbus.runner.commands.options import Skills
from nimbus.runner.system.output import shown_path

def command(folder: hash.DatasetFolder, *, skills: Skills = None) -> int:
    print(os.getcwd(), folder, shown_path(folder), os.environ.get("PYTHONPATH"))
    if not folder.exists():
        raise InputError("does not exist", where=str(folder))
    return 0

hash.command = command
sys.exit(cli.main())
"""


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", _PRINTS, "hash", *words]
    own = os.environ | {"NIMBUS_CACHE": str(folder / "cache")} | more
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


def test_a_command_works_in_the_root_folder(tmp_path: Path):
    (tmp_path / "data").mkdir()
    done = run(tmp_path, "data", PYTHONPATH=f":modules:{os.environ.get('PYTHONPATH', '')}")
    here, folder, shown, modules = done.stdout.split()
    assert (here, folder, shown) == ("/", str(tmp_path / "data"), "data"), done.stderr
    assert modules.split(os.pathsep)[0] == str(tmp_path / "modules") and "" not in modules.split(os.pathsep)


def test_messages_name_paths_as_the_user_wrote_them(tmp_path: Path):
    done = run(tmp_path, "sub/none")
    assert (done.returncode, done.stderr) == (2, "sub/none: does not exist\n")


def test_addresses_in_messages_stay_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(start_folder, "_left", [tmp_path])
    for text in (f"http://127.0.0.1:9{tmp_path}/x", f"s3://bucket{tmp_path}/x", f"file://{tmp_path}/x"):
        assert shorten_paths(text) == text
    for before in ("", "a ", "'", "--out=", "replay:", "("):
        assert shorten_paths(f"{before}{tmp_path}/x") == f"{before}x"


def test_the_disk_is_examined_where_the_user_is(tmp_path: Path):
    """Outputs are made there; the root folder is another disk, in which most users cannot write."""
    words = [sys.executable, "-P", str(RUNNER), "doctor", "--machine", "--json"]
    own = os.environ | {"NIMBUS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(words, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    (disk,) = (part for part in json.loads(done.stdout)["parts"] if part["name"] == "disk")
    assert disk["detail"].endswith(f"GB free in {tmp_path}"), disk


def test_code_of_the_user_runs_where_he_started_it(tmp_path: Path):
    (tmp_path / "data").mkdir()
    done = run(tmp_path, "data", "--skills", "mine")
    assert done.stdout.split()[:2] == [str(tmp_path), "data"], done.stderr


HERE = "HERE"


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("verify d", {"folder": f"{HERE}/d"}),
        ("hash s3://bucket/d", {}),
        ("merge a b --out c", {"parts": [f"{HERE}/a", f"{HERE}/b"], "out": f"{HERE}/c"}),
        ("mirror d s3://bucket/d", {"source": f"{HERE}/d"}),
        ("view d --sheet", {"folder": f"{HERE}/d"}),
        ("view d --sheet s.png", {"folder": f"{HERE}/d", "sheet": f"{HERE}/s.png"}),
        ("run --task sort_trash --out d", {"out": f"{HERE}/d"}),
        ("run --task sort_trash --out s3://bucket/d", {}),
        ("run --task mine.yaml", {"task": f"{HERE}/mine.yaml"}),
        ("run --task tasks", {"task": f"{HERE}/tasks"}),
        ("run --job night.yaml", {"job": f"{HERE}/night.yaml"}),
        ("run --task sort_trash --robot mine.yaml", {"robot": f"{HERE}/mine.yaml"}),
        ("replay d --task mine.yaml", {"folder": f"{HERE}/d", "task": f"{HERE}/mine.yaml"}),
        ("export-usd --episode d an-id", {"episode": f"({HERE}/d, an-id)"}),
        ("lineage d an-id", {"folder": f"{HERE}/d"}),
        ("evaluate sort_trash --policy replay:d", {"policy": f"replay:{HERE}/d"}),
        ("evaluate sort_trash --policy openpi:host:80 --map m.yaml", {"name_map": f"{HERE}/m.yaml"}),
        ("evaluate sort_trash --policy demonstrator --layouts train:d", {"layouts": f"train:{HERE}/d"}),
        ("evaluate sort_trash --policy trained", {"policy": f"{HERE}/trained"}),
        ("evaluate --compare a b", {"compare": f"({HERE}/a, {HERE}/b)"}),
        ("objects trash", {}),
        ("objects meshes/", {"library_name": f"{HERE}/meshes/"}),
        ("robot check mine.yaml", {"file": f"{HERE}/mine.yaml"}),
        ("assets import a --out b", {"paths": [f"{HERE}/a"], "out": f"{HERE}/b"}),
        ("reword d --out e --model http://127.0.0.1:1", {"folder": f"{HERE}/d", "out": f"{HERE}/e"}),
        ("propose --out e --library l.yaml", {"out": f"{HERE}/e", "libraries": [f"{HERE}/l.yaml"]}),
    ],
)
def test_paths_of_the_user_begin_where_he_started(tmp_path: Path, monkeypatch, line: str, changed: dict[str, object]):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(root_folder, "leave_start_folder", lambda: None)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "trained").mkdir()
    (tmp_path / "sort_trash").mkdir()  # a name of Nimbus stays a name
    (tmp_path / "trash").mkdir()
    words = line.split()
    context = parse_command(words)
    assert context
    found = work_in_root(words[0], parameters(context))
    shown = {name: _plain(value).replace(str(tmp_path), HERE) for name, value in found.items()}
    assert shown == {name: _plain(value) for name, value in changed.items()}


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        inner = ", ".join(map(_plain, value))
        return f"({inner})"
    return str(value)


@pytest.mark.parametrize(
    "line",
    [
        "verify d --skills mine",
        "evaluate sort_trash --policy mine.py:make",
        "studio sort_trash",
    ],
)
def test_code_of_the_user_keeps_its_folder(tmp_path: Path, monkeypatch, line: str):
    def leave() -> None:
        raise AssertionError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(root_folder, "leave_start_folder", leave)
    words = line.split()
    context = parse_command(words)
    assert context and work_in_root(words[0], parameters(context)) == {}
