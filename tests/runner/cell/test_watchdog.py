"""The watchdog's check of the workers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nimbus.runner.cell import watchdog
from nimbus.runner.cell.queue.deadlines import Bounds, Deadlines
from nimbus.runner.cell.watchdog import Watchdog
from nimbus.runner.cell.worker.heartbeat import HeartbeatReading

PAUSE = 30.0


class Crew(list[Any]):
    """Planning workers; the machine pauses while the heartbeat of the second one is read."""

    def __init__(self, clock: Any) -> None:
        super().__init__(SimpleNamespace(pid=9, row=row, number=row, ending="", suspected=False) for row in (0, 1))
        self.heartbeats, self.clock, self.killed = self, clock, []

    def snapshot(self, row: int) -> HeartbeatReading:
        if row == 1 and self.clock.pauses:
            self.clock.now += self.clock.pauses.pop()
        age = self.clock.now - self.clock.stamped
        return HeartbeatReading(age_s=age, in_phase_s=age, phase="plan", units=3, index=0, lease=1, extended_s=0.0)

    def dump(self, handle: Any) -> None:
        pass

    def kill(self, handle: Any, *, why: str) -> None:
        self.killed.append(handle.row)
        handle.ending = why


@pytest.mark.parametrize("pauses", [True, False], ids=["paused", "hanging"])
def test_who_was_paused_in_the_middle_of_a_look_has_not_hung(monkeypatch: pytest.MonkeyPatch, pauses: bool):
    clock = SimpleNamespace(now=100.0, stamped=100.0, pauses=[PAUSE] if pauses else [])
    monkeypatch.setattr(watchdog.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(watchdog.processes, "resident_bytes", lambda pid: 0)
    pool: Any = Crew(clock)
    watching = Watchdog(pool, Deadlines({"plan": Bounds.fixed(1.0, 100.0)}), tick=0.1)
    watching.look(clock.now)
    for _ in range(12):
        clock.now += 0.1
        watching.look(clock.now)
        if pauses:  # they continue
            clock.stamped = clock.now
    assert pool.killed == ([] if pauses else [0, 1])
