"""Feed of a cell: a file with the indices to be made, replaced while the cell runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import replace_text
from nimbus.datagen.store.remote.uploads import has_files
from nimbus.runner.cell.queue.lease import Missing
from nimbus.runner.cell.start_run import missing_of
from nimbus.runner.cell.transport.spec import CellSpec

FILE_NAME = "feed.json"
_BYTES = 1 << 22
"""[bytes] One of 100,000 indices has 0.8 MB."""


@dataclass(frozen=True, kw_only=True)
class FeedFile:
    """Content of the file."""

    indices: tuple[int, ...] = ()
    """In the order in which they are to be made; one that is settled may be left out."""
    closed: bool = False
    """No index follows: the cell ends when all are settled."""


def write_feed(path: Path, indices: tuple[int, ...], *, closed: bool = False) -> None:
    """Replace the file.

    Raises:
        StorageError: The disk is full.
    """
    replace_text(path, to_json(FeedFile(indices=indices, closed=closed)) + "\n", durable=False)


class Feed:
    """Indices of a feed file as they come, each once; None where there is none now and more may follow.

    Args:
        ledger: Of the cell's dataset.
        spec: Of the cell.
    """

    def __init__(self, ledger: Ledger, spec: CellSpec) -> None:
        self.total = 0
        """Indices given out and waiting so far."""
        self.is_closed = False
        self._ledger, self._spec = ledger, spec
        self._path, self._folder = Path(spec.feed), Path(spec.folder)
        self._waiting: deque[Missing] = deque()
        self._listed: frozenset[int] = frozenset()
        self._stamp = (0, 0)
        self.look()

    def look(self) -> bool:
        """Read the file when it has changed; True when indices came, or it was closed.

        A file that cannot be read counts as unchanged: the next look reads it again.

        Raises:
            StorageError: The disk is full.
        """
        try:
            found = self._path.stat()
            if (stamp := (found.st_mtime_ns, found.st_ino)) == self._stamp:
                return False
            content = from_json(FeedFile, read_text(self._path, limit=_BYTES, follow=False))
        except (OSError, InputError, ValueError):
            return False
        before = (self.total, self.is_closed)
        for index in content.indices:
            if index not in self._listed and (missing := self._missing(index)):
                self._waiting.append(missing)
                self.total += 1
        self._listed, self.is_closed, self._stamp = frozenset(content.indices), content.closed, stamp
        return before != (self.total, self.is_closed)

    def __iter__(self) -> Iterator[Missing | None]:
        while self._waiting or not self.is_closed:
            yield self._waiting.popleft() if self._waiting else None

    def _missing(self, index: int) -> Missing | None:
        """Work of an index; an episode whose file is gone is forgotten first, so that it is made again."""
        lost = [attempt for attempt in self._ledger.stored(index) if not has_files(self._folder, attempt)]
        if lost:
            self._ledger.forget(lost)
        return missing_of(self._ledger, self._spec, index)
