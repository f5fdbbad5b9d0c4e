"""Scenarios with faults in a run's surroundings: full disks, little memory, damaged files, Ctrl-C, a second run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from tools.chaos import checker, processes
from tools.chaos.lab import FINISHED, Lab, Result

_RUNNER = processes.HERE.parents[1] / "runner" / "runner.py"
_DISK = 48 << 20
_ROOMS = (0, 20_000, 100_000, 400_000)
"""Free space on the disk [bytes]; it determines whether the ledger or a staged file fills the disk."""


def full_disk(lab: Lab) -> Result:
    """Fill the disk for a while: the run must wait, resume by itself, and count no fault.

    Then fill the disk permanently.
    """
    episodes = 60
    with lab.scenario("full_disk", episodes=episodes) as result, _small_disk(lab.folder / "disk", result) as disk:
        for room in () if result.skipped else _ROOMS[1:2] if lab.short else _ROOMS:
            folder = disk / "data"
            run = processes.start(processes.light(folder, episodes=episodes, plan_seconds=0.03))
            run.wait_for(lambda status: status.get("stored", 0) >= 5)
            _fill(disk, room)
            time.sleep(3.0)
            stuck = run.status().get("stored", 0)
            time.sleep(1.0)
            result.expect(not run.is_over, f"with {room} bytes left, the run ended")
            result.expect(run.status().get("stored", 0) == stuck, f"with {room} bytes left, the run went on")
            result.count(f"disk_full_{room}")
            (disk / "ballast").unlink()
            ended, error = run.end()
            result.expect(ended["state"] in FINISHED, f"with {room} bytes left, ended {ended} {error}")
            charged = checker.faults(folder)
            result.false_kills += len(charged)
            result.expect(not charged, f"a full disk was charged to a worker: {charged[:3]}")
            result.findings.add(checker.check(folder, lab.truth, episodes=episodes))
            shutil.rmtree(folder)
        if not result.skipped:
            _stays_full(lab, disk, result, episodes)
    return result


def _stays_full(lab: Lab, disk: Path, result: Result, episodes: int) -> None:
    folder = disk / "data"
    spec = processes.light(folder, episodes=episodes, plan_seconds=0.03, disk_patience=2.0)
    run = processes.start(spec)
    run.wait_for(lambda status: status.get("stored", 0) >= 5)
    _fill(disk, 0)
    ended, _ = run.end(patience=300)
    line = ended.get("line", "")
    result.expect(ended["code"] == 1 and "cannot write" in line and "\n" not in line.strip(), f"ended {ended}")
    result.count("disk_stays_full")
    (disk / "ballast").unlink()
    ended, error = processes.start(spec).end()
    result.expect(ended["state"] in FINISHED, f"after making room, ended {ended} {error}")
    result.findings.add(checker.check(folder, lab.truth, episodes=episodes))


@contextmanager
def _small_disk(folder: Path, result: Result) -> Iterator[Path]:
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "none", str(folder)]
    mounted = subprocess.run(line, capture_output=True, text=True, check=False)
    if mounted.returncode:
        result.skipped = f"cannot mount a tmpfs here: {mounted.stderr.strip()}"
    try:
        yield folder
    finally:
        if not result.skipped:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(disk: Path, room: int) -> None:
    """Fill the disk until ``room`` bytes are left, even if other processes write meanwhile."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        while (free := os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize) > room:
            try:
                file.write(bytes(min(1 << 20, max(4096, (free - room) // 4096 * 4096))))
            except OSError:
                return


def memory(lab: Lab) -> Result:
    """Request more shared memory than exists: the run must end with one line and leave nothing behind."""
    with lab.scenario("memory") as result:
        folder = lab.folder / "memory"
        ended, error = processes.start(processes.light(folder, episodes=4, slot_bytes=1 << 40)).end(patience=300)
        line = ended.get("line", "")
        result.expect(ended["code"] == 1 and "shared memory" in line and "\n" not in line.strip(), f"{ended} {error}")
        result.count("slab_too_large")
        ended, error = processes.start(processes.light(folder, episodes=4)).end(patience=300)
        result.expect(ended["state"] in FINISHED, f"with less, ended {ended} {error}")
        result.findings.add(checker.check(folder, lab.truth, episodes=4))
    return result


def damage(lab: Lab) -> Result:
    """Truncate published files or flip a bit: ``verify`` must name them, and the run must regenerate them."""
    episodes, each = 40, 6
    random = lab.random("damage")
    with lab.scenario("damage", episodes=episodes) as result:
        folder = lab.folder / "damage"
        spec = processes.light(folder, episodes=episodes)
        processes.start(spec).end()
        files = random.sample(sorted((folder / "episodes").iterdir()), 2 * each)
        for path in files[:each]:
            os.truncate(path, random.randrange(path.stat().st_size))
        for path in files[each:]:
            _flip_bit(path, random)
        said = subprocess.run(
            [sys.executable, str(_RUNNER), "verify", str(folder)], capture_output=True, text=True, check=False
        )
        for path in files:
            kind = "file_truncated" if path in files[:each] else "bit_flipped"
            is_named = any(line.startswith(f"episodes/{path.name}:") for line in said.stdout.splitlines())
            result.count(kind, detected=is_named)
            result.expect(is_named, f"verify does not name {path.name} ({kind})")
        result.expect(said.returncode == 1, f"verify exits with {said.returncode}")
        for path in files[each:]:
            path.unlink()  # as verify recommends
        ended, error = processes.start(spec).end()
        result.expect(ended["state"] in FINISHED, f"ended {ended} {error}")
        found = checker.check(folder, lab.truth, episodes=episodes)
        found.half_files = [name for name in found.half_files if not name.startswith("orphans/")]  # the truncated ones
        result.findings.add(found)
    return result


def _flip_bit(path: Path, random) -> None:  # noqa: ANN001
    """Flip a bit in the stored bytes of an image."""
    with h5py.File(path, "r") as file:
        chunk = file["observations/images/top"].id.get_chunk_info(0)
        offset, size = chunk.byte_offset, chunk.size
    with path.open("r+b") as file:
        place = offset + random.randrange(size)
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << random.randrange(8)]))


def interrupts(lab: Lab) -> Result:
    """Send one Ctrl-C or SIGTERM, after which work in progress ends, or two, which end it at once; then resume."""
    episodes = min(lab.episodes, 120)
    with lab.scenario("interrupts", episodes=episodes) as result:
        folder = lab.folder / "interrupts"
        spec = processes.light(folder, episodes=episodes, plan_seconds=0.05)
        for number, times in ((signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGINT, 2)):
            run = processes.start(spec)
            run.wait_for(lambda status: status.get("stored", 0) >= 4)
            begin = time.monotonic()
            for _ in range(times):
                processes.kill(run.process.pid, number)
                time.sleep(0.05)
            ended, error = run.end(patience=300)
            seconds = time.monotonic() - begin
            result.count(f"{number.name.lower()}_{'twice' if times == 2 else 'once'}", seconds=seconds)
            result.expect(ended["code"] == 130, f"{number.name} {times}: ended {ended} {error}")
            result.expect(seconds < (2.0 if times == 2 else 10.0), f"{number.name} {times}: took {seconds:.1f} s")
            result.expect(not run.processes(), f"{number.name} {times}: {len(run.processes())} processes are left")
        ended, error = processes.start(spec).end()
        result.expect(ended["state"] in FINISHED, f"continued, ended {ended} {error}")
        result.expect(not checker.faults(folder), f"charged: {checker.faults(folder)[:3]}")
        result.findings.add(checker.check(folder, lab.truth, episodes=episodes))
    return result


def second_run(lab: Lab) -> Result:
    """Start a second run in the same folder: it must be refused in one line without affecting the first."""
    with lab.scenario("second_run", episodes=60) as result:
        folder = lab.folder / "second_run"
        spec = processes.light(folder, episodes=60, plan_seconds=0.1)
        run = processes.start(spec)
        run.wait_for(lambda status: status.get("stored", 0) >= 2)
        before = run.processes()
        ended, error = processes.start(spec).end(patience=300)
        line = ended.get("line", "")
        result.expect(ended["code"] == 2 and line and "\n" not in line.strip(), f"the second ended {ended} {error}")
        result.count("second_run")
        result.expect(set(before) <= set(run.processes()), "the first run lost processes to the second")
        ended, error = run.end()
        result.expect(ended["state"] in FINISHED, f"the first ended {ended} {error}")
        result.expect(not checker.faults(folder), f"charged: {checker.faults(folder)[:3]}")
        result.findings.add(checker.check(folder, lab.truth, episodes=60))
    return result
