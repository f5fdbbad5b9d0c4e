"""Handling of worker exits: requeues leases, records the fault, and writes an incident."""

from __future__ import annotations

import logging
import os
import re
import time
from collections import Counter
from typing import Any

from nimbus.datagen.files.own_files import remove_file
from nimbus.datagen.store.ledger.records import Fault
from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.incidents import write_incident
from nimbus.runner.cell.queue.gpu_allocation import is_device_error
from nimbus.runner.cell.queue.lease import Lease
from nimbus.runner.cell.queue.poison import Action, PoisonDetector
from nimbus.runner.cell.queue.restart_backoff import Circuit
from nimbus.runner.cell.transport.messages import WorkerError
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool

logger = logging.getLogger("nimbus.cell")


class FaultHandler:
    """Requeues the work of ended workers and decides which deaths count as evidence.

    Args:
        dispatcher: Takes back leases and slots.
        pool: Heartbeats and logs of the workers.
        evidence: Detector of poison episodes.
        circuit: Circuit breaker for restarts.
        task_text: Task file, copied into incidents.
        run: Number of the run in the ledger.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        pool: WorkerPool,
        *,
        evidence: PoisonDetector,
        circuit: Circuit,
        task_text: str,
        run: int,
    ) -> None:
        self.counts: Counter[str] = Counter()
        """Faults by kind."""
        self.recycled = 0
        """Number of workers that were replaced because they held too much memory."""
        self._dispatcher, self._pool = dispatcher, pool
        self._evidence, self._circuit = evidence, circuit
        self._task_text, self._run = task_text, run
        self._results = 0
        self.incident = "incidents"
        """Folder of the latest incident, relative to the dataset's folder."""

    def handle_exit(self, handle: WorkerHandle, how: str) -> float:
        """Handle the exit of a worker; returns the delay before its row is used again [s].

        Args:
            handle: The worker.
            how: Exit code or signal of its process, in words.
        """
        reading = self._pool.heartbeats.snapshot(handle.row)
        # The heartbeat is read before the row is given to a successor, which resets it.
        leases = self._dispatcher.take_back(handle)
        is_planned = (handle.stopped or handle.retiring) and how == "exit code 0" and not leases
        if is_planned or _is_disk(handle):
            if handle.retiring:
                self.recycled += 1
                self._announce(f"worker {handle.number} left: {handle.retiring}", kind="workers")
            remove_file(handle.log)
            return 0.0
        kind, detail = _kind(handle, how)
        # Without a lease the last phase is stale: the worker had finished that work and was waiting.
        phase = reading.phase if leases or reading.phase in ("start", "load") else "wait"
        index = reading.index if handle.unfinished is None else handle.unfinished
        charged = next((lease for lease in leases if lease.index == index), None)
        is_device = self._is_device_fault(handle, detail)
        text = self._report(handle, "gpu" if is_device else kind, detail, phase, charged)
        remove_file(handle.log)  # the incident already contains the end of the log
        if is_device or charged is None:
            self._announce(text + ("; its work is repeated" if leases else ""), kind="fault")
        if is_device:  # neither the episode nor the cell is at fault
            self._leave_out(handle)
            return handle.backoff.record_end()
        if self._dispatcher.results > self._results:  # a result since the last exit
            self._results = self._dispatcher.results
            self._circuit.result()
        # A worker that has given results proves that the cell can work; only the others count for the circuit breaker.
        if not handle.results:
            suspected = charged is not None and self._evidence.deaths(charged.index) > 0
            self._circuit.ended(f"{detail} in {phase}", at_work=bool(leases), explained=suspected)
        if charged:
            self._charge(handle, charged, phase, text)
        return handle.backoff.record_end()

    def fault(self, kind: str, detail: str, *, log_tail: str = "") -> None:
        """Record a fault of a process other than a worker."""
        self.counts[kind] += 1
        self._announce(f"{kind}: {detail}", kind="fault")
        path = self._incident(kind, detail, worker=-1, phase="", index=-1, lease=0, log_tail=log_tail)
        self._dispatcher.dataset.fault(
            Fault(time=time.time(), run=self._run, worker="", kind=kind, detail=detail, incident=path)
        )

    def _is_device_fault(self, handle: WorkerHandle, detail: str) -> bool:
        trace = handle.trouble.traceback if handle.trouble else self._pool.tail(handle)
        return bool(handle.gpu) and is_device_error(f"{detail}\n{trace}")

    def _leave_out(self, handle: WorkerHandle) -> None:
        """Exclude a GPU after consecutive failures of its workers; the run ends when no GPU is left."""
        gpus = self._pool.gpus
        if gpus.record_failure(handle.gpu):
            self._announce(
                f"GPU {handle.gpu} gets no more workers: its last workers ended with device errors", kind="workers"
            )
        if not gpus.worker_count:
            self._circuit.open(f"every GPU of the run failed, the last one {handle.gpu}")

    def _report(self, handle: WorkerHandle, kind: str, detail: str, phase: str, charged: Lease | None) -> str:
        """Record a fault in the ledger and as an incident; return its line for the output."""
        self.counts[kind] += 1
        # Only the episode of the heartbeat is named. Other leases of the batch had not been started.
        index, number = (charged.index, charged.number) if charged else (-1, 0)
        log = self._pool.tail(handle)
        trace = handle.trouble.traceback if handle.trouble else ""
        path = self._incident(
            kind, detail, worker=handle.row, phase=phase, index=index, lease=number, stack=trace or log, log_tail=log
        )
        fault = Fault(
            time=time.time(),
            run=self._run,
            worker=str(handle.row),
            kind=kind,
            phase=phase,
            idx=index,
            lease=number,
            detail=detail,
            incident=path,
        )
        self._dispatcher.dataset.fault(fault)
        where = f" in {phase}" + (f" of episode {index}" if index >= 0 else "")
        logger.info("worker %d: %s in %s", handle.number, detail, phase)
        return f"worker {handle.number}: {kind.replace('_', ' ')}{where}: {detail}".split("\n")[0][:300]

    def _announce(self, text: str, *, kind: str) -> None:
        self._dispatcher.progress.tell(text.split("\n")[0], kind=kind)

    def _charge(self, handle: WorkerHandle, lease: Lease, phase: str, text: str) -> None:
        """Charge the episode with the death, announce it, and quarantine the episode if it is at fault."""
        trouble = handle.trouble or WorkerError(sort="", line="")
        is_alone = handle.only_index == lease.index
        self._evidence.record_death(
            lease.index, handle.number, phase, role=lease.role, is_isolated=is_alone, same=trouble.same
        )
        if trouble.sort == "lost_plan":
            # Neither the episode nor the worker is at fault, but the plan that cannot be read must not be handed out
            # again.
            self._dispatcher.replan(lease.index)
        verdict = self._evidence.verdict(lease.index)
        self._announce(
            text + ("" if verdict.action is Action.QUARANTINE else "; the episode is repeated"), kind="fault"
        )
        if verdict.action is not Action.RETRY:  # before a quarantine as well: it can fail on a full disk
            self._dispatcher.work.isolate(lease.index)
        if verdict.action is Action.QUARANTINE:
            evidence: dict[str, Any] = {"evidence": verdict.evidence, "last_phase": phase}
            self._dispatcher.quarantine(lease.index, lease.variants, evidence)
            status = self._dispatcher.progress.status
            # The same exception in several episodes ends the run only while nothing is stored: a single success shows
            # that the code works for some episodes.
            if verdict.same and not status.already_stored + status.stored:
                is_last = status.quarantined >= status.target - status.already
                self._circuit.given_up(verdict.same, trouble.line, last=is_last)

    def _incident(self, kind: str, detail: str, **what: Any) -> str:
        path = write_incident(
            self._dispatcher.dataset.folder, kind=kind, detail=detail, task_text=self._task_text, **what
        )
        if path:
            self.incident = os.path.relpath(path, self._dispatcher.dataset.folder)
        return self.incident if path else ""


def _is_disk(handle: WorkerHandle) -> bool:
    return handle.trouble is not None and handle.trouble.sort == "storage"


def _kind(handle: WorkerHandle, how: str) -> tuple[str, str]:
    """Return the name of a fault and a one-line description."""
    if handle.trouble:
        return handle.trouble.sort, handle.trouble.line
    if handle.ending:
        return "hang" if handle.unfinished is None else "no_result", handle.ending
    return re.sub(r"[^a-z0-9]+", "_", how.removeprefix("killed by ").lower()), how
