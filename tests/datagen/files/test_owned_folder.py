"""The next process removes folders of killed processes, but never those of running ones."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.owned_folder import OwnedFolder, make_owned, remove_stale

HOLD = """
import sys, time
from pathlib import Path
from nimbus.datagen.files.owned_folder import OwnedFolder
OwnedFolder(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(300)
"""


def age(folder: Path) -> Path:
    """Give a folder an old time stamp."""
    os.utime(folder, (0, 0))
    return folder


def test_folder_of_a_killed_process_is_removed(tmp_path: Path):
    folder = tmp_path / "node"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout and owner.stdout.readline() == "held\n"
        (folder / "cell").mkdir()
        assert remove_stale([age(folder)]) == []
        owner.kill()
        owner.wait()
    assert remove_stale([age(folder)]) == [folder] and not folder.exists()


def test_young_folder_is_kept(tmp_path: Path):
    """The owner of a new folder may be about to lock it."""
    folder = tmp_path / "node"
    folder.mkdir()
    assert remove_stale([folder, tmp_path / "none"]) == [] and folder.exists()


def test_temporary_folder_replaces_the_stale_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "nimbus-test-old").mkdir()
    age(tmp_path / "nimbus-test-old")
    made = make_owned("nimbus-test-")
    assert [path.name for path in tmp_path.iterdir()] == [made.path.name]
    made.remove()
    assert not list(tmp_path.iterdir())


def test_owned_folder_is_refused_to_a_second_owner(tmp_path: Path):
    first = OwnedFolder(tmp_path / "node")
    with pytest.raises(InputError):
        OwnedFolder(tmp_path / "node")
    first.remove()
    OwnedFolder(tmp_path / "node").remove()


def test_dropped_folders_leave_no_descriptor():
    make_owned("nimbus-test-")
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        make_owned("nimbus-test-")
    assert len(os.listdir("/dev/fd")) == before
