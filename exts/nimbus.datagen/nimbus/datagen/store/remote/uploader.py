"""Uploader of a run, which sends the files of its spool, and publishes ledger and description."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import replace_text
from nimbus.datagen.store.remote.cache_root import COPIES, SPOOLS
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.send import send_attempt
from nimbus.datagen.store.remote.snapshot import publish_snapshot
from nimbus.datagen.store.remote.uploads import Uploads
from nimbus.datagen.store.remote.working_copy import TRAFFIC, keep_entry
from nimbus.datagen.store.remote.writer_lock import BEAT, WriterLock

T = TypeVar("T")
STATE = "upload.json"
PAGES = ("report.html", "certificates.json", "status.json", "nodes.json")
"""Files of the spool's folder that are published beside ledger and description."""
_THREADS = 2
"""Number of parallel uploads; one waits for the network while another is read and hashed."""
_PERIOD = 60.0
"""Shortest time between two snapshots [s]."""
_SHARE = 20.0
"""Smallest ratio of the time between two snapshots to the duration of one; they then take at most 5 % of the time."""
_WAITS = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Time between attempts at a store that does not answer [s]."""


@dataclass(frozen=True, kw_only=True)
class UploadState:
    """Content of ``upload.json``, for the run and its reports."""

    state: str = "working"
    """``working``, ``away`` or ``refused``."""
    line: str = ""
    waiting: int = 0
    """Number of files not in the store yet."""
    waiting_bytes: int = 0
    sent: int = 0
    sent_bytes: int = 0


class Uploader:
    """Sender of the files of one spool; one process at a time uses it.

    Args:
        store: Store of the dataset.
        spool: Folder of the run.
        lock: Write lock of the run; None if another process renews it.
    """

    def __init__(self, store: ObjectStore, spool: Path, lock: WriterLock | None) -> None:
        self._store, self._spool, self._lock = store, spool, lock
        self._copy = spool.parent.parent / COPIES / spool.name
        assert spool.parent.name == SPOOLS
        self._uploads = Uploads(spool)
        self._next_snapshot = self._next_beat = 0.0
        self._waits = 0
        self._sent = self._sent_bytes = 0
        self._unpublished = True
        self._page_times: dict[str, int] = {}
        """Times of change of the published pages [ns]."""

    def go_on(self) -> int:
        """Send the waiting files, and publish when due.

        Returns:
            Number of files still waiting.

        Raises:
            InputError: The store refuses: a permission or the bucket is missing, an object has other content, or
                another run writes.
        """
        try:
            self._beat()
            sends = self._make_all([partial(self._send, attempt) for attempt in self._ready()])
            self._count(chain.from_iterable(send.result() for send in sends if not send.exception()))
            for send in sends:
                send.result()  # this raises the first error
            if self._uploads.has_changed():  # nodes of a cluster upload in their own processes
                self._unpublished = True
            if time.monotonic() >= self._next_snapshot or (self._changed_pages() and not self._page_times):
                self._make_all([self.publish if self._unpublished else self._publish_status])[0].result()
            self._waits = 0
        except StorageError as error:  # the store is unreachable, or this disk is full: the run continues
            self._waits += 1
            self._unpublished = True
            return self._tell("away", str(error))
        except InputError as error:
            self._tell("refused", str(error))
            raise
        return self._tell("working", "")

    def publish(self) -> None:
        """Write ledger, description and pages into the store.

        The lock is renewed just before: this process may have been suspended, and another run may have taken the lock.

        Raises:
            InputError: Another run has taken the lock.
            StorageError: The store does not answer, or this disk is full.
        """
        begin = time.monotonic()
        self._unpublished = False
        publish_snapshot(self._store, self._spool, check=self._lock.renew if self._lock else lambda: None)
        self._publish_status()
        self._next_snapshot = time.monotonic() + max(_PERIOD, _SHARE * (time.monotonic() - begin))

    def publish_pages(self, folder: str) -> None:
        """Write the images of a folder into the store."""
        for path in sorted((self._spool / folder).glob("*")):
            if path.is_file():
                self._store.replace(f"{folder}/{path.name}", path)

    def _publish_status(self) -> None:
        """Write the changed pages into the store; a run's status changes even while no episode is stored."""
        for name, changed in self._changed_pages().items():
            self._store.replace(name, (self._spool / name).read_bytes())
            self._page_times[name] = changed
        self._next_snapshot = time.monotonic() + _PERIOD

    def _changed_pages(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name in PAGES:
            with suppress(OSError):
                found[name] = (self._spool / name).stat().st_mtime_ns
        return {name: changed for name, changed in found.items() if changed != self._page_times.get(name)}

    @property
    def pause(self) -> float:
        """Return how long to wait before the next attempt [s]."""
        return _WAITS[min(self._waits, len(_WAITS)) - 1] if self._waits else 0.5

    def close(self) -> None:
        """Close the uploader's files."""
        self._uploads.close()
        TRAFFIC.flush()

    def _ready(self) -> list[Attempt]:
        """List the stored attempts and kept failures with local files."""
        names = {kind: _names(self._spool / kind) for kind in ("episodes", "failures")}
        if not any(names.values()) or not (self._spool / LEDGER).exists():
            return []
        for kind, found in names.items():
            for name in [name for name in found if self._uploads.has(f"{kind}/{name}")]:  # left by a killed run
                keep_entry(self._copy, f"{kind}/{name}", self._spool / kind / name)
                found.remove(name)
        ledger = Ledger(self._spool, read_only=True, check_pages=False)
        try:
            ids = sorted({name.partition(".hdf5")[0].rpartition(".a")[0] for name in names["failures"]})
            ids += [name.removesuffix(".hdf5") for name in names["episodes"] if name.endswith(".hdf5")]
            rows = [row for page in _pages(ids) for row in ledger.attempts_of(page)]
        finally:
            ledger.close()
        here = {f"{kind}/{name}" for kind, found in names.items() for name in found}
        return [row for row in rows if (row.failure.path if row.failure else row.path) in here]

    def _make_all(self, calls: Sequence[Callable[[], T]]) -> list[Future[T]]:
        """Make calls in threads while renewing the lock, which other runs would take over otherwise."""
        pool = ThreadPoolExecutor(_THREADS)
        try:
            made = [pool.submit(call) for call in calls]
            while wait(made, timeout=BEAT / 5).not_done:
                self._beat()
            return made
        finally:
            pool.shutdown(cancel_futures=True)

    def _send(self, attempt: Attempt) -> list[tuple[str, int]]:
        sent = list(send_attempt(self._store, self._spool, attempt))
        self._uploads.add(sent)
        self._unpublished = True
        for name, size in sent:
            TRAFFIC.note(self._copy, objects_sent=1, bytes_sent=size)
            with suppress(FileNotFoundError):
                keep_entry(self._copy, name, self._spool / name)
        return sent

    def _count(self, sent: Iterable[tuple[str, int]]) -> None:
        for _, size in sent:
            self._sent, self._sent_bytes = self._sent + 1, self._sent_bytes + size

    def _beat(self) -> None:
        if self._lock and time.monotonic() >= self._next_beat:
            self._lock.renew()
            self._next_beat = time.monotonic() + BEAT

    def _tell(self, state: str, line: str) -> int:
        sizes = spool_sizes(self._spool)
        told = UploadState(
            state=state,
            line=line,
            waiting=len(sizes),
            waiting_bytes=sum(sizes),
            sent=self._sent,
            sent_bytes=self._sent_bytes,
        )
        with suppress(InputError):
            replace_text(self._spool / STATE, to_json(asdict(told)), durable=False)
        return told.waiting


def read_state(spool: Path) -> UploadState:
    """Read the state of a run's uploads."""
    try:
        return from_json(UploadState, (spool / STATE).read_text())
    except (OSError, ValueError):
        return UploadState()


def spool_sizes(spool: Path) -> list[int]:
    """List the sizes of the files waiting in a spool [bytes]."""
    found: list[int] = []
    for kind in ("episodes", "failures"):
        with suppress(OSError), os.scandir(spool / kind) as entries:
            for entry in entries:
                with suppress(OSError):
                    found.append(entry.stat(follow_symlinks=False).st_size)
    return found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _pages(ids: list[str]) -> Iterable[list[str]]:
    for begin in range(0, len(ids), 400):
        yield ids[begin : begin + 400]
