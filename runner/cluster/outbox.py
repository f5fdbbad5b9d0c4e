"""Outbox of a node: finished episodes that the head has not acknowledged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cluster.delivery import UploadedFiles, attempt_key
from nimbus.runner.cluster.messages import MOST_BYTES, EpisodeReport

_ROOM = MOST_BYTES - 32_000
"""Size of the rows in a report [bytes], exceeded only by a single row; the rest of the message is for the node's
``dataset.json``. A larger message is sent in parts."""
_MOST_ROW = 1 << 20
"""Size limit of a row [bytes]; an episode with a larger one is given up."""
_MOST_EPISODES = 8


SentFiles: TypeAlias = tuple[dict[str, UploadedFiles], dict[str, str]]
"""Uploaded files, and the reasons of refused ones, by attempt; see :func:`attempt_key`."""


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """Result of one episode in a cell."""

    index: int
    attempts: tuple[Attempt, ...]
    evidence: str = ""
    """Reason why the cell gave up the episode; empty if it is settled."""

    @property
    def cpu_seconds(self) -> float:
        """CPU time without one-time loading [s]."""
        return sum(attempt.work_seconds for attempt in self.attempts)


@dataclass(eq=False)
class OutboxEntry:
    """Episode in the outbox."""

    group: str
    lease: int
    result: CellResult
    seconds: float
    evidence: str = ""
    """Reason why the episode is to be given up; its rows are reported first. Empty if the rows settle it."""
    refused: set[str] = field(default_factory=set)
    """Attempts that cannot be reported; see :func:`attempt_key`."""
    is_uploaded: bool = False
    missing_count: int = 0
    """Number of reports of this episode after which the head did not find its files."""
    is_complete: bool = False
    """True if the most recent report contained the episode's last row."""
    is_reported: bool = False
    """True if the head has acknowledged all rows of the episode, and only the evidence is left to send."""
    upload: Future[SentFiles] | None = None
    """Upload in progress."""
    files: dict[str, UploadedFiles] = field(default_factory=dict)
    """Uploaded files by attempt; see :func:`~nimbus.runner.cluster.delivery.attempt_key`."""

    @property
    def rows(self) -> list[Attempt]:
        """Attempts to report."""
        return [row for row in self.result.attempts if attempt_key(row) not in self.refused]

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Exclude attempts from the report, with the reason of each; the episode is then given up."""
        self.refused |= reasons.keys()
        self.evidence = self.evidence or next(iter(reasons.values()), "")


class Outbox:
    """Queue of finished episodes that the head has not acknowledged, oldest first."""

    def __init__(self) -> None:
        self._entries: list[OutboxEntry] = []

    def add(self, group: str, lease: int, result: CellResult, *, seconds: float) -> OutboxEntry:
        """Add an episode; rows that no message can contain are refused."""
        entry = OutboxEntry(group, lease, result, seconds, result.evidence)
        sizes = {attempt_key(row): len(msgspec.json.encode(row)) for row in result.attempts}
        what = "bytes in the ledger are too many for a message to the head; the limit is"
        entry.refuse({key: f"{key}: {size} {what} {_MOST_ROW}" for key, size in sizes.items() if size > _MOST_ROW})
        self._entries.append(entry)
        return entry

    def drop(self, entry: OutboxEntry) -> None:
        """Remove an acknowledged episode."""
        self._entries.remove(entry)

    def waiting_for_upload(self) -> list[OutboxEntry]:
        """Return the entries that are not uploaded yet."""
        return [entry for entry in self._entries if not entry.is_uploaded]

    def waiting_for_vote(self) -> list[OutboxEntry]:
        """Return the entries of which only the evidence is left to send."""
        return [
            entry
            for entry in self._entries
            if entry.evidence and entry.is_uploaded and (entry.is_reported or not entry.rows)
        ]

    def indices(self, group: str) -> set[int]:
        """Return the indices of a group's episodes."""
        return {entry.result.index for entry in self._entries if entry.group == group}

    @property
    def byte_count(self) -> int:
        """Size of the files of all entries [bytes]."""
        rows = [row for entry in self._entries for row in entry.result.attempts]
        kept = sum(row.failure.byte_count for row in rows if row.failure)
        return kept + sum(row.stored_bytes for row in rows if row.path)

    @property
    def is_empty(self) -> bool:
        """True if there are no entries."""
        return not self._entries

    def reports(self) -> Iterator[tuple[list[OutboxEntry], tuple[EpisodeReport, ...]]]:
        """Yield the uploaded episodes in reports that each fit into a message.

        An episode with too many rows is split over several reports. All reports of an episode to be given up are
        partial, because they do not settle it.

        Yields:
            Entries and reports of one message; all belong to one group.
        """
        entries: list[OutboxEntry] = []
        episodes: list[EpisodeReport] = []
        room = _ROOM
        for entry in [entry for entry in self._entries if entry.is_uploaded and not entry.is_reported]:
            rows = entry.rows
            if entry.evidence and not rows:
                continue
            sizes = [len(msgspec.json.encode(row)) for row in rows]
            if sum(sizes) > _ROOM:
                yield from self._parts(entry, sizes)
                continue
            is_other = bool(entries) and entries[0].group != entry.group
            if entries and (sum(sizes) > room or len(entries) == _MOST_EPISODES or is_other):
                yield entries, tuple(episodes)
                entries, episodes, room = [], [], _ROOM
            entry.is_complete = True
            entries.append(entry)
            episodes.append(_report(entry, tuple(rows), is_partial=bool(entry.evidence)))
            room -= sum(sizes)
        if entries:
            yield entries, tuple(episodes)

    def _parts(
        self, entry: OutboxEntry, sizes: list[int]
    ) -> Iterator[tuple[list[OutboxEntry], tuple[EpisodeReport, ...]]]:
        """Yield the reports of an episode that does not fit into one message; all but the last are partial."""
        rows: list[Attempt] = []
        room, entry.is_complete = _ROOM, False
        for row, size in zip(entry.rows, sizes, strict=True):
            if rows and size > room:
                yield [entry], (_report(entry, tuple(rows), is_partial=True),)
                if not entry.is_uploaded:  # the head misses files: upload them, then report all parts again
                    return
                rows, room = [], _ROOM
            rows.append(row)
            room -= size
        entry.is_complete = True
        yield [entry], (_report(entry, tuple(rows), is_partial=bool(entry.evidence)),)


def _report(entry: OutboxEntry, rows: tuple[Attempt, ...], *, is_partial: bool = False) -> EpisodeReport:
    files = {key: entry.files[key] for row in rows if (key := attempt_key(row)) in entry.files}
    return EpisodeReport(
        group=entry.group,
        index=entry.result.index,
        lease=entry.lease,
        attempts=rows,
        staged={name: found.staged for name, found in files.items() if found.staged},
        objects={name: size for found in files.values() for name, size in found.objects.items()},
        is_partial=is_partial,
        seconds=0.0 if is_partial else entry.seconds,
    )
