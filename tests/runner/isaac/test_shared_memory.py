"""Only the shared memory of a killed instance is removed, tested with real files and processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.ui.runs.launch import environment
from nimbus.runner.isaac.shared_memory import note_shared_memory, remove_shared_memory

_LIVE = """
import mmap, pathlib, sys
from nimbus.runner.isaac.shared_memory import note_shared_memory
root, folder, *names = sys.argv[1:]
held = []
for name in names:
    file = open(pathlib.Path(folder, name), "a+b")
    file.truncate(4096)
    held.append(mmap.mmap(file.fileno(), 4096))
note_shared_memory(pathlib.Path(root), folder=pathlib.Path(folder))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shm").mkdir()
    return tmp_path / "shm"


def instance(root: Path, folder: Path, *names: str) -> subprocess.Popen[str]:
    """Start a process that maps files like an instance, and records them."""
    root.mkdir(exist_ok=True)
    words = [sys.executable, "-c", _LIVE, str(root), str(folder), *names]
    process = subprocess.Popen(
        words, env=environment(os.environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_what_a_killed_instance_left_is_removed_and_what_others_use_or_made_stays(tmp_path: Path, folder: Path):
    dead = instance(tmp_path / "dead", folder, "carb-a", "carb-shared", "carb-replaced", "other-library")
    alive = instance(tmp_path / "alive", folder, "carb-alive", "carb-shared")
    (folder / "carb-stranger").touch()
    assert remove_shared_memory(tmp_path / "alive", folder=folder) == [], "it lives"
    kill(dead)
    (folder / "carb-replaced").unlink()
    (folder / "carb-new").touch()
    (folder / "carb-new").rename(folder / "carb-replaced")
    try:
        assert remove_shared_memory(tmp_path / "dead", folder=folder) == ["carb-a"]
        left = {path.name for path in folder.iterdir()}
        assert left == {"carb-alive", "carb-shared", "carb-replaced", "carb-stranger", "other-library"}
        assert remove_shared_memory(tmp_path / "dead", folder=folder) == []
    finally:
        kill(alive)


def test_a_record_that_is_gone_or_broken_removes_nothing(tmp_path: Path, folder: Path):
    (folder / "carb-a").touch()
    assert remove_shared_memory(tmp_path, folder=folder) == []
    inode = os.stat(folder / "carb-a").st_ino
    for text in ("", "{", "[1]", f'[["../carb-a", {inode}, 1]]', '[["carb-a", 1, 1]]'):
        (tmp_path / "shared_memory.json").write_text(text)
        assert remove_shared_memory(tmp_path, folder=folder) == []
    assert (folder / "carb-a").exists()


def test_a_process_without_such_memory_notes_nothing(tmp_path: Path, folder: Path):
    note_shared_memory(tmp_path, folder=folder)
    assert (tmp_path / "shared_memory.json").read_text() == "[]"
