"""Hits, misses and bytes of a dataset's local copy, summed over all processes and runs of this machine."""

from __future__ import annotations

import atexit
import fcntl
import os
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.own_files import open_shared

FILE_NAME = "traffic.json"
_EACH = 64
"""Number of events between two writes."""
EGRESS_PRICES = {"s3": 0.09, "gs": 0.12, "az": 0.087}
"""List price of a GB (10⁹ bytes) that leaves a cloud for the internet [USD]; within a region it is free."""


@dataclass(kw_only=True)
class Traffic:
    """Counters of one dataset."""

    hits: int = 0
    """Number of files and blocks that were found on this machine."""
    misses: int = 0
    bytes_here: int = 0
    """Bytes read from this machine."""
    bytes_fetched: int = 0
    """Bytes read from the store."""
    peer_hits: int = 0
    """Number of blocks from another node's cache."""
    bytes_from_peers: int = 0
    bytes_sent: int = 0
    objects_sent: int = 0

    @property
    def hit_rate(self) -> float:
        """Fraction of hits, local or on another node, 0 to 1."""
        hits = self.hits + self.peer_hits
        return hits / max(1, hits + self.misses)

    def egress_cost(self, scheme: str) -> float:
        """Return the cost of the fetched bytes at list price [USD]."""
        return self.bytes_fetched / 1e9 * EGRESS_PRICES.get(scheme, 0.0)

    def add(self, other: Traffic) -> None:
        """Add other counters to these."""
        for name, count in asdict(other).items():
            setattr(self, name, getattr(self, name) + count)


class TrafficLog:
    """Counters that wait to be written, by folder of a copy."""

    def __init__(self) -> None:
        self._waiting: dict[Path, Traffic] = {}
        self._events = 0
        self._turn = threading.Lock()
        self._is_registered = False

    def note(self, copy: Path, **counts: int) -> None:
        """Add counts to a copy's counters."""
        with self._turn:
            if not self._is_registered:
                self._is_registered = True
                atexit.register(self.flush)
            self._waiting.setdefault(copy, Traffic()).add(Traffic(**counts))
            self._events += 1
            is_due = self._events % _EACH == 0
        if is_due:
            self.flush()

    def flush(self) -> None:
        """Write the waiting counters; an error here is ignored."""
        with self._turn:
            waiting, self._waiting = self._waiting, {}
        for copy, counts in waiting.items():
            with suppress(OSError):
                _add(copy / FILE_NAME, counts)


def read_traffic(copy: Path) -> Traffic:
    """Read the counters of a copy."""
    try:
        return from_json(Traffic, (copy / FILE_NAME).read_text())
    except (OSError, ValueError):
        return Traffic()


def _add(path: Path, counts: Traffic) -> None:
    descriptor = open_shared(path)
    with os.fdopen(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            total = from_json(Traffic, file.read())
        except ValueError:
            total = Traffic()
        total.add(counts)
        file.seek(0)
        file.truncate()
        file.write(to_json(total))
