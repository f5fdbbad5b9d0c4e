"""Heartbeats: a worker's main loop writes time and phase of its progress; the supervisor reads them."""

from __future__ import annotations

import struct
import time
from collections import deque
from dataclasses import dataclass

from nimbus.runner.cell.transport.memfd import create_memory, map_memory

PHASES = ("none", "start", "load", "randomize", "plan", "render", "store", "close", "wait")
"""Phases of a worker; a heartbeat stores the position in this tuple. ``none``: no heartbeat yet; ``wait``: no
deadline."""

RECORD_BYTES = 64
_WORDS = RECORD_BYTES // 8
_STAMP, _PHASE, _UNITS, _BEGIN, _INDEX, _LEASE, _EXTENDED, _EDITION = range(_WORDS)
"""Words of a record [monotonic ns for times]; the edition is odd while several words change."""
_NUMBERS = {name: number for number, name in enumerate(PHASES)}
_RETRIES, _PAUSE = 4, 20e-6
"""Number of attempts to read a consistent record, and pause between two [s]."""
_KEPT_SPANS = 10_000
"""Largest number of unreported phases; the oldest are dropped, because spans are statistics only."""


@dataclass(frozen=True)
class HeartbeatReading:
    """One worker's progress at the moment of reading."""

    age_s: float
    """Time since the last heartbeat [s]."""
    in_phase_s: float
    phase: str
    units: int
    """Units of work since the worker began; grows with each heartbeat inside a phase."""
    index: int
    """Episode, -1 for none."""
    lease: int
    extended_s: float = 0.0
    """Remaining extension that the worker has requested [s]."""


class HeartbeatPage:
    """One record per worker in shared memory, with one writer each; its integers are written atomically."""

    def __init__(self, descriptor: int) -> None:
        """Map the page behind a descriptor; see :meth:`create` and :meth:`attach`."""
        self.descriptor = descriptor
        self._words = memoryview(map_memory(descriptor)).cast("q")
        self.count = len(self._words) // _WORDS

    @classmethod
    def create(cls, count: int) -> HeartbeatPage:
        """Create a page with a number of records.

        Raises:
            StorageError: There is no memory for it.
        """
        return cls(create_memory("nimbus-heartbeats", count * RECORD_BYTES))

    @classmethod
    def attach(cls, descriptor: int) -> HeartbeatPage:
        """Map the page of another process, by the descriptor that it sent."""
        return cls(descriptor)

    def writer(self, row: int) -> Heartbeat:
        """Return the writer of a row, for the one process that owns the row."""
        return Heartbeat(self._row(row))

    def reset(self, row: int, phase: str = "start") -> None:
        """Reset a row for a worker about to start: its first phase begins now."""
        now = time.monotonic_ns()
        self._row(row)[:] = memoryview(struct.pack("8q", now, _NUMBERS[phase], 0, now, 0, 0, 0, 0)).cast("q")

    def snapshot(self, row: int) -> HeartbeatReading:
        """Read a row; waits briefly for a write in progress."""
        words = self._row(row)
        record = words.tolist()
        for _ in range(_RETRIES):
            edition, record = words[_EDITION], words.tolist()
            # A writer stopped between two words leaves the edition odd forever; the last copy is used then.
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
    """Writer of one row, called from the main loop only: another thread would prove nothing about the loop."""

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
        """Begin a phase of :data:`PHASES`, and set the episode and the lease if they change.

        Repeating the phase of the same episode and lease is only a heartbeat, and does not restart the limit on its
        duration.
        """
        number = _NUMBERS[name]
        index = self._index if index is None else index + 1
        lease = self._lease if lease is None else lease
        if (number, index, lease) == (self._phase, self._index, self._lease):
            return self.tick()
        self._enter(number, index, lease, self._leave())

    def _enter(self, number: int, index: int, lease: int, now: int, *, spent: float = 0.0) -> None:
        self._phase, self._index, self._lease = number, index, lease
        row = self._row
        self._begin = now - round(spent * 1e9)
        # A seqlock: an odd edition marks a write in progress, and readers retry.
        row[_EDITION] = self._edition + 1
        # The new begin is written before the new phase, so that a phase never looks older than it is.
        row[_STAMP], row[_BEGIN] = now, self._begin
        row[_EXTENDED] = 0
        row[_INDEX], row[_LEASE] = index, lease
        row[_PHASE] = number
        self._edition += 2
        row[_EDITION] = self._edition

    def turn(self, name: str, *, index: int, lease: int, spent: float = 0.0) -> None:
        """Continue one of several episodes that are planned in turn.

        Each episode has its own limit on the duration of the phase, which counts its own turns only.

        Args:
            name: The phase.
            index: The episode; -1 for work on several at once.
            lease: Its lease.
            spent: Time that the episode has already spent in this phase [s].
        """
        if (_NUMBERS[name], index + 1, lease) == (self._phase, self._index, self._lease):
            return self.tick()
        # Deadlines are not learned from this duration: a turn is only a part of the phase.
        self._enter(_NUMBERS[name], index + 1, lease, self._leave(is_whole=False), spent=spent)

    def tick(self, units: int = 1) -> None:
        """Record progress in this phase."""
        now = time.monotonic_ns()
        if now - self._last > self._gap:
            self._gap = now - self._last
        self._last = now
        self._units += units
        row = self._row
        row[_UNITS] = self._units
        row[_STAMP] = now

    def extend(self, seconds: float) -> None:
        """Request an extension: the next step may take this long without a heartbeat; 0 ends the extension."""
        self.tick(0)
        self._row[_EXTENDED] = max(self._row[_EXTENDED], self._last + round(seconds * 1e9)) if seconds else 0

    def take(self) -> dict[str, tuple[float, float]]:
        """Return, for each phase ended since the last call, the largest heartbeat gap and the longest duration [s]."""
        taken, self._longest = self._longest, {}
        return {PHASES[number]: (gap / 1e9, stay / 1e9) for number, (gap, stay) in taken.items()}

    def take_spans(self, most: int = 1000) -> list[tuple[str, float, float]]:
        """Return the oldest phases ended since the last call, at most ``most``: name, begin and end [s since 1970]."""
        return [self._spans.popleft() for _ in range(min(most, len(self._spans)))]

    def _leave(self, *, is_whole: bool = True) -> int:
        """Record the end of the current phase, or of a turn in it; return the time of that end [monotonic ns]."""
        now, wall = time.monotonic_ns(), time.time()
        gap, stay = max(self._gap, now - self._last), now - self._begin
        known_gap, known_stay = self._longest.get(self._phase, (0, 0))
        name = PHASES[self._phase]
        if self._phase:
            self._longest[self._phase] = max(gap, known_gap), max(stay if is_whole else 0, known_stay)
            # Consecutive spans of one phase become one: an episode of thousands of heartbeats has a handful of spans.
            if self._spans and self._spans[-1][0] == name and self._spans[-1][2] == self._since:
                self._since = self._spans.pop()[1]
            self._spans.append((name, self._since, wall))
        self._last, self._begin, self._gap, self._since = now, now, 0, wall
        return now
