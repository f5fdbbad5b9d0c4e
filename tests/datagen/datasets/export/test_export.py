"""Laws of every format: an export is complete or absent, has equal bytes, and changes no foreign folder."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.errors import InputError
from nimbus.runner.cli import main
from tests.support.export_formats import MANIPULATION_FORMATS
from tests.support.reading import tree
from tests.support.runs import run, tiny_dataset
from tests.support.small_disks import small_disk
from tests.support.synthetic import failure, make_rendered, write_dataset


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "data"
    write_dataset(folder)
    return folder


@pytest.mark.parametrize("to", MANIPULATION_FORMATS)
def test_again_makes_nothing_and_elsewhere_the_same_bytes(data: Path, tmp_path: Path, to: str):
    assert export(data, tmp_path / "a", to=to).is_new
    before = tree(tmp_path / "a")
    assert not export(data, tmp_path / "a", to=to).is_new
    time.sleep(1.1)  # HDF5 would store seconds
    export(data, tmp_path / "b", to=to)
    assert before == tree(tmp_path / "a") == tree(tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("to", MANIPULATION_FORMATS)
def test_a_damaged_export_is_made_again(data: Path, tmp_path: Path, to: str):
    export(data, tmp_path / "out", to=to)
    before = tree(tmp_path / "out")
    victim = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.name != "nimbus.json")[0]
    victim.write_bytes(victim.read_bytes()[:-1])
    assert export(data, tmp_path / "out", to=to).is_new
    assert tree(tmp_path / "out") == before


def test_more_episodes_replace_the_older_export(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0)])
    assert export(tmp_path / "data", tmp_path / "out").episode_count == 1
    write_dataset(tmp_path / "data", [make_rendered(1)])
    assert export(tmp_path / "data", tmp_path / "out").episode_count == 2
    export(tmp_path / "data", tmp_path / "fresh")
    assert tree(tmp_path / "out") == tree(tmp_path / "fresh")


def test_a_folder_of_somebody_else_is_refused(data: Path, tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(
        InputError,
        match="contains 'thesis.txt' but no nimbus.json, so it is not an export of Nimbus; choose another --out",
    ):
        export(data, tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="this is a file"):
        export(data, tmp_path / "file")
    with pytest.raises(InputError, match="not an export"):
        export(data, data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


def test_a_strangers_file_in_an_export_is_not_thrown_away(data: Path, tmp_path: Path):
    export(data, tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert not export(data, tmp_path / "out").is_new
    with pytest.raises(InputError, match=r"contains 'notes.txt', which Nimbus did not write; choose another --out"):
        export(data, tmp_path / "out", options=Options(episode_size=1))
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_an_export_of_another_kind_is_not_replaced(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="shards")
    before = tree(tmp_path / "out")
    with pytest.raises(InputError, match="contains an export to shards; choose another --out"):
        export(data, tmp_path / "out", to="lerobot")
    assert tree(tmp_path / "out") == before


def test_an_export_into_a_folder_of_the_run_is_refused(data: Path):
    with pytest.raises(InputError, match="the output is in a folder of the dataset"):
        export(data, data / "episodes" / "out")


def test_both_versions_of_lerobot_say_which_variant_an_episode_is(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="lerobot-v2.1")
    rows = [json.loads(line) for line in (tmp_path / "out/meta/episodes.jsonl").read_text().splitlines()]
    assert all({"index_in_run", "variant", "attempt"} <= row.keys() for row in rows)


def test_what_cannot_be_exported_is_said_in_one_line(tmp_path: Path):
    with pytest.raises(InputError, match="there is no dataset here"):
        export(tmp_path, tmp_path / "out")
    write_dataset(tmp_path / "failed", [make_rendered(0, outcome=failure())])
    with pytest.raises(InputError, match="the dataset has no episode"):
        export(tmp_path / "failed", tmp_path / "out")
    write_dataset(tmp_path / "gone")
    next((tmp_path / "gone" / "episodes").iterdir()).unlink()
    with pytest.raises(InputError, match="is missing, or its size differs from the ledger"):
        export(tmp_path / "gone", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_episode_publishes_nothing(tmp_path: Path, workers: int):
    write_dataset(tmp_path / "data")
    path = sorted((tmp_path / "data" / "episodes").iterdir())[1]
    with h5py.File(path, "r+") as file:
        file["observations/qpos"][3, 1] = np.nan  # pyright: ignore[reportIndexIssue]
    with pytest.raises(InputError, match="state contains numbers that are not finite; run 'nimbus verify' for details"):
        export(tmp_path / "data", tmp_path / "out", workers=workers)
    assert not (tmp_path / "out").exists()


def test_times_off_the_grid_are_refused(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0)])
    with h5py.File(next((tmp_path / "data" / "episodes").iterdir()), "r+") as file:
        file["time"][7] += 0.01  # pyright: ignore[reportIndexIssue, reportOperatorIssue]
    with pytest.raises(InputError, match="a time is not a multiple of 1/15 s"):
        export(tmp_path / "data", tmp_path / "out")


def test_what_was_prepared_before_a_kill_is_not_prepared_again(data: Path, tmp_path: Path):
    told: list[int] = []

    class Killed(BaseException):
        pass

    def die(left: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        export(data, tmp_path / "out", workers=1, tell=die)
    export(data, tmp_path / "out", workers=1, tell=told.append)
    assert told == [0]


def test_two_exports_into_one_folder_do_not_meet(data: Path, tmp_path: Path):
    def second(left: int) -> None:
        with pytest.raises(InputError, match="another run writes into this folder"):
            export(data, tmp_path / "out", workers=1)

    assert export(data, tmp_path / "out", workers=1, tell=second).is_new


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 64 kB."""
    with small_disk(tmp_path / "small", "64k") as folder:
        yield folder


@pytest.mark.skipif(not shutil.which("mount"), reason="no command mounts a small disk")
@pytest.mark.parametrize("to", MANIPULATION_FORMATS)
def test_a_full_disk_is_one_line_and_publishes_nothing(
    disk: Path, tmp_path: Path, to: str, capsys: pytest.CaptureFixture[str]
):
    write_dataset(tmp_path / "data", [make_rendered(0, width=160, height=120)])
    assert main(["export", str(tmp_path / "data"), "--to", to, "--out", str(disk / "out")]) == 1
    error = capsys.readouterr().err
    assert "No space left on device" in error and error.count("\n") == 1, error
    assert not (disk / "out").exists()


def test_a_real_run_is_exported_by_the_command(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    data = tiny_dataset(tmp_path_factory)
    capsys.readouterr()
    assert main(["export", str(data), "--to", "lerobot", "--out", str(tmp_path / "out")]) == 0
    assert "episodes  4" in capsys.readouterr().out
    assert (tmp_path / "out" / "meta" / "info.json").exists()


@pytest.mark.slow
@pytest.mark.long  # tests/runner/commands/test_images.py has runs with --format
def test_a_run_publishes_at_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run("--episodes", "1", "--format", "aloha", out=tmp_path / "data") == 0
    assert f"export: {tmp_path / 'data' / 'aloha'}" in capsys.readouterr().out
    assert (tmp_path / "data" / "aloha" / "episode_0.hdf5").exists()
    assert main(["verify", str(tmp_path / "data")]) == 0
    assert run("--episodes", "2", "--format", "aloha", out=tmp_path / "data") == 0
    assert (tmp_path / "data" / "aloha" / "episode_1.hdf5").exists()
