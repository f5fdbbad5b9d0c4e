"""The fuzzer finds planted bugs of each kind, and nothing in correct code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from tools.fuzz.batches import MEMORY, Batch
from tools.fuzz.mutations import BELL, MARK, OUTSIDE, spoil_bytes, spoil_plain, spoil_text
from tools.fuzz.sort import Sort


def refuse(folder: Path, random: np.random.Generator) -> None:
    raise InputError("no good")


def grow(folder: Path, random: np.random.Generator) -> None:
    np.ones((MEMORY + (1 << 26)) // 8)


def steal(folder: Path, random: np.random.Generator) -> None:
    (folder / OUTSIDE).resolve().write_text("stolen")


def inject(folder: Path, random: np.random.Generator) -> None:
    (folder / "page.html").write_text(f"<h1>{MARK}</h1>")


PLANTED: dict[str, Callable[[Path, np.random.Generator], object]] = {
    "traceback": lambda folder, random: {}["x"],
    "hang": lambda folder, random: time.sleep(60),
    "killed": lambda folder, random: os.kill(os.getpid(), signal.SIGKILL),
    "memory": grow,
    "outside": steal,
    "injection": inject,
}


def findings(read: Callable[[Path, np.random.Generator], object], tmp_path: Path, seconds: float = 2.0) -> list[str]:
    (tmp_path / "good").mkdir()
    (tmp_path / "work").mkdir()
    sort = Sort(name="planted", make=Path.mkdir, spoil=lambda folder, random: "nothing", read=read)
    batch = Batch(sort=sort, good=tmp_path / "good", work=tmp_path / "work", seed=0, seconds=seconds)
    return [finding.kind if finding else "" for _, finding in batch.run(range(2))]


@pytest.mark.parametrize("kind", sorted(PLANTED))
def test_a_planted_bug_is_found(tmp_path: Path, kind: str) -> None:
    assert findings(PLANTED[kind], tmp_path) == [kind] * 2


def test_a_control_sequence_in_an_error_is_found(tmp_path: Path) -> None:
    """Nimbus's errors escape control sequences; this test simulates an error that does not."""

    def shout(folder: Path, random: np.random.Generator) -> None:
        error = InputError("")
        error.args = (BELL,)
        raise error

    assert findings(shout, tmp_path) == ["injection"] * 2


@pytest.mark.parametrize("shown", ["\x1b[2J", "\a", "\x9b2J", "\N{RIGHT-TO-LEFT OVERRIDE}"])
def test_what_a_terminal_obeys_is_found(tmp_path: Path, shown: str) -> None:
    """The sequence is printed by a command, not only raised."""
    assert findings(lambda folder, random: sys.stdout.write(shown), tmp_path) == ["injection"] * 2


def test_what_a_library_prints_is_watched(tmp_path: Path) -> None:
    """Native code writes directly to the file descriptor."""
    assert findings(lambda folder, random: os.write(2, BELL.encode()), tmp_path) == ["injection"] * 2


def test_computing_on_and_on_is_a_hang(tmp_path: Path) -> None:
    def compute(folder: Path, random: np.random.Generator) -> None:
        while True:
            pass

    assert findings(compute, tmp_path) == ["hang"] * 2


def test_a_busy_machine_is_no_hang(tmp_path: Path) -> None:
    """Work of 0.3 s takes longer than the limit of 1 s while four other processes use the CPU. The rest of the limit is
    for the start of the process, which a busy machine slows down as well.
    """
    core = min(os.sched_getaffinity(0))

    def compute(folder: Path, random: np.random.Generator) -> None:
        os.sched_setaffinity(0, {core})
        begin = time.process_time()
        while time.process_time() < begin + 0.3:
            pass

    busy = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(4)]
    try:
        assert findings(compute, tmp_path, seconds=1.0) == ["", ""]
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_what_is_read_or_refused_is_well(tmp_path: Path) -> None:
    assert findings(refuse, tmp_path) == ["", ""]


def test_the_same_seed_spoils_alike() -> None:
    def spoilt() -> tuple[object, ...]:
        random = np.random.default_rng(3)
        return spoil_bytes(b"abc" * 50, random), spoil_text("a: 1\nb: 2\n", random), spoil_plain({"a": [1]}, random)

    assert spoilt()[:2] == spoilt()[:2]
