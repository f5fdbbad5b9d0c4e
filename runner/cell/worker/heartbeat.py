"""Heartbeats: each worker's main loop writes the time and phase of its last progress; the supervisor reads them."""

from __future__ import annotations

import struct
import time
from collections import deque
from dataclasses import dataclass

from nimbus.runner.cell.transport.memfd import create_memory, map_memory

PHASES = ("none", "start", "load", "randomize", "plan", "render", "store", "close", "wait")
"""Phases of a worker; a heartbeat holds the position. ``none``: no heartbeat yet; ``wait`` has no deadline."""

RECORD_BYTES = 64
_WORDS = RECORD_BYTES // 8
_STAMP, _PHASE, _UNITS, _BEGIN, _INDEX, _LEASE, _EXTENDED, _EDITION = range(_WORDS)
"""Words of a record: when and what [monotonic ns], and an edition that is odd while several of them change."""
_NUMBERS = {name: number for number, name in enumerate(PHASES)}
_RETRIES, _PAUSE = 4, 20e-6
_KEPT_SPANS = 10_000


@dataclass(frozen=True)
class HeartbeatReading:
    """One worker's progress, as it is now."""

    age_s: float
    """Since the last heartbeat."""
    in_phase_s: float
    phase: str
    units: int
    """Steps of work since the worker began; grows with each heartbeat inside a phase."""
    index: int
    """Episode, -1 for none."""
    lease: int
    extended_s: float = 0.0
    """For how much longer the worker has asked for patience."""


class HeartbeatPage:
    """One record a worker, in shared memory; each has one writer, and is plain integers that are whole at any time."""

    def __init__(self, descriptor: int) -> None:
        """Map the page behind a descriptor; see :meth:`create` and :meth:`attach`."""
        self.descriptor = descriptor
        self._words = memoryview(map_memory(descriptor)).cast("q")
        self.count = len(self._words) // _WORDS

    @classmethod
    def create(cls, count: int) -> HeartbeatPage:
        """A page with room for that many workers.

        Raises:
            StorageError: There is no memory for it.
        """
        return cls(create_memory("nimbus-heartbeats", count * RECORD_BYTES))

    @classmethod
    def attach(cls, descriptor: int) -> HeartbeatPage:
        """Map the page that another process made and sent the descriptor of."""
        return cls(descriptor)

    def writer(self, row: int) -> Heartbeat:
        """The writer of a row, for the one process that the row is of."""
        return Heartbeat(self._row(row))

    def reset(self, row: int, phase: str = "start") -> None:
        """Give a row to a worker that is about to be started: its first phase begins now."""
        now = time.monotonic_ns()
        self._row(row)[:] = memoryview(struct.pack("8q", now, _NUMBERS[phase], 0, now, 0, 0, 0, 0)).cast("q")

    def snapshot(self, row: int) -> HeartbeatReading:
        """Read a row as it is now; waits for its writer a moment at most."""
        words = self._row(row)
        record = words.tolist()
        for _ in range(_RETRIES):
            edition, record = words[_EDITION], words.tolist()
            # A writer that was stopped between two words leaves the edition odd: then the last copy must do.
            if edition % 2 == 0 and record[_EDITION] == edition:
                break
            time.sleep(_PAUSE)
        now = time.monotonic_ns()
        stamped, phase, units, begin, index, lease, extended, _ = record
        return HeartbeatReading(
            age_s=_age(stamped, now),
            in_phase_s=_age(begin, now),
            phase=PHASES[phase] if 0 <= phase < len(PHASES) else PHASES[0],
            units=units,
            index=index - 1,
            lease=lease,
            extended_s=max(0, extended - now) / 1e9,
        )

    def _row(self, row: int) -> memoryview:
        if not 0 <= row < self.count:
            raise IndexError(f"row {row} of {self.count}")
        return self._words[row * _WORDS : (row + 1) * _WORDS]


def _age(since: int, now: int) -> float:
    return max(0, now - since) / 1e9 if since else 0.0


class Heartbeat:
    """Writes one row, from the main loop only: another thread would prove nothing of the loop."""

    def __init__(self, row: memoryview) -> None:
        self._row = row
        self._edition = row[_EDITION] & ~1
        self._units, self._phase, self._index, self._lease = row[_UNITS], row[_PHASE], row[_INDEX], row[_LEASE]
        self._last = self._begin = row[_BEGIN] or time.monotonic_ns()
        self._gap = 0
        self._since = time.time()
        self._longest: dict[int, tuple[int, int]] = {}
        self._spans: deque[tuple[str, float, float]] = deque(maxlen=_KEPT_SPANS)

    def phase(self, name: str, *, index: int | None = None, lease: int | None = None) -> None:
        """Say what begins: a phase of :data:`PHASES`, and of which episode, where that changes.

        The same phase of the same episode and lease goes on; repeating it is only a heartbeat and does not put off
        the limit on its length.
        """
        number = _NUMBERS[name]
        index = self._index if index is None else index + 1
        lease = self._lease if lease is None else lease
        if (number, index, lease) == (self._phase, self._index, self._lease):
            return self.tick()
        now = self._leave()
        self._phase, self._index, self._lease = number, index, lease
        row = self._row
        row[_EDITION] = self._edition + 1
        # The new beginning comes before the new phase, so that no phase ever looks older than it is.
        row[_STAMP] = row[_BEGIN] = now
        row[_EXTENDED] = 0
        row[_INDEX], row[_LEASE] = index, lease
        row[_PHASE] = number
        self._edition += 2
        row[_EDITION] = self._edition

    def tick(self, units: int = 1) -> None:
        """Say that some work was done in this phase."""
        now = time.monotonic_ns()
        if now - self._last > self._gap:
            self._gap = now - self._last
        self._last = now
        self._units += units
        row = self._row
        row[_UNITS] = self._units
        row[_STAMP] = now

    def extend(self, seconds: float) -> None:
        """Ask for patience: what comes next in this phase may take so long without a heartbeat; 0 ends it."""
        self.tick(0)
        self._row[_EXTENDED] = max(self._row[_EXTENDED], self._last + round(seconds * 1e9)) if seconds else 0

    def take(self) -> dict[str, tuple[float, float]]:
        """By phase left since the last call: the largest gap between heartbeats, and the longest stay [s]."""
        taken, self._longest = self._longest, {}
        return {PHASES[number]: (gap / 1e9, stay / 1e9) for number, (gap, stay) in taken.items()}

    def take_spans(self, most: int = 1000) -> list[tuple[str, float, float]]:
        """Phases left since the last call: name, begin and end [s since 1970]; the oldest, at most so many."""
        return [self._spans.popleft() for _ in range(min(most, len(self._spans)))]

    def _leave(self) -> int:
        """Note the phase that ends now [monotonic ns]."""
        now, wall = time.monotonic_ns(), time.time()
        gap, stay = max(self._gap, now - self._last), now - self._begin
        known_gap, known_stay = self._longest.get(self._phase, (0, 0))
        name = PHASES[self._phase]
        if self._phase:
            self._longest[self._phase] = max(gap, known_gap), max(stay, known_stay)
            if self._spans and self._spans[-1][0] == name and self._spans[-1][2] == self._since:
                self._since = self._spans.pop()[1]
            self._spans.append((name, self._since, wall))
        self._last, self._begin, self._gap, self._since = now, now, 0, wall
        return now
