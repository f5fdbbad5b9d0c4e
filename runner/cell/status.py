"""Status file of a cell: workers, slots, faults."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.fault_handler import FaultHandler
from nimbus.runner.cell.transport.shared_slots import SlotState
from nimbus.runner.cell.watchdog import Watchdog
from nimbus.runner.monitor.progress import Progress
from nimbus.runner.monitor.status import RingStatus, WorkerStatus

_PERIOD = 0.25
"""Interval between two writes of the status file [s]."""


class CellStatus:
    """Gathers and writes the status a few times per second."""

    def __init__(
        self, progress: Progress, dispatcher: Dispatcher, fault_handler: FaultHandler, watchdog: Watchdog
    ) -> None:
        self._progress, self._dispatcher = progress, dispatcher
        self._fault_handler, self._watchdog = fault_handler, watchdog
        self._next = 0.0

    def write(self) -> None:
        """Write the status if it is due."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PERIOD
            self._gather()

    def finish(self, state: str) -> None:
        """Write the status at the end of the run."""
        self._gather()
        self._progress.finish(state)

    def _gather(self) -> None:
        slots = self._dispatcher.plan_slots.counts
        self._progress.update(
            workers=tuple(self._workers()),
            ring=RingStatus(
                slots=sum(slots.values()),
                ready=slots[SlotState.READY],
                taken=slots[SlotState.TAKEN],
                granted=slots[SlotState.GRANTED],
                spilled=self._dispatcher.plan_slots.spilled_count,
            ),
            faults=dict(self._fault_handler.counts),
            recycled=self._fault_handler.recycled,
            switches=self._dispatcher.switches,
        )

    def _workers(self) -> Iterator[WorkerStatus]:
        pool = self._dispatcher.pool
        for handle in pool:
            reading = pool.heartbeats.snapshot(handle.row)
            yield WorkerStatus(
                number=handle.number,
                seat=handle.row,
                pid=handle.pid,
                role=handle.role,
                phase=reading.phase,
                index=reading.index,
                age=round(reading.age_s, 2),
                in_phase=round(reading.in_phase_s, 2),
                retiring=handle.retiring,
                resident=self._watchdog.resident.get(handle.number, 0),
                results=handle.results,
                gpu=handle.gpu,
            )
