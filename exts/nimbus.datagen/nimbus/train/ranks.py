"""Ranks of a training run on one machine: all restart from the last checkpoint when one exits or hangs.

A rank writes its heartbeat after each step, and exits when its parent exits. Only one training run may use a folder at
a time.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import refuse_links
from nimbus.runner.system.output import write_error
from nimbus.runner.system.processes import die_with_parent

RANK, RANKS = "RANK", "WORLD_SIZE"
"""Environment variables of a rank, named as by torchrun."""
RENDEZVOUS = "NIMBUS_RENDEZVOUS"
"""Environment variable with the rendezvous file of the ranks of one start."""
_PARENT = "NIMBUS_RANKS_PARENT"
"""Environment variable with the process id of a rank's supervisor."""
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
"""Environment variables of PyTorch's libraries, unless the user sets others: the ranks of one machine listen on
loopback only, because these libraries accept any connection."""
_POLL_SECONDS = 0.1
"""Interval between checks of the ranks [s]."""
_EXIT_SECONDS = 20.0
"""Time for the ranks of a killed command to exit [s]."""
_MAX_STARTS_WITHOUT_PROGRESS = 5
"""Number of successive starts without progress after which the training run stops."""


@dataclass
class _Rank:
    """Process of a rank, with the step and the time of its last heartbeat."""

    process: subprocess.Popen[bytes]
    step: str = ""
    seen: float = field(default_factory=time.monotonic)


class Ranks:
    """Supervisor of the ranks: processes of one command.

    Args:
        command: Command of a rank; the process finds its number with :func:`own_rank`.
        count: Number of ranks.
        folder: Folder for the ranks' heartbeats.
        hang: Time without a heartbeat after which a rank is considered hung [s].
        start: Longest time until a rank's first heartbeat, which it writes after its first step [s].
    """

    def __init__(
        self, command: Sequence[str], *, count: int, folder: Path, hang: float = 10.0, start: float = 60.0
    ) -> None:
        self._command, self._count, self._folder = list(command), count, folder
        self._hang, self._start = hang, start
        self._is_stopped = False
        self._ranks: list[_Rank] = []

    def run(self) -> int:
        """Run the ranks to the end; return their exit code, or 128 plus the signal's number after a stop.

        Raises:
            InputError: Another training run uses the folder, or it has links.
        """
        refuse_links(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = self._lock()
        handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            return self._supervise()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            self._kill()
            os.close(lock)

    def _supervise(self) -> int:
        idle_starts, most, generation = 0, 0, 0
        while True:
            self._begin(generation)
            why = self._watch()
            reached = max(int(rank.step or 0) for rank in self._ranks)
            codes = [rank.process.poll() for rank in self._ranks]
            if InputError.exit_code in codes:  # the first rank has printed the error
                with suppress(subprocess.TimeoutExpired):
                    self._ranks[0].process.wait(_EXIT_SECONDS)
            self._kill()
            if self._is_stopped:
                return 128 + signal.SIGTERM
            if not why or InputError.exit_code in codes:
                return InputError.exit_code if why else 0
            idle_starts = 0 if reached > most else idle_starts + 1
            most, generation = max(reached, most), generation + 1
            if idle_starts == _MAX_STARTS_WITHOUT_PROGRESS:
                write_error(f"{why}, and {_MAX_STARTS_WITHOUT_PROGRESS} starts in a row made no progress: giving up\n")
                return 1
            write_error(f"{why}: all ranks restart\n")

    def _begin(self, generation: int) -> None:
        rendezvous = self._folder / f"rendezvous-{os.getpid()}-{generation}"
        for left in (*self._folder.glob("rendezvous-*"), *self._folder.glob("heartbeat-*")):
            left.unlink()
        self._ranks = []
        for number in range(self._count):
            own = {RANK: str(number), "LOCAL_RANK": str(number), RANKS: str(self._count)}
            own |= {RENDEZVOUS: str(rendezvous), _PARENT: str(os.getpid())}
            process = subprocess.Popen(self._command, env=_LOOPBACK | os.environ | own, pass_fds=(self._lock_file,))
            self._ranks.append(_Rank(process))

    def _watch(self) -> str:
        """Watch the ranks; return the reason for a restart, or an empty text once all ranks have finished."""
        asked_to_stop = 0.0
        while True:
            codes = [rank.process.poll() for rank in self._ranks]
            now = time.monotonic()
            for number, rank in enumerate(self._ranks):
                if (step := _read(self._folder / f"heartbeat-{number}")) not in ("", rank.step):
                    rank.step, rank.seen = step, now
            if self._is_stopped:  # all ranks save together, then exit one by one
                asked_to_stop = asked_to_stop or now
                if None not in codes or now - asked_to_stop > self._hang + _EXIT_SECONDS:
                    return "stopped"
                time.sleep(_POLL_SECONDS)
                continue
            if all(code == 0 for code in codes):
                return ""
            if dead := [(number, code) for number, code in enumerate(codes) if code]:
                return f"rank {dead[0][0]} ended with {dead[0][1]}"
            for number, rank in enumerate(self._ranks):
                if codes[number] is None and now - rank.seen > (self._hang if rank.step else self._start):
                    return f"rank {number} has been hanging since step {rank.step or 0}"
            time.sleep(_POLL_SECONDS)

    def _stop(self, number: int, _: FrameType | None) -> None:
        self._is_stopped = True
        for rank in self._ranks:
            if rank.process.poll() is None:
                rank.process.send_signal(signal.SIGTERM)

    def _kill(self) -> None:
        for rank in self._ranks:
            if rank.process.poll() is None:
                rank.process.kill()
        for rank in self._ranks:
            rank.process.wait()

    def _lock(self) -> int:
        """Lock the folder; the ranks of a killed command hold the lock until they have exited."""
        self._lock_file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        end = time.monotonic() + _EXIT_SECONDS
        while True:
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self._lock_file
            except BlockingIOError:
                if time.monotonic() > end:
                    os.close(self._lock_file)
                    what, instead = (
                        "another training run uses this folder",
                        "wait until it has finished, or give another --out",
                    )
                    raise InputError(what, where=str(self._folder), instead=instead) from None
                time.sleep(_POLL_SECONDS)


def own_rank() -> tuple[int, int] | None:
    """Return this process's rank and the number of ranks, or None; a rank then also exits with its parent."""
    if RANK not in os.environ:
        return None
    if _PARENT in os.environ:
        die_with_parent(int(os.environ[_PARENT]))
    return int(os.environ[RANK]), int(os.environ[RANKS])


def write_heartbeat(folder: Path, rank: int, step: int) -> None:
    """Write a heartbeat with the number of completed steps."""
    (folder / f"heartbeat-{rank}").write_text(str(step))


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text()
    return ""
