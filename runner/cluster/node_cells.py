"""Cells of a node, one per task, and the episodes that the node holds for each."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nimbus.datagen.store.ledger.records import Fault
from nimbus.runner.cluster.machine import free_disk
from nimbus.runner.cluster.messages import CellTask, Leased, NodeReading
from nimbus.runner.cluster.node_cell import NodeCell
from nimbus.runner.cluster.outbox import CellResult
from nimbus.runner.monitor.node_details import shorten
from nimbus.runner.monitor.status import Status
from nimbus.runner.system.processes import resident_bytes


@dataclass
class HeldWork:
    """Episodes of one group that a node holds."""

    queued: deque[tuple[int, int]] = field(default_factory=deque)
    """Index and lease of each episode that was not passed to the cell yet."""
    fed: dict[int, int] = field(default_factory=dict)
    """Lease of each episode that was passed to the cell, by index."""

    @property
    def indices(self) -> set[int]:
        """Indices of all held episodes of the group."""
        return {*self.fed, *(index for index, _ in self.queued)}


class NodeCells:
    """Starts and stops the cells of a node, and passes held episodes to them.

    Args:
        folder: Folder of the node.
        slots: Number of workers of the node.
        delivered: Returns the indices of the finished episodes of a group that the head has not acknowledged.
    """

    def __init__(self, folder: Path, slots: int, *, delivered: Callable[[str], set[int]]) -> None:
        self._folder, self._slots, self._delivered = folder, slots, delivered
        self.tasks: dict[str, CellTask] = {}
        self.cells: dict[str, NodeCell] = {}
        self.held: dict[str, HeldWork] = {}

    def add(self, task: CellTask) -> None:
        """Add a task; results that an earlier agent of this node did not deliver count as held again."""
        self.tasks[task.group] = task
        if task.group in self.held:
            return
        work = self.held[task.group] = HeldWork()
        cell = NodeCell(task, self._folder, slots=self._slots)
        for index in cell.unreported():
            work.fed[index] = 0
        if work.fed:
            self.cells[task.group] = cell

    def enqueue(self, lease: Leased) -> None:
        """Queue the episodes of a lease, except those that this node holds already.

        After a restart of the head, a lease may list episodes that are finished but not acknowledged.
        """
        work = self.held[lease.group]
        known = work.indices | self._delivered(lease.group)
        work.queued.extend((index, lease.number) for index in lease.indices if index not in known)

    def take_back(self, count: int) -> dict[str, tuple[int, ...]]:
        """Remove up to ``count`` queued episodes; return their indices by group."""
        taken: dict[str, tuple[int, ...]] = {}
        for group, work in self.held.items():
            if back := tuple(work.queued.pop()[0] for _ in range(min(count, len(work.queued)))):
                count -= len(back)
                taken[group] = back
        return taken

    @property
    def holdings(self) -> dict[str, tuple[int, ...]]:
        """Indices of all held episodes by group, including finished ones that the head has not acknowledged."""
        held = {group: work.indices | self._delivered(group) for group, work in self.held.items()}
        return {group: tuple(sorted(indices)) for group, indices in held.items() if indices}

    @property
    def fed_count(self) -> int:
        """Number of episodes passed to cells."""
        return sum(len(work.fed) for work in self.held.values())

    @property
    def queued_count(self) -> int:
        """Number of episodes not yet passed to a cell."""
        return sum(len(work.queued) for work in self.held.values())

    @property
    def fed(self) -> Mapping[str, Iterable[int]]:
        """Indices of the episodes passed to cells, by group."""
        return {group: tuple(work.fed) for group, work in self.held.items() if work.fed}

    @property
    def running(self) -> list[NodeCell]:
        """Cells whose process is running."""
        return [cell for cell in self.cells.values() if cell.is_running]

    @property
    def spool_bytes(self) -> int:
        """Limit on the size of results that wait for upload [bytes]; 0 for no limit."""
        return max((cell.spool_bytes for cell in self.cells.values()), default=0)

    @property
    def failure(self) -> str:
        """Reason why a cell cannot work on this node; empty if all can."""
        return next((cell.failure for cell in self.cells.values() if cell.failure), "")

    def keep_fed(self, now: float, *, is_idle_long: bool, is_full: bool = False) -> None:
        """Run the cells that have work and feed them; stop idle ones.

        Args:
            now: Time of the monotonic clock [s].
            is_idle_long: True if the node has had no lease for so long that cells without work are stopped.
            is_full: True if no room is left for results; cells then get no further episodes.
        """
        for group, work in self.held.items():
            is_busy = bool(work.queued or work.fed)
            if is_busy and group not in self.cells:
                self.cells[group] = NodeCell(self.tasks[group], self._folder, slots=self._slots)
            if (cell := self.cells.get(group)) is None:
                continue
            if is_busy:
                cell.keep_running(now)
            if cell.failure:
                continue
            if cell.is_fit():
                while work.queued and len(work.fed) < 2 * cell.slots and not is_full:
                    index, lease = work.queued.popleft()
                    work.fed[index] = lease
                cell.feed(work.fed)
            if not is_busy and cell.is_running and is_idle_long:
                cell.close_feed()

    def collect(self) -> list[tuple[NodeCell, Sequence[tuple[int, CellResult]], Sequence[Fault]]]:
        """Return the cells, each with its newly finished episodes (lease and result) and its new faults."""
        found: list[tuple[NodeCell, Sequence[tuple[int, CellResult]], Sequence[Fault]]] = []
        for group, cell in self.cells.items():
            work = self.held[group]
            results = [(work.fed.pop(result.index), result) for result in cell.results(list(work.fed))]
            found.append((cell, results, cell.faults()))
        return found

    def details(self) -> Status | None:
        """Return the status of the cell that works, shortened for one message; None without one."""
        status = self.running[0].status() if self.running else None
        return shorten(status) if status else None

    def read(self, *, is_leaving: bool, is_full: bool, outbox_bytes: int) -> NodeReading:
        """Return the state of the node for a heartbeat.

        Args:
            is_leaving: True if the node begins no more episodes.
            is_full: True if no room is left for results.
            outbox_bytes: Size of finished, unacknowledged episodes [bytes].
        """
        running = self.running
        workers = [worker for cell in running if (status := cell.status()) for worker in status.workers]
        ready = any(cell.is_fit() for cell in running)
        state = "idle" if not running else "full" if is_full else "working" if ready else "starting"
        return NodeReading(
            state="draining" if is_leaving else state,
            resident_bytes=sum(worker.resident for worker in workers) + resident_bytes(os.getpid()),
            disk_free_bytes=free_disk(self._folder),
            outbox_bytes=outbox_bytes,
            workers=len(workers),
            phases=dict(Counter(worker.phase for worker in workers)),
            group=running[0].task.group if running else "",
        )
