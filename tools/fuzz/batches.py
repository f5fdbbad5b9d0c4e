"""Execution of inputs in forked child processes, several per process, with checks of time, memory, output and files."""

from __future__ import annotations

import faulthandler
import io
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError, visible
from nimbus.datagen.random_streams import generator
from tools.fuzz.mutations import BELL, MARK
from tools.fuzz.sort import Sort

SECONDS = 30.0
"""Time after which an input counts as a hang [s]; waiting and computing time count, and the limit allows for a busy
machine."""
MEMORY = 2 << 30
"""Largest growth of a process's memory beyond that of its libraries [bytes]."""
_PAGE = 64 << 20
"""Size above which a page counts as a result of the damage and is not scanned [bytes]."""
_LOOKS, _BETWEEN = 10, 0.1
"""Number of checks of processes that seem to wait, and time between two checks [s]."""
_OK = ("read", "refused")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An input that was neither read nor refused in one line."""

    sort: str
    number: int
    kind: str
    """``traceback``, ``hang``, ``memory``, ``killed``, ``outside``, ``injection``"""
    detail: str
    spoilt: str = ""

    def __str__(self) -> str:
        return f"{self.sort} {self.number} ({self.spoilt}): {self.kind}: {self.detail}"


@dataclass
class Batch:
    """Consecutive inputs of a sort, run in as few child processes as possible."""

    sort: Sort
    good: Path
    """Undamaged input, which is copied."""
    work: Path
    """Folder into which the inputs may write."""
    seed: int
    seconds: float = SECONDS
    """Time after which an input counts as a hang [s]; see :data:`SECONDS`."""

    def run(self, numbers: Sequence[int]) -> Iterator[tuple[int, Finding | None]]:
        """Run inputs; if a child process ends early, another runs the remaining inputs."""
        left = list(numbers)
        while left:
            done = 0
            for number, finding in self._child(left):
                done += 1
                yield number, finding
            left = left[done:]

    def _child(self, numbers: Sequence[int]) -> Iterator[tuple[int, Finding | None]]:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            os.setsid()
            _serve(self, numbers, writer)
        os.close(writer)
        try:
            with os.fdopen(reader, "rb", buffering=0) as answers:
                yield from self._answers(numbers, answers, child)
        finally:
            os.killpg(child, signal.SIGKILL) if _is_there(child) else None
            os.waitpid(child, 0)

    def _answers(self, numbers: Sequence[int], answers: Any, child: int) -> Iterator[tuple[int, Finding | None]]:
        kept = b""
        for number in numbers:
            end, computed = time.monotonic() + self.seconds, _computed(child)
            while b"\n" not in kept:
                ready, _, _ = select.select([answers], [], [], max(0.0, end - time.monotonic()))
                block = answers.read(65536) if ready else None
                if block is None and _is_computing(child):
                    left = self.seconds - (_computed(child) - computed)
                    if left > 0:  # the machine may be busy with other work
                        end = time.monotonic() + left
                        continue
                if not block:
                    kind = "hang" if block is None else "killed"
                    detail = _stacks(child, self.work) if block is None else "the process ended"
                    spoilt = _last(self.work / "spoilt")
                    yield number, Finding(sort=self.sort.name, number=number, kind=kind, detail=detail, spoilt=spoilt)
                    return
                kept += block
            line, _, kept = kept.partition(b"\n")
            told = json.loads(line)
            yield number, None if told["kind"] in _OK else Finding(sort=self.sort.name, number=number, **told)


def _is_there(child: int) -> bool:
    try:
        os.killpg(child, 0)
    except ProcessLookupError:
        return False
    return True


def _computed(child: int) -> float:
    """Return the CPU time of a child process and its descendants [s]."""
    ticks = sum(int(field) for process in _family(child) for field in process[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_computing(child: int) -> bool:
    """Return True if one of a child's processes runs or reads a disk; False if all wait or have ended.

    One check is not enough: processes are read one after the other, and a running one may meanwhile have woken another.
    """
    before = _computed(child)
    for _ in range(_LOOKS):
        if any(process[0] in "RD" for process in _family(child)) or _computed(child) > before:
            return True
        time.sleep(_BETWEEN)
    return False


def _family(child: int) -> list[list[str]]:
    """Read the state of a process and its descendants; meshes, for example, are read in separate processes."""
    states: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            states[int(path.parent.name)] = _state(int(path.parent.name))
    found = [child]
    for parent in found:
        found += [process for process, state in states.items() if int(state[1]) == parent]
    return [states[process] for process in found if process in states]


def _state(child: int) -> list[str]:
    """Read the fields of ``/proc/PID/stat`` (proc(5)) after the process's name, which may contain spaces."""
    return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()


def _serve(batch: Batch, numbers: Sequence[int], writer: int) -> None:
    code = 1
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGESIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_RDWR)
        stacks = (batch.work / "stacks").open("w")
        faulthandler.register(signal.SIGUSR1, stacks, all_threads=False)
        written = (batch.work / "output").open("wb")
        os.dup2(null, 0)
        os.dup2(written.fileno(), 1)
        os.dup2(written.fileno(), 2)
        for number in numbers:
            os.write(writer, json.dumps(_one(batch, number)).encode() + b"\n")
        code = 0
    finally:
        os._exit(code)


def _one(batch: Batch, number: int) -> dict[str, str]:
    work = batch.work / "input"
    shutil.rmtree(work, ignore_errors=True)
    # Two folders deep, so that paths that lead out of it end in a folder that is checked.
    folder = work / "a" / "b"
    shutil.copytree(batch.good, folder, symlinks=True)
    os.chdir(folder.parent)
    random = generator(batch.seed, batch.sort.name, number)
    spoilt = single_line(batch.sort.spoil(folder, random))
    (batch.work / "spoilt").write_text(spoilt)
    out = io.StringIO()
    kind, detail = "read", ""
    before, written = _peak(), (batch.work / "output").stat().st_size
    try:
        with redirect_stdout(out), redirect_stderr(out):
            batch.sort.read(folder, random)
    except InputError as error:
        kind, detail = "refused", str(error)
    except BaseException as error:
        kind = "memory" if isinstance(error, MemoryError) else "traceback"
        trace = "".join(traceback.format_exception(error)[-4:])
        detail = f"{out.getvalue()[-1500:]}\n{trace}"
    if kind in _OK:
        grown = _peak() - before
        if grown > MEMORY:
            kind, detail = "memory", f"grew by {grown >> 20} MiB"
        elif found := _injection(out.getvalue() + detail, work) or _native(batch.work / "output", written):
            kind, detail = "injection", found
        elif strange := _strangers(batch.work):
            kind, detail = "outside", strange
    return {"kind": kind, "detail": detail, "spoilt": spoilt}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _injection(told: str, work: Path) -> str:
    if visible(told) != told:
        at = next(at for at, letter in enumerate(told) if visible(letter) != letter)
        return f"a terminal would obey its output: {told[max(0, at - 100) : at + 100]!a}"
    for path in work.rglob("*"):
        if path.suffix not in (".html", ".md") or not path.is_file() or path.stat().st_size > _PAGE:
            continue
        if MARK in path.read_text(errors="replace"):
            return f"markup in {path.name}"
    return ""


def _native(output: Path, begin: int) -> str:
    """Find control sequences that libraries wrote to the descriptors without Python's streams."""
    with output.open("rb") as file:
        file.seek(begin)
        told = file.read(_PAGE)
    at = told.find(BELL[:1].encode())
    return "" if at < 0 else f"a terminal would obey a library: {told[max(0, at - 100) : at + 100]!r}"


def _strangers(work: Path) -> str:
    """Return the path of a file that was created outside the input's folder; empty without one."""
    known = {work / name for name in ("input", "stacks", "output", "spoilt", "home")}
    return next((str(path) for path in work.iterdir() if path not in known), "") or next(
        (str(path) for path in (work.parent / "outside").rglob("*")), ""
    )


def _stacks(child: int, work: Path) -> str:
    """Return the stack traces of a hung child process."""
    os.kill(child, signal.SIGUSR1)
    time.sleep(0.3)
    return _last(work / "stacks")


def _last(path: Path) -> str:
    return path.read_text(errors="replace")[-1500:] if path.exists() else ""


def single_line(text: str) -> str:
    """Return a description of an input's damage as a short line of ASCII."""
    return ascii(text)[1:-1][:300]


def quiet() -> None:
    """Suppress warnings of libraries."""
    if not sys.warnoptions:
        import warnings

        warnings.simplefilter("ignore")
