"""Inputs run in forked children, some after each other in one: time, memory, output and files are watched."""

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
"""[s] After which an input counts as a hang: of waiting, or of computing, whatever else the machine does."""
MEMORY = 2 << 30
"""[bytes] By which a process may grow beyond what its libraries need."""
_PAGE = 64 << 20
"""[bytes] Largest page; what is larger was spoilt so."""
_LOOKS, _BETWEEN = 10, 0.1
"""Number of looks at processes that seem to wait, and [s] between two."""
_OK = ("read", "refused")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An input that did not end as it must."""

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
    """Consecutive inputs of a sort, run in as few children as survive."""

    sort: Sort
    good: Path
    """A good input, which is copied."""
    work: Path
    """Folder that the inputs may write into."""
    seed: int
    seconds: float = SECONDS
    """[s] After which an input counts as a hang; see :data:`SECONDS`."""

    def run(self, numbers: Sequence[int]) -> Iterator[tuple[int, Finding | None]]:
        """Run inputs; a child that ends early is followed by another one for those that are left."""
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
                    if left > 0:  # the machine does other things too
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
    """[s] of the processor that a child has used, with all processes that it started."""
    ticks = sum(int(field) for process in _family(child) for field in process[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_computing(child: int) -> bool:
    """Tell processes of which one runs, or reads a disk, from those that wait or have ended.

    One look does not tell: while processes are read after each other, the one that computes may wake the next.
    """
    before = _computed(child)
    for _ in range(_LOOKS):
        if any(process[0] in "RD" for process in _family(child)) or _computed(child) > before:
            return True
        time.sleep(_BETWEEN)
    return False


def _family(child: int) -> list[list[str]]:
    """Read the state of a process and of all below it; meshes are read in processes of their own."""
    states: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            states[int(path.parent.name)] = _state(int(path.parent.name))
    found = [child]
    for parent in found:
        found += [process for process, state in states.items() if int(state[1]) == parent]
    return [states[process] for process in found if process in states]


def _state(child: int) -> list[str]:
    """Read the fields of ``/proc/PID/stat`` after the name (proc(5)), which may hold spaces."""
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
    # Two folders deep, so that paths that climb out of it land in a place that is watched.
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
    """Look for control sequences in what libraries wrote past Python."""
    with output.open("rb") as file:
        file.seek(begin)
        told = file.read(_PAGE)
    at = told.find(BELL[:1].encode())
    return "" if at < 0 else f"a terminal would obey a library: {told[max(0, at - 100) : at + 100]!r}"


def _strangers(work: Path) -> str:
    """Name a file beside the input's folder."""
    known = {work / name for name in ("input", "stacks", "output", "spoilt", "home")}
    return next((str(path) for path in work.iterdir() if path not in known), "") or next(
        (str(path) for path in (work.parent / "outside").rglob("*")), ""
    )


def _stacks(child: int, work: Path) -> str:
    """Ask a child that hangs where it is."""
    os.kill(child, signal.SIGUSR1)
    time.sleep(0.3)
    return _last(work / "stacks")


def _last(path: Path) -> str:
    return path.read_text(errors="replace")[-1500:] if path.exists() else ""


def single_line(text: str) -> str:
    """Shorten what was done to an input."""
    return ascii(text)[1:-1][:300]


def quiet() -> None:
    """Keep warnings of libraries out of the results."""
    if not sys.warnoptions:
        import warnings

        warnings.simplefilter("ignore")
