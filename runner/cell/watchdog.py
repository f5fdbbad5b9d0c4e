"""The watchdog: looks at the workers' stamps and memory, writes down the stacks of slow ones, and ends hung ones."""

from __future__ import annotations

import time
from dataclasses import replace

from nimbus.runner.cell.queue.deadlines import Amnesty, Deadlines, Verdict
from nimbus.runner.cell.worker_pool import Crew, Member
from nimbus.runner.system import processes

_MEMORY_PERIOD = 1.0
"""[s]"""
_SHARE = 0.8
"""Of the machine's memory, all workers together."""


class Watchdog:
    """Judges every worker of a crew, once a tick.

    Args:
        crew: Whom to watch.
        deadlines: How long each phase may take.
        tick: [s] between two looks.
        memory_limit: [bytes] a worker may hold; 0: a share of the machine's memory.
    """

    def __init__(self, crew: Crew, deadlines: Deadlines, *, tick: float, memory_limit: int = 0) -> None:
        self._crew, self.deadlines = crew, deadlines
        self.amnesty = Amnesty(tick)
        self._memory_limit = memory_limit
        self._total_memory = processes.total_memory()
        self._next_memory = 0.0
        self.resident: dict[int, int] = {}
        """[bytes] by worker"""

    def look(self, now: float) -> None:
        """Judge all workers.

        Args:
            now: [s] of the monotonic clock.
        """
        self.amnesty.late(time.monotonic())
        for member in self._crew:
            if member.pid and not member.ending:
                self._judge(member)
        if now >= self._next_memory:
            self._next_memory = now + _MEMORY_PERIOD
            self._weigh()

    def _judge(self, member: Member) -> None:
        reading, now = self._crew.stamps.snapshot(member.seat), time.monotonic()
        self.amnesty.late(now)  # after the reading: a pause in the middle of this loop makes ages long as well
        if reading.phase == "wait" and not member.is_idle and member.ordered:
            age = min(now - member.ordered, reading.age_s)
            reading = replace(reading, phase="order", age_s=age, in_phase_s=age)
        verdict = self.deadlines.judge(reading, amnesty=self.amnesty)
        if verdict is Verdict.SLOW and not member.suspected:
            member.suspected = True
            if reading.units:  # who has never stamped still loads, and has nobody to write its stacks
                self._crew.dump(member)
        elif verdict is Verdict.OK:
            member.suspected = False
        elif verdict is Verdict.HUNG:
            self._crew.kill(member, why=self.deadlines.complaint(reading, amnesty=self.amnesty))

    def _weigh(self) -> None:
        limit = self._memory_limit or int(_SHARE * self._total_memory / max(1, len(self._crew)))
        self.resident = {member.number: processes.resident_bytes(member.pid) for member in self._crew if member.pid}
        for member in self._crew:
            # One that has done nothing yet would only be followed by another of the same size.
            if self.resident.get(member.number, 0) > limit and not member.retiring and not member.is_fresh:
                member.retiring = f"holds {self.resident[member.number] / 1e6:.0f} MB, at most {limit / 1e6:.0f}"
