"""Delivery of a node's results: uploads and reports them while the node works, and removes acknowledged ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.own_files import own_path
from nimbus.datagen.store.failpoints import failpoint
from nimbus.datagen.store.ledger.records import Fault
from nimbus.datagen.store.remote.send import ConflictError
from nimbus.runner.cluster.delivery import EpisodeUploader, UploadedFiles, attempt_key
from nimbus.runner.cluster.messages import (
    MOST_LETTERS,
    Answer,
    Description,
    Faults,
    Report,
    Reported,
    Request,
    Vote,
)
from nimbus.runner.cluster.node_cell import NodeCell
from nimbus.runner.cluster.outbox import CellResult, Outbox, OutboxEntry
from nimbus.runner.cluster.store_delivery import open_uploader

_THREADS = 2
"""Number of parallel uploads: one transfers data while the other reads and hashes files."""
_RETRY = 1.0
"""Delay before an unanswered report is repeated [s]."""
_AWAY = 5.0
"""Delay of further uploads after the destination of an upload did not answer [s]."""
_MOST_MISSING = 5
"""Number of reports with missing files, for one episode, after which this node leaves."""
_FAULTS = 8
"""Largest number of faults in a message."""


@dataclass
class _WaitingFaults:
    """Faults that are reported once the folders of their incidents are uploaded."""

    group: str
    rows: Sequence[Fault]
    places: Future[list[str]]
    """Paths of the incidents' folders in the dataset."""


class NodeDelivery:
    """Uploads the results of a node, and reports them to the head.

    Args:
        node: Name of the node.
        slots: Number of slots of the node.
        ask: Sends a request to the head; returns None without an answer.
        cells: Cells of the node, by group.
        places: Returns the destination of a group's uploads.
        sign: Requests a signed URL from the head, given group, name of the object and method; called in threads.
    """

    def __init__(
        self,
        node: str,
        slots: int,
        ask: Callable[[Request], Answer | None],
        cells: Mapping[str, NodeCell],
        places: Callable[[str], str],
        sign: Callable[[str, str, str], str],
    ) -> None:
        self.failure = ""
        """Reason why nothing can be uploaded, in one line."""
        self._node, self._slots, self._ask, self._cells, self._places = node, slots, ask, cells, places
        self._sign = sign
        self._outbox = Outbox()
        self._pool = ThreadPoolExecutor(_THREADS)
        self._uploaders: dict[str, EpisodeUploader] = {}
        self._faults: list[_WaitingFaults] = []
        self._upload_at = self._report_at = self._fault_at = 0.0
        self._last_result = 0.0
        self._pressure = 1.0
        """Recent ratio of a slot's wall-clock time to the CPU time of its episodes."""

    def add(self, group: str, lease: int, result: CellResult, now: float) -> None:
        """Add the result of an episode."""
        entry = self._outbox.add(group, lease, result, seconds=self._slot_seconds(result, now))
        if entry.refused:
            self._add_fault(entry, "too_large", entry.evidence)

    def add_faults(self, cell: NodeCell, rows: Sequence[Fault]) -> None:
        """Add faults of a cell; the folders of their incidents are uploaded as well."""
        places = self._pool.submit(self._upload_incidents, cell, rows)
        self._faults.append(_WaitingFaults(cell.task.group, rows, places))

    def indices(self, group: str) -> set[int]:
        """Return the indices of a group's unacknowledged episodes."""
        return self._outbox.indices(group)

    @property
    def byte_count(self) -> int:
        """Size of the files of all unacknowledged episodes [bytes]."""
        return self._outbox.byte_count

    @property
    def is_empty(self) -> bool:
        """True if all results and faults are acknowledged."""
        return self._outbox.is_empty and not self._faults

    def go_on(self, now: float) -> None:
        """Continue the delivery: start uploads, and report the uploaded episodes.

        Uploads run in threads; each message waits for the answer of the head, up to the time limit of ``ask``.
        """
        self._send_faults(now)
        for entry in self._outbox.waiting_for_upload():
            self._upload(entry, now)
        for entry in self._outbox.waiting_for_vote():
            self._vote(entry)
        if now >= self._report_at:
            self._report(now)

    def describe(self) -> None:
        """Send the new content of the cells' ``dataset.json`` since the last report; called before the node leaves."""
        for group, cell in self._cells.items():
            if (text := cell.info_text()) and self._ask(Description(node=self._node, group=group, info=text)) is None:
                cell.forget_info()

    def close(self) -> None:
        """Cancel waiting uploads; results that are not reported stay in the node's folder."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _vote(self, entry: OutboxEntry) -> None:
        """Send the evidence against an episode; its other rows are durable by now."""
        index, evidence = entry.result.index, entry.evidence[:MOST_LETTERS]
        if self._ask(Vote(node=self._node, group=entry.group, index=index, evidence=evidence)):
            self._outbox.drop(entry)

    def _upload(self, entry: OutboxEntry, now: float) -> None:
        """Start the upload of an episode, or handle its end."""
        if entry.evidence and not any(row.path or row.failure for row in entry.rows):
            entry.is_uploaded = True
            return
        if entry.upload is None:
            if now >= self._upload_at and not self.failure:
                entry.upload = self._pool.submit(self._send, entry)
            return
        if not entry.upload.done():
            return
        done, entry.upload = entry.upload, None
        try:
            entry.files, differing = done.result()
        except StorageError:
            self._upload_at = now + _AWAY
        except InputError as error:
            self.failure = str(error)
        else:
            entry.is_uploaded = True
            entry.refuse(differing)
            for text in differing.values():
                self._add_fault(entry, "differs", text)
            failpoint("after_upload")

    def _send(self, entry: OutboxEntry) -> tuple[dict[str, UploadedFiles], dict[str, str]]:
        """Upload the files of an episode.

        If the store has an object of this name with other content, it belongs to the result of another node, whose row
        may or may not be stored. A row of this node would not describe the object, so the row is left out.
        """
        uploader, folder = self._uploader(entry.group), self._cells[entry.group].folder
        files: dict[str, UploadedFiles] = {}
        differing: dict[str, str] = {}
        for row in entry.rows:
            if row.path or row.failure:
                try:
                    files[attempt_key(row)] = uploader.upload(row, folder)
                except ConflictError as error:
                    differing[attempt_key(row)] = f"{row.episode_id}: not deterministic: {error}"
        return files, differing

    def _add_fault(self, entry: OutboxEntry, kind: str, text: str) -> None:
        """Report a fault of an episode that was found here, and not by its cell."""
        values = {"time": time.time(), "run": 0, "worker": "delivery", "kind": kind, "phase": "deliver"}
        row = Fault(**values, idx=entry.result.index, lease=entry.lease, detail=text)
        self.add_faults(self._cells[entry.group], [row])

    def _report(self, now: float) -> None:
        for entries, episodes in self._outbox.reports():
            cell = self._cells[entries[0].group]
            if any(row.path for entry in entries for row in entry.rows) and not cell.has_features():
                self._report_at = now + 0.5
                return
            answer = self._ask(Report(node=self._node, episodes=episodes, info=cell.info_text()))
            if not isinstance(answer, Reported) or answer.is_full:
                cell.forget_info()
                self._report_at = now + _RETRY
                return
            missing = set(answer.missing)
            for entry in entries:
                if (entry.group, entry.result.index) in missing:
                    entry.is_uploaded = False
                    entry.missing_count += 1
                    if entry.missing_count >= _MOST_MISSING:
                        place = self._places(entry.group)
                        self.failure = f"the head finds no files of this node in {place}; its folder may differ"
                elif entry.is_complete and entry.evidence:
                    entry.is_reported = True
                elif entry.is_complete:
                    self._outbox.drop(entry)
                    cell.remove_files(entry.result.attempts)

    def _send_faults(self, now: float) -> None:
        if now < self._fault_at:
            return
        for waiting in [waiting for waiting in self._faults if waiting.places.done()]:
            rows = [
                replace(row, incident=place, detail=row.detail[:MOST_LETTERS])
                for row, place in zip(waiting.rows, waiting.places.result(), strict=True)
            ]
            for begin in range(0, len(rows), _FAULTS):
                message = Faults(node=self._node, group=waiting.group, rows=tuple(rows[begin : begin + _FAULTS]))
                if self._ask(message) is None:
                    self._fault_at = now + _RETRY  # report all rows again; the head ignores known ones
                    return
            self._faults.remove(waiting)

    def _upload_incidents(self, cell: NodeCell, rows: Sequence[Fault]) -> list[str]:
        return [self._upload_incident(cell, row.incident) if row.incident else "" for row in rows]

    def _upload_incident(self, cell: NodeCell, path: str) -> str:
        """Upload the folder of an incident; return its path in the dataset, empty if the upload fails."""
        try:
            uploader = self._uploader(cell.task.group)
            return uploader.upload_incident(own_path(cell.folder, path), f"{self._node}-{Path(path).name}")
        except (InputError, OSError):
            return ""

    def _uploader(self, group: str) -> EpisodeUploader:
        place = self._places(group)
        if place not in self._uploaders:
            self._uploaders[place] = open_uploader(place, self._node, sign=partial(self._sign, group))
        return self._uploaders[place]

    def _slot_seconds(self, result: CellResult, now: float) -> float:
        """Estimate the wall-clock time of a slot for an episode from its CPU time and their recent ratio [s]."""
        cpu = result.cpu_seconds
        if self._last_result and cpu > 0:
            wall = (now - self._last_result) * self._slots
            self._pressure += 0.2 * (min(20.0, max(0.5, wall / cpu)) - self._pressure)
        self._last_result = now
        return cpu * self._pressure
