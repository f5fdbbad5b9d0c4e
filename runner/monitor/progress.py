"""Progress of a run: counts results, and writes the status file."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nimbus.datagen.episode.trajectory import ACTIVITIES, Outcome, Reason
from nimbus.datagen.errors import StorageError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.stages import Stored
from nimbus.datagen.store.ledger.ledger import Attempt
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.monitor.status import FILE_NAME, STAGES, Event, Status
from nimbus.runner.system.device_meter import DeviceMeter

_SHARED = STAGES[:3]
"""Stages that all variants of an episode share."""
_WRITE_INTERVAL = 0.5
_EVENTS = 100
_OPEN_EPISODES = 4096
"""Largest number of episodes whose CPU times are kept until their last attempt."""
_MOST_REASONS = 200
"""Largest number of reasons of failure that are counted separately; a node of a cluster may report any name."""


class Progress:
    """Keeps a run's :class:`Status` and writes it, at most twice per second.

    Args:
        folder: The dataset's folder.
        task: The task's name.
        target: Number of requested episodes, including variants.
        unit: Word for one of them, ``episode`` or ``layout``.
        already: Number of these that earlier runs have settled.
        already_stored: Number of stored ones among ``already``.
        started: Start of the run [s since 1970]; now by default.
        mode: ``cell``, ``serial`` or ``coupled``.
        launcher: Process id of the launcher; this process by default.
        gpus: UUIDs of the GPUs of the run, whose busy time is measured from the first order on.
    """

    def __init__(
        self,
        folder: Path,
        *,
        task: str,
        target: int,
        unit: str = "episode",
        already: int = 0,
        already_stored: int = 0,
        started: float = 0.0,
        mode: str = "",
        launcher: int = 0,
        gpus: Sequence[str] = (),
    ) -> None:
        now = time.time()
        self.status = Status(
            task=task,
            mode=mode,
            target=target,
            unit=unit,
            already=already,
            already_stored=already_stored,
            pid=os.getpid(),
            launcher=launcher or os.getpid(),
            started=started or now,
            updated=now,
        )
        self.folder = folder
        self._path = folder / FILE_NAME
        self._written = 0.0
        self._gpus = tuple(gpus)
        self._meter: DeviceMeter | None = None
        self._plans: dict[tuple[int, int], None] = {}
        self._costs: dict[int, float] = {}
        self._write()

    @property
    def meter_pid(self) -> int:
        """Process id of the program that measures GPUs; 0 for none."""
        return self._meter.pid if self._meter else 0

    def activity(self, text: str) -> None:
        """Set the run's activity; empty during normal work."""
        self.status.activity = text
        self._touch()

    def add(self, stored: Stored, *, is_new: bool | None = None) -> None:
        """Count the result of an attempt.

        Args:
            stored: The attempt.
            is_new: True if no other variant has shown its plan; determined if None.
        """
        status = self.status
        if is_new is None:
            plan = (stored.index, stored.attempt)
            is_new = plan not in self._plans
            self._plans[plan] = None
            _forget_oldest(self._plans)
        status.activity = ""
        failed = not stored.outcome.success
        status.attempts += is_new
        if failed:
            reason = stored.outcome.reason.value
            if reason not in status.failures and len(status.failures) >= _MOST_REASONS:
                reason = "other"
            status.failures[reason] = status.failures.get(reason, 0) + is_new
            status.given_up += stored.final
        if stored.path:
            status.stored += 1
            status.byte_count += stored.byte_count
            status.step_count += stored.step_count
        reached = (_SHARED if is_new else ()) + (() if failed else STAGES[3:])
        for stage in reached:
            status.counts[stage] = status.counts.get(stage, 0) + 1
        for name, seconds in stored.times.items():
            table = status.waits if name.endswith("_wait") else status.cpu_times
            table[name] = table.get(name, 0.0) + seconds
        self._cost(stored)
        self._touch()

    def _cost(self, stored: Stored) -> None:
        """Add the cost of an episode, with all its attempts and variants."""
        cpu = sum(seconds for name, seconds in stored.times.items() if name in STAGES[1:])
        cost = self._costs.pop(stored.index, 0.0) + cpu
        self._costs[stored.index] = cost
        _forget_oldest(self._costs)
        self.status.longest_episode = max(self.status.longest_episode, cost)

    def tell(self, text: str, *, kind: str = "episode") -> None:
        """Record an event.

        Args:
            text: One line.
            kind: Kind of the event, one of :attr:`Event.kind`.
        """
        events = self.status.events
        number = events[-1].number + 1 if events else 1
        event = Event(number=number, text=text, kind=kind, time=time.time())
        self.status.events = (*events[-_EVENTS + 1 :], event)
        self._touch()

    def end_phase(self, name: str, *, following: str = "") -> None:
        """End a phase of the start-up.

        Args:
            name: Name of the phase: ``load``, ``compile`` or ``workers``.
            following: Description of the next phase, for an output line with the remaining episodes.
        """
        status = self.status
        status.phases[name] = max(0.0, time.time() - status.started - sum(status.phases.values()))
        if following:
            status.activity = f"{following}, then {_remaining(status)}"
            self.tell(f"{name}: {status.phases[name]:.1f} s; now {status.activity}", kind="phase")

    def ready(self) -> None:
        """End the start-up at the first order or the first episode."""
        status = self.status
        if not status.startup_seconds:
            status.startup_seconds = max(1e-3, time.time() - status.started)
            self._meter = DeviceMeter(self._gpus, self.folder)
            phases = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in status.phases.items())
            text = f"start-up: {status.startup_seconds:.1f} s" + (f" ({phases})" if phases else "")
            self.tell(f"{text}; now {_remaining(status)}", kind="phase")

    def update(self, **values: object) -> None:
        """Set fields of the status."""
        for name, value in values.items():
            setattr(self.status, name, value)
        self._touch()

    def flush(self) -> None:
        """Write the status now."""
        self.status.updated = time.time()
        self._write()

    def finish(self, state: str) -> None:
        """Write the final status: ``done``, ``short``, ``interrupted`` or ``failed``."""
        self.status.state = state
        self.status.activity = ""
        if self._meter:
            self._meter.close()
        self.flush()

    def _touch(self) -> None:
        self.status.updated = time.time()
        if self.status.updated - self._written >= _WRITE_INTERVAL:
            self._write()

    def _write(self) -> None:
        self._written = self.status.updated
        if self._meter:
            self.status.busy_times = self._meter.read(own_bytes=self.status.byte_count)
        # A full disk is handled where episodes are stored; the status file must not end the run.
        with suppress(OSError, StorageError):
            replace_text(self._path, to_json(self.status.to_plain()) + "\n", durable=False)


def _remaining(status: Status) -> str:
    left = status.target - status.settled
    return f"{left} {status.unit}{'s' * (left != 1)}"


def _forget_oldest(table: dict[Any, Any]) -> None:
    if len(table) > _OPEN_EPISODES:
        del table[next(iter(table))]


def line(stored: Stored, status: Status) -> str:
    """Describe one attempt in a line, without the shared load time."""
    seconds = sum(value for name, value in stored.times.items() if name in STAGES[1:])
    head = f"[{status.settled}/{status.target}] {stored.episode_id}"
    if stored.outcome.success:
        size = f"{stored.step_count} steps, {stored.byte_count / 1e6:.1f} MB"
        return f"{head}: stored, {size}, {seconds:.1f} s CPU"
    why = stored.outcome.reason.value.replace("_", " ")
    phase = stored.outcome.phase
    if activity := ACTIVITIES.get(phase):
        return f"{head}: failed: {why} ({activity}), {seconds:.1f} s CPU"  # of a policy, which has one attempt
    return f"{head}: attempt {stored.attempt + 1} failed{f' in {phase}' if phase else ''}: {why}, {seconds:.1f} s CPU"


def stored_of(attempt: Attempt) -> Stored:
    """Return a ledger row in the form of a writer's result."""
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
        byte_count=attempt.stored_bytes,
        times=attempt.times,
    )
