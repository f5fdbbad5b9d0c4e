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
from nimbus.runner.cell.missing_work import missing_of
from nimbus.runner.cell.queue.lease import Missing
from nimbus.runner.cell.transport.spec import CellSpec

FILE_NAME = "feed.json"
_BYTES = 1 << 22
"""Largest feed file [bytes]; 100,000 indices take 0.8 MB."""


@dataclass(frozen=True, kw_only=True)
class FeedFile:
    """Content of the file."""

    indices: tuple[int, ...] = ()
    """Requested indices, in the order in which they are made; settled ones may be omitted."""
    closed: bool = False
    """True when no further index follows; the cell then ends when all are settled."""


def write_feed(path: Path, indices: tuple[int, ...], *, closed: bool = False) -> None:
    """Replace the feed file in one step.

    Raises:
        StorageError: The disk is full.
    """
    replace_text(path, to_json(FeedFile(indices=indices, closed=closed)) + "\n", durable=False)


class Feed:
    """Iterator over the indices of a feed file, each once; yields None while none waits and more may follow.

    Args:
        ledger: Ledger of the cell's dataset.
        spec: Spec of the cell.
    """

    def __init__(self, ledger: Ledger, spec: CellSpec) -> None:
        self.total = 0
        """Number of indices received so far, yielded or waiting."""
        self.is_closed = False
        self._ledger, self._spec = ledger, spec
        self._path, self._folder = Path(spec.feed), Path(spec.folder)
        self._waiting: deque[Missing] = deque()
        self._listed: frozenset[int] = frozenset()
        self._stamp = (0, 0)
        self.look()

    def look(self) -> bool:
        """Read the file when it has changed; True when it brought indices, or was closed.

        A file that cannot be read counts as unchanged; the next call reads it again.

        Raises:
            StorageError: The disk is full.
        """
        try:
            found = self._path.stat()
            # The inode is compared as well: a rename replaces the file, and two replacements can have the same time.
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
        """Return the missing work of an index; an episode whose file is gone is removed from the ledger first."""
        lost = [attempt for attempt in self._ledger.stored(index) if not has_files(self._folder, attempt)]
        if lost:
            self._ledger.forget(lost)
        return missing_of(self._ledger, self._spec, index)
