"""Arrows go one way: runner → datagen ← skills; and importing starts nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nimbus.datagen.episode.trajectory import Reason

ROOT = Path(__file__).resolve().parents[2]
DATAGEN = ROOT / "exts/nimbus.datagen/nimbus/datagen"
ROOMS = {"datagen": DATAGEN, "skills": ROOT / "skills", "runner": ROOT / "runner"}
ALLOWED = {"datagen": {"datagen"}, "skills": {"datagen"}, "runner": {"datagen", "runner"}}


def sources(room: str) -> list[Path]:
    found = sorted(ROOMS[room].rglob("*.py"))
    assert found
    return found


def imported(path: Path) -> Iterator[str]:
    """Modules that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "nimbus")


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_what_they_may(room: str):
    for path in sources(room):
        rooms = {name.split(".")[1] for name in imported(path) if name.startswith("nimbus.")}
        assert rooms <= ALLOWED[room], path


def test_skills_do_not_import_each_other():
    for path in sources("skills"):
        assert not [name for name in imported(path) if name.startswith("nimbus.skills")], path


def test_importing_datagen_writes_nothing_and_starts_nothing(tmp_path: Path):
    code = """
import importlib, pathlib, sys, threading
import nimbus.runner.system.threads  # keeps the libraries from starting threads
heavy = {"omni", "carb", "isaacsim", "torch", "pyarrow"}  # newton brings pxr; pyarrow starts a thread
for name in sys.argv[1:]:
    importlib.import_module(name)
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert threading.active_count() == 1, threading.enumerate()
tasks = pathlib.Path("/proc/self/task")  # threads of libraries counted
assert not tasks.exists() or len(list(tasks.iterdir())) == 1
"""
    package = DATAGEN.parents[1]
    names = [".".join(path.relative_to(package).with_suffix("").parts) for path in sources("datagen")]
    # Loaded by Kit, by cuRobo's process, or by commands that fork nobody.
    apart = (".kit", ".curobo.adapter", ".store.export", ".store.training", ".convert", ".filter", ".qa")
    names = [name.removesuffix(".__init__") for name in names if not any(room in name for room in apart)]
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    env = os.environ | {"HOME": str(home), "NIMBUS_CACHE": str(cache), "PYTHONPATH": str(package)}
    env |= {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code, *names], env=env, cwd=home, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["home"]


def test_every_reason_is_given_somewhere():
    given = {
        node.attr
        for room in ROOMS
        for path in sources(room)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }
    inside_the_enum = {"NONE"}
    assert given | inside_the_enum == set(Reason.__members__)
