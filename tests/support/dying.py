"""Commands that are killed with SIGKILL at a chosen file operation, independently of the load of the machine.

One interpreter is loaded once and forks a process for each command. The process counts its operations on files below a
folder: opening for writing, writing (half of the data), syncing, renaming, linking, removing, making folders.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_FORK_SERVER = r"""
import contextlib, json, os, signal, sys
sys.argv = ["nimbus"]
import av, h5py, numpy, pyarrow, pyarrow.parquet
from nimbus.datagen.errors import InputError
from nimbus.datagen.datasets.convert import convert
from nimbus.datagen.datasets.export import aloha, export, lerobot, lerobot_v21, robomimic, tar_shards
from nimbus.runner import cli
from nimbus.runner.monitor import output_summary as _
from nimbus.runner.cell import run
from nimbus.runner.commands import convert as _, export as _, parser as _
from nimbus.runner.cell.transport.spec import CellSpec

WATCHED = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
run.show = lambda *_, **__: None

def named(args):
    names = [os.fsdecode(one) for one in args[:2] if isinstance(one, (str, bytes, os.PathLike))]
    folder = args[-1]
    if isinstance(folder, int) and folder >= 0 and names and not os.path.isabs(names[0]):
        with contextlib.suppress(OSError):  # removed relative to an open folder
            names.append(os.readlink(f"/proc/self/fd/{folder}"))
    return names

def live(work, place, at):
    count = 0

    def step():
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event, args):
        if event in WATCHED and any(name.startswith(place) for name in named(args)):
            if event != "open" or (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
                step()

    def name_of(file):
        return os.readlink(f"/proc/self/fd/{file if isinstance(file, int) else file.fileno()}")

    fsync, pwrite = os.fsync, os.pwrite

    def dying_fsync(file):
        if name_of(file).startswith(place):
            step()
        fsync(file)

    def dying_pwrite(file, data, offset):
        if name_of(file).startswith(place):
            if count + 1 == at:
                pwrite(file, bytes(data)[: len(data) // 2], offset)  # torn
            step()
        return pwrite(file, data, offset)

    os.fsync, os.pwrite = dying_fsync, dying_pwrite
    sys.addaudithook(watch)
    try:
        if work[0] == "spec":
            code = run.run_spec(CellSpec.from_text(work[1]), serial=True)
        else:
            code = cli.main(work)
    except InputError as error:
        code = error.exit_code
    return code, count

for line in sys.stdin:
    work, place, at = json.loads(line)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code, count = 70, 0
        try:
            code, count = live(work, place, at)
        finally:
            os.write(write, json.dumps([code, count]).encode())
            os._exit(0)
    os.close(write)
    with open(read) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    print(told or "null", flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class End:
    """End of a command that was not killed."""

    code: int
    count: int
    """Number of operations."""


class Dying:
    """Runs commands of Nimbus; use as a context manager."""

    def __enter__(self) -> Dying:
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._fork_server = subprocess.Popen(
            [sys.executable, "-c", _FORK_SERVER], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._fork_server.stdin and self._fork_server.stdout
        self._fork_server.stdin.close()
        self._fork_server.wait()
        self._fork_server.stdout.close()

    def run(self, *work: str, place: Path, at: int = 0) -> End | None:
        """Run a command; return None if it was killed.

        Args:
            work: Words of the command, or ``spec`` and the text of a run's specification.
            place: Beginning of the paths of counted operations.
            at: Number of the operation at which it is killed; 0 for none.
        """
        assert self._fork_server.stdin and self._fork_server.stdout
        self._fork_server.stdin.write(json.dumps([work, str(place), at]) + "\n")
        self._fork_server.stdin.flush()
        told = json.loads(self._fork_server.stdout.readline())
        return None if told is None else End(code=told[0], count=told[1])


def spread(count: int, kills: int) -> Iterable[int]:
    """Return the operations of kills, spread evenly over all of them, including the first and the last."""
    if kills >= count:
        return range(1, count + 1)
    return sorted({1 + round(row * (count - 1) / max(1, kills - 1)) for row in range(kills)})
