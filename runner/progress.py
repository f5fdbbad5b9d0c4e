"""How far a run is: counts, yields, rates and where the time goes, in one status file that others may read."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.stages import Stored
from nimbus.datagen.store.json_text import from_json, to_json
from nimbus.datagen.store.publish import replace_text

FILE_NAME = "status.json"
STAGES = ("load", "randomize", "plan", "render", "store")
_SHARED = STAGES[:3]
"""Stages that all variants of an episode share."""
_WRITE_INTERVAL = 0.5


@dataclass(kw_only=True)
class Status:
    """What ``status.json`` says."""

    task: str
    state: str = "running"
    """``running``, ``done``, ``short`` (ended with fewer episodes than asked), ``interrupted`` or ``failed``; read back
    also ``killed``, of a run whose process is gone."""
    activity: str = ""
    """What the run is doing now, in a few words; empty once results come."""
    pid: int = 0
    target: int = 0
    """Episodes asked for."""
    already: int = 0
    """Episodes that earlier runs had stored or given up."""
    stored: int = 0
    """Episodes stored by this run."""
    given_up: int = 0
    """Episodes that failed in their last attempt, in this run."""
    attempts: int = 0
    """Plans tried; one that several variants show counts once."""
    failures: dict[str, int] = field(default_factory=dict)
    """Failed attempts by reason."""
    counts: dict[str, int] = field(default_factory=dict)
    """Items that came out of each stage."""
    cpu_times: dict[str, float] = field(default_factory=dict)
    """[s] CPU by stage, in all."""
    waits: dict[str, float] = field(default_factory=dict)
    """[s] spent waiting for a queue, by name."""
    byte_count: int = 0
    step_count: int = 0
    started: float = 0.0
    """[s since 1970]"""
    updated: float = 0.0

    @property
    def settled(self) -> int:
        """Episodes that need no more work."""
        return self.already + self.stored + self.given_up

    @property
    def elapsed(self) -> float:
        """[s] since the start."""
        return max(0.0, self.updated - self.started)

    @property
    def remaining(self) -> float | None:
        """[s] that the rest will take at the rate so far; None while nothing is known."""
        done = self.stored + self.given_up
        left = max(0, self.target - self.settled)
        return self.elapsed / done * left if done else (0.0 if not left else None)

    def rate(self, stage: str) -> float | None:
        """Items a CPU second of a stage; None before there are any."""
        seconds = self.cpu_times.get(stage, 0.0)
        return self.counts.get(stage, 0) / seconds if seconds > 0 else None


class Progress:
    """Keeps a run's :class:`Status` and writes it, at most twice a second.

    Args:
        folder: The dataset's folder.
        task: The task's name.
        target: Episodes asked for, variants counted.
        already: Episodes of those that earlier runs settled.
    """

    def __init__(self, folder: Path, *, task: str, target: int, already: int = 0) -> None:
        now = time.time()
        self.status = Status(task=task, target=target, already=already, pid=os.getpid(), started=now, updated=now)
        self._path = folder / FILE_NAME
        self._written = 0.0
        self._plans: set[tuple[int, int]] = set()
        self._write()

    def activity(self, text: str) -> None:
        """Say what the run is doing now."""
        self.status.activity = text
        self._touch()

    def add(self, stored: Stored) -> None:
        """Count what became of an attempt."""
        status = self.status
        plan = (stored.index, stored.attempt)
        is_new = plan not in self._plans
        status.activity = ""
        self._plans.add(plan)
        failed = not stored.outcome.success
        status.attempts += is_new
        if failed:
            reason = stored.outcome.reason.value
            status.failures[reason] = status.failures.get(reason, 0) + is_new
            status.given_up += stored.final
        if stored.path:
            status.stored += 1
            status.byte_count += stored.byte_count
            status.step_count += stored.step_count
        reached = (_SHARED if is_new else ()) + (() if failed else STAGES[3:])
        status.counts = dict(Counter(status.counts) + Counter(reached))
        for name, seconds in stored.times.items():
            table = status.waits if name.endswith("_wait") else status.cpu_times
            table[name] = table.get(name, 0.0) + seconds
        self._touch()

    def finish(self, state: str) -> None:
        """Write the last word: ``done``, ``short``, ``interrupted`` or ``failed``."""
        self.status.state = state
        self.status.activity = ""
        self.status.updated = time.time()
        self._write()

    def _touch(self) -> None:
        self.status.updated = time.time()
        if self.status.updated - self._written >= _WRITE_INTERVAL:
            self._write()

    def _write(self) -> None:
        self._written = self.status.updated
        # A full disk ends the run where episodes are stored, not where progress is told.
        with suppress(StorageError):
            replace_text(self._path, to_json(asdict(self.status), indent=2) + "\n", durable=False)


def read_status(folder: Path) -> Status | None:
    """The status of the last run in a folder; None when there is none.

    Raises:
        InputError: The file is not a status.
    """
    path = folder / FILE_NAME
    try:
        status = from_json(Status, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise InputError("not a run's status", where=str(path), instead="delete this file") from None
    if status.state == "running" and not _is_alive(status.pid):
        status.state = "killed"
    return status


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # another user's
    return True
