"""Watchdog: checks heartbeats and memory of workers, records the stacks of slow ones, and kills hung ones."""

from __future__ import annotations

import time
from dataclasses import replace

from nimbus.datagen.machine import total_memory
from nimbus.runner.cell.queue.deadlines import Amnesty, Deadlines, Timeliness
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.system import processes

_MEMORY_PERIOD = 1.0
"""Interval between two checks of memory [s]."""
_SHARE = 0.8
"""Fraction of the machine's memory that all workers together may hold."""


class Watchdog:
    """Checks every worker of a pool once a tick.

    Args:
        pool: The workers.
        deadlines: Limits of each phase.
        tick: Interval between two checks [s].
        memory_limit: Memory that a worker may hold [bytes]; 0 for its share of the machine's memory.
    """

    def __init__(self, pool: WorkerPool, deadlines: Deadlines, *, tick: float, memory_limit: int = 0) -> None:
        self._pool, self.deadlines = pool, deadlines
        self.amnesty = Amnesty(tick)
        self._memory_limit = memory_limit
        self._total_memory = total_memory()
        self._next_memory = 0.0
        self.resident: dict[int, int] = {}
        """Resident memory by worker [bytes]."""

    def look(self, now: float) -> None:
        """Check all workers.

        Args:
            now: Monotonic time [s].
        """
        self.amnesty.late(time.monotonic())
        for handle in self._pool:
            if handle.pid and not handle.ending:
                self._judge(handle)
        if now >= self._next_memory:
            self._next_memory = now + _MEMORY_PERIOD
            self._weigh()

    def _judge(self, handle: WorkerHandle) -> None:
        reading, now = self._pool.heartbeats.snapshot(handle.row), time.monotonic()
        self.amnesty.late(now)  # called after the reading, because a pause within this loop makes ages longer, too
        # A worker that waits has no deadline. Once it has an order, the time until its first reaction is limited.
        if reading.phase == "wait" and not handle.is_idle and handle.ordered:
            age = min(now - handle.ordered, reading.age_s)
            reading = replace(reading, phase="order", age_s=age, in_phase_s=age)
        verdict = self.deadlines.judge(reading, amnesty=self.amnesty)
        if verdict is Timeliness.SLOW and not handle.suspected:
            handle.suspected = True
            if reading.units:  # before its first heartbeat a worker loads and cannot dump its stacks
                self._pool.dump(handle)
        elif verdict is Timeliness.OK:
            handle.suspected = False
        elif verdict is Timeliness.HUNG:
            self._pool.kill(handle, why=self.deadlines.complaint(reading, amnesty=self.amnesty))

    def _weigh(self) -> None:
        limit = self._memory_limit or int(_SHARE * self._total_memory / max(1, len(self._pool)))
        self.resident = {handle.number: processes.resident_bytes(handle.pid) for handle in self._pool if handle.pid}
        for handle in self._pool:
            # A fresh worker is spared: its successor would grow to the same size.
            if self.resident.get(handle.number, 0) > limit and not handle.retiring and not handle.is_fresh:
                handle.retiring = f"holds {self.resident[handle.number] / 1e6:.0f} MB, at most {limit / 1e6:.0f}"
