"""Ends of runs that are stopped, refused, or have no disk space; the next run continues."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.runner.cell.transport.spec import CellSpec
from tests.support.cells import Run, count, finish, finish_here, leaves_nothing, make_spec, refused_here, sound, tagged
from tests.support.described import describe
from tests.support.small_disks import small_disk

EPISODES = 8
LONG = {f"view {index} 0": "nap x1" for index in range(2, EPISODES)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGTERM, signal.SIGHUP))]
)
def test_one_signal_lets_what_is_under_way_end(number: int, undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps=LONG)
    run = Run(spec, until="view 2 0")
    run.process.send_signal(number)
    run.end(130)
    stored = len(list((run.folder / "episodes").iterdir()))
    assert stored == len(count(spec, "render")) < EPISODES, "what was being rendered is stored, and nothing new begun"
    assert count(spec, "render")["render 2"] == 1
    assert finish(make_spec(tmp_path / "data")) == undisturbed
    status = run.status()
    assert status and status.state == "done"


def test_a_signal_that_everybody_gets_lets_what_is_under_way_end_as_well(tmp_path: Path):
    """A service manager ends a service with this signal."""
    spec = make_spec(tmp_path / "data", mishaps=LONG)
    run = Run(spec, until="view 2 0")
    for pid in (*run.processes(), run.process.pid):
        with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
            os.kill(pid, signal.SIGTERM)
    run.end(130)
    assert len(list((run.folder / "episodes").iterdir())) == len(count(spec, "render"))
    assert count(spec, "render")["render 2"] == 1
    assert run.faults() == []


@pytest.mark.slow
def test_a_reader_that_goes_away_lets_what_is_under_way_end(undisturbed: dict[str, str], tmp_path: Path):
    """``nimbus run | head`` has this effect."""
    spec = make_spec(tmp_path / "data", mishaps=LONG)
    run = Run(spec, until="view 2 0")
    assert run.process.stdout
    run.process.stdout.close()
    assert run.process.wait(60.0) == 130
    assert run.process.stderr and run.process.stderr.read().count("\n") == 1
    run.process.stderr.close()
    leaves_nothing(spec)
    assert finish_here(make_spec(tmp_path / "data")) == undisturbed


@pytest.mark.slow
def test_a_full_disk_under_the_log_does_not_end_a_run(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data")
    done = Run(spec, prefix=("sh", "-c", 'exec "$@" > /dev/full', "sh")).end(0)
    assert done.err == ""
    assert sound(spec) == undisturbed


def test_two_signals_stop_at_once(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "lock"}, grace=1000.0, deadlines={"render": (1000, 1000)})
    run = Run(spec, until="view 2 0")
    run.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGINT)
    assert run.end().code == 130
    assert not tagged(spec)
    assert finish_here(make_spec(tmp_path / "data")) == undisturbed


def test_a_signal_is_not_kept_waiting_by_what_hangs(tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "lock"}, grace=0.5, deadlines={"render": (1000, 1000)})
    run = Run(spec, until="view 2 0")
    run.process.send_signal(signal.SIGINT)
    run.end(130)
    assert run.faults() == []


def test_a_signal_while_loading_ends_the_run(tmp_path: Path):
    run = Run(make_spec(tmp_path / "data"))
    run.supervisor()
    run.process.send_signal(signal.SIGINT)
    assert run.end().code == 130


@pytest.mark.slow
def test_a_second_run_into_the_same_folder_is_refused_and_disturbs_nothing(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "hold"})
    run = Run(spec, until="view 2 0")
    second = Run(spec)
    out, err = second.process.communicate(timeout=300)
    run.let_go()
    assert (second.process.returncode, err.count("\n")) == (2, 1)
    assert "another run writes into this folder" in err
    assert run.finish() == undisturbed and run.faults() == []


def refused(spec: CellSpec, *, code: int = 2) -> str:
    """Return the line with which a run is refused."""
    done = Run(spec).end()
    assert done.code == code, done
    lines = [line for line in done.err.splitlines() if line]
    assert len(lines) == 1, done.err
    assert not tagged(spec)
    return lines[0]


@pytest.mark.slow
def test_folders_that_are_no_place_for_a_run_are_refused_in_one_line(tmp_path: Path):
    spec = make_spec(tmp_path / "data", episodes=4)
    whole = finish_here(spec)

    def copy(name: str) -> tuple[CellSpec, Path]:
        folder = shutil.copytree(tmp_path / "data", tmp_path / name)
        return replace(spec, folder=str(folder), episodes=6), folder

    other, folder = copy("version")
    describe(folder, format_version=99)
    assert "format version 99" in refused_here(other)

    other, folder = copy("broken")
    content = bytearray((folder / "ledger.sqlite").read_bytes())
    content[4096 : len(content)] = bytes(len(content) - 4096)
    (folder / "ledger.sqlite").write_bytes(content)
    assert "ledger.sqlite" in (said := refused_here(other)) and "***" not in said

    other, folder = copy("episodes")
    (folder / "episodes").rename(folder / "mine")
    (folder / "episodes").write_text("mine")
    assert refused_here(other).endswith("/episodes: this is a file, where a dataset has a folder; move it elsewhere")
    assert (folder / "episodes").read_text() == "mine"

    other, folder = copy("other_seed")
    assert "seed" in refused(replace(other, seed=7))

    (tmp_path / "a\nb\x1b[31m").touch()
    assert "a b\\x1b[31m" in refused(replace(spec, folder=str(tmp_path / "a\nb\x1b[31m")))
    assert sound(spec) == whole


@pytest.mark.slow
def test_a_foreign_file_among_the_episodes_is_put_aside_or_left_alone(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", episodes=4)
    finish_here(spec)
    episodes = Path(spec.folder, "episodes")
    (episodes / "holiday.hdf5").write_bytes(b"sun")
    (episodes / "notes.txt").write_text("mine")
    Run(replace(spec, episodes=EPISODES)).end(0)
    assert [path.name for path in Path(spec.folder, "orphans").iterdir()] == ["holiday.hdf5"]
    assert (episodes / "notes.txt").read_text() == "mine"
    (episodes / "notes.txt").unlink()
    assert sound(spec) == undisturbed


@pytest.mark.slow
def test_a_folder_that_is_removed_while_a_run_writes_ends_it_in_one_line(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "nap x1"}, disk_patience=1.0)
    run = Run(spec, until="view 2 0")
    run.folder.rename(tmp_path / "elsewhere")
    done = run.end()
    assert done.code == 1
    assert "Traceback" not in done.err
    assert f"{run.folder}: cannot write: No such file or directory; " in done.err.splitlines()[-1]
    (tmp_path / "elsewhere").rename(run.folder)
    assert finish_here(make_spec(tmp_path / "data")) == undisturbed


@pytest.mark.slow
def test_too_few_descriptors_are_one_line(tmp_path: Path):
    spec = make_spec(tmp_path / "data", workers=(4, 4))
    done = Run(spec, prefix=("sh", "-c", 'ulimit -n 24; exec "$@"', "sh")).end()
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert "too many open files" in done.err
    finish_here(spec)


def in_a_namespace(mount: str) -> tuple[str, ...]:
    """Return the prefix of a command in a separate mount namespace; skip the test if that is not possible."""
    prefix = ("unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh")
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"cannot mount here: {tried.stderr.strip()}")
    return prefix


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path):
    there = tmp_path / "there"
    there.mkdir()
    spec = replace(make_spec(tmp_path / "data"), folder=str(there / "data"))
    prefix = in_a_namespace(f"mount --bind {there} {there} && mount -o remount,bind,ro {there}")
    done = Run(spec, prefix=prefix).end()
    assert done.code in (1, 2) and done.err.count("\n") == 1 and "Read-only" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("size", [pytest.param("1m", marks=pytest.mark.long), "4k"])
def test_shared_memory_in_dev_shm_is_not_needed(size: str, undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data")
    prefix = in_a_namespace(f"mount -t tmpfs -o size={size} none /dev/shm")
    assert Run(spec, prefix=prefix).finish() == undisturbed


def test_a_slab_that_no_memory_holds_is_one_line(tmp_path: Path):
    spec = make_spec(tmp_path / "data", slots=64, slot_bytes=1 << 40)
    done = Run(spec).end()
    assert done.code == 1 and done.err.count("\n") == 1 and "memory" in done.err, done.err


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a small disk."""
    with small_disk(tmp_path / "disk", "24m") as folder:
        yield folder


def fill(disk: Path, room: int) -> Path:
    """Fill a disk except for a number of bytes, even if other processes write at the same time."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
        file.truncate(max(0, file.tell() - room))
    return ballast


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, pytest.param(60_000, marks=pytest.mark.long)])
def test_a_full_disk_is_waited_for_and_nobody_is_to_blame(
    room: int, undisturbed: dict[str, str], disk: Path, tmp_path: Path
):
    spec = replace(make_spec(tmp_path / "data", mishaps=LONG), folder=str(disk / "data"))
    run = Run(spec, until="view 2 0")
    ballast = fill(disk, room)
    time.sleep(1.5)
    assert run.process.poll() is None, run.end()
    ballast.unlink()
    done = run.end(0)
    assert "the disk is full: waiting for room" in done.out and "the disk has room again" in done.out
    assert sound(spec) == undisturbed
    assert run.faults() == []


@pytest.mark.slow
def test_a_disk_that_stays_full_ends_the_run_in_one_line(undisturbed: dict[str, str], disk: Path, tmp_path: Path):
    made = make_spec(tmp_path / "data", mishaps=LONG, disk_patience=1.0)
    spec = replace(made, folder=str(disk / "data"))
    run = Run(spec, until="view 2 0")
    ballast = fill(disk, 0)
    done = run.end()
    assert done.code == 1 and len([line for line in done.err.splitlines() if line]) == 1
    assert "cannot write" in done.err
    ballast.unlink()
    assert finish_here(spec) == undisturbed
