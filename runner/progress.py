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
from nimbus.datagen.store.ledger import Attempt
from nimbus.datagen.store.publish import replace_text
from nimbus.datagen.trajectory import Outcome, Reason

FILE_NAME = "status.json"
STAGES = ("load", "randomize", "plan", "render", "store")
_SHARED = STAGES[:3]
"""Stages that all variants of an episode share."""
_WRITE_INTERVAL = 0.5


_EVENTS = 100


@dataclass(frozen=True, kw_only=True)
class WorkerStatus:
    """One worker, as it is now."""

    number: int
    seat: int
    pid: int
    role: str
    phase: str
    index: int
    """Episode, -1 for none."""
    age: float
    """[s] since its last stamp"""
    in_phase: float
    """[s]"""
    resident: int = 0
    """[bytes]"""
    results: int = 0


@dataclass(frozen=True, kw_only=True)
class RingStatus:
    """The slots in which plans travel."""

    slots: int = 0
    ready: int = 0
    """Plans that wait to be rendered."""
    taken: int = 0
    granted: int = 0
    spilled: int = 0
    """Plans that wait in files."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened."""

    number: int
    """Grows by one with each."""
    text: str


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
    already_stored: int = 0
    """Of ``already``, those that are stored."""
    quarantined: int = 0
    """Episodes that this run gave up, because they killed workers."""
    startup_seconds: float = 0.0
    """From the start until the first order was given."""
    cores: int = 1
    faults: dict[str, int] = field(default_factory=dict)
    """Workers that died, hung or raised, by kind."""
    recycled: int = 0
    """Workers that were renewed because of their memory."""
    switches: int = 0
    """Changes of role."""
    workers: tuple[WorkerStatus, ...] = ()
    ring: RingStatus = field(default_factory=lambda: RingStatus())
    longest_episode: float = 0.0
    """[s] CPU"""
    events: tuple[Event, ...] = ()
    """The last things that happened, for who prints lines."""

    @property
    def bound_seconds(self) -> float:
        """[s] The shortest time that the measured work could have taken on these cores."""
        return max(sum(self.cpu_times.values()) / max(1, self.cores), self.longest_episode)

    @property
    def settled(self) -> int:
        """Episodes that need no more work."""
        return self.already + self.stored + self.given_up + self.quarantined

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
        already_stored: Those of them that are stored.
        started: [s since 1970] when the run began; now, when not given.
    """

    def __init__(
        self, folder: Path, *, task: str, target: int, already: int = 0, already_stored: int = 0, started: float = 0.0
    ) -> None:
        now = time.time()
        self.status = Status(
            task=task,
            target=target,
            already=already,
            already_stored=already_stored,
            pid=os.getpid(),
            started=started or now,
            updated=now,
        )
        self._path = folder / FILE_NAME
        self._written = 0.0
        self._plans: set[tuple[int, int]] = set()
        self._write()

    def activity(self, text: str) -> None:
        """Say what the run is doing now."""
        self.status.activity = text
        self._touch()

    def add(self, stored: Stored, *, is_new: bool | None = None) -> None:
        """Count what became of an attempt.

        Args:
            stored: The attempt.
            is_new: No other variant has shown its plan before; found out when not given.
        """
        status = self.status
        if is_new is None:
            plan = (stored.index, stored.attempt)
            is_new = plan not in self._plans
            self._plans.add(plan)
        status.activity = ""
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
        cpu = sum(seconds for name, seconds in stored.times.items() if not name.endswith("_wait"))
        status.longest_episode = max(status.longest_episode, cpu)
        self._touch()

    def tell(self, text: str) -> None:
        """Note something that happened, for who prints lines."""
        events = self.status.events
        number = events[-1].number + 1 if events else 1
        self.status.events = (*events[-_EVENTS + 1 :], Event(number=number, text=text))
        self._touch()

    def update(self, **values: object) -> None:
        """Set fields of the status."""
        for name, value in values.items():
            setattr(self.status, name, value)
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


def line(stored: Stored, status: Status) -> str:
    """One attempt in one line."""
    seconds = sum(value for name, value in stored.times.items() if not name.endswith("_wait"))
    head = f"[{status.settled}/{status.target}] {stored.episode_id}"
    if stored.outcome.success:
        size = f"{stored.step_count} steps, {stored.byte_count / 1e6:.1f} MB"
        return f"{head}: stored, {size}, {seconds:.1f} s CPU"
    why = stored.outcome.reason.value.replace("_", " ")
    place = f" in {stored.outcome.phase}" if stored.outcome.phase else ""
    return f"{head}: attempt {stored.attempt + 1} failed{place}: {why}, {seconds:.1f} s CPU"


def stored_of(attempt: Attempt) -> Stored:
    """What became of an attempt, as a writer tells it."""
    return Stored(
        episode_id=attempt.episode_id,
        index=attempt.idx,
        variant=attempt.variant,
        attempt=attempt.attempt,
        outcome=Outcome(
            success=attempt.success, phase=attempt.phase, reason=Reason(attempt.reason), detail=attempt.detail
        ),
        final=attempt.final,
        path=attempt.path,
        step_count=attempt.step_count,
        byte_count=attempt.byte_count,
        times=attempt.times,
    )


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
