"""Status of the cells of a cluster's nodes: one file beside the status of the run, with an entry for each node."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.monitor.status import Status

FILE_NAME = "nodes.json"
_BYTES = 64 << 20
"""Largest file that is read [bytes]; with 1,000 nodes of 16 workers the file has 8 MB."""
_MOST_NODES = 2000
_MOST_WORKERS = 96
"""Largest number of workers in an entry, which is sent in one message."""
_MOST_EVENTS, _LONGEST = 20, 300
"""Largest number of events in an entry, and longest text of one [characters]."""
_INTERVAL = 5.0
"""Shortest time between two writes [s]."""


def shorten(status: Status) -> Status:
    """Return the status of a cell in a size that fits into one message."""
    events = [replace(event, text=event.text[:_LONGEST]) for event in status.events[-_MOST_EVENTS:]]
    return replace(status, workers=status.workers[:_MOST_WORKERS], events=tuple(events))


class NodeDetails:
    """Keeps the nodes' reports on their cells, and writes them at intervals.

    Args:
        folder: Folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._known: dict[str, Status] = {}
        self._has_changed, self._written = False, 0.0

    def add(self, node: str, status: Status) -> None:
        """Record the status of a node's cell."""
        if node in self._known or len(self._known) < _MOST_NODES:
            self._known[node] = status
            self._has_changed = True

    def remove(self, node: str) -> None:
        """Remove a node that left."""
        self._has_changed |= self._known.pop(node, None) is not None

    def write(self) -> None:
        """Write the file, if something has changed and the last write was long enough ago."""
        if not self._has_changed or time.monotonic() < self._written + _INTERVAL:
            return
        self._has_changed, self._written = False, time.monotonic()
        with suppress(OSError, StorageError):  # a full disk must not end the run, as for its status file
            content = {name: status.to_plain() for name, status in self._known.items()}
            replace_text(self._path, to_json(content) + "\n", durable=False)


def read_details(folder: Path, node: str) -> Status | None:
    """Read the last known status of a node's cell; None while there is none.

    Args:
        folder: Folder of the run.
        node: Name of the node.

    Raises:
        InputError: The file is not a status of nodes.
    """
    path = folder / FILE_NAME
    if not os.path.lexists(path):
        return None
    try:
        return from_json(dict[str, Status], read_text(path, limit=_BYTES, follow=False)).get(node)
    except (InputError, ValueError):
        raise InputError("not the file of a run", where=str(path), instead="delete this file") from None
