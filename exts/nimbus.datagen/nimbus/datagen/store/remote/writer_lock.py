"""One writer of a dataset in a store: a small object that its run renews, without clocks being compared."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.store.remote.object_store import MissingObjectError, ObjectStore

NAME = "lock.json"
BEAT = 10.0
"""Time between two renewals [s]."""
SILENCE = 25.0
"""Time without a renewal, by the clock of the waiting run, after which a lock has lost its owner [s]."""


@dataclass(frozen=True, kw_only=True)
class LockNote:
    """Content of the lock."""

    owner: str
    """Drawn for each spool."""
    host: str
    pid: int
    epoch: int
    """Number of the run into this dataset."""
    beat: int = 0
    is_free: bool = False


class WriterLock:
    """The right to write a dataset's descriptions.

    Args:
        store: Store of the dataset.
        owner: Identity of the spool; a run that continues in it takes the lock over.
        wait: Sleeps [s]; for tests.
    """

    def __init__(self, store: ObjectStore, owner: str, *, wait: Callable[[float], None] = time.sleep) -> None:
        self._store, self._owner, self._wait = store, owner, wait
        self.note: LockNote | None = None

    def take(self) -> LockNote | None:
        """Take the lock; return its content before, None where there was none.

        Raises:
            InputError: Another run writes into the dataset.
            StoreAwayError: The store does not answer.
        """
        before = self.read()
        if before and not before.is_free and before.owner != self._owner:
            self._wait(SILENCE)
            now = self.read()
            if now and (now.owner, now.epoch, now.beat) != (before.owner, before.epoch, before.beat):
                self._refuse(now)
        epoch = before.epoch + 1 if before else 1
        note = LockNote(owner=self._owner, host=socket.gethostname(), pid=os.getpid(), epoch=epoch)
        self._write(note)
        return before

    def renew(self) -> None:
        """Show that the run goes on.

        Raises:
            InputError: Another run has taken the lock.
            StoreAwayError: The store does not answer.
        """
        found = self.read()
        if found and found.owner != self._owner:
            self._refuse(found)
        if found:
            self._write(replace(found, beat=found.beat + 1, is_free=False))

    def free(self) -> None:
        """Leave the dataset to others; raises as :meth:`renew` does."""
        found = self.read()
        if found and found.owner == self._owner:
            self._write(replace(found, beat=found.beat + 1, is_free=True))

    def read(self) -> LockNote | None:
        """Return the content of the lock; None where there is none."""
        try:
            return from_json(LockNote, self._store.read(NAME).decode())
        except MissingObjectError:
            return None
        except ValueError:
            what, instead = "this is not a lock of Nimbus", "choose another --out"
            raise InputError(what, where=self._store.place(NAME), instead=instead) from None

    def _write(self, note: LockNote) -> None:
        self._store.replace(NAME, to_json(note).encode())
        self.note = note

    def _refuse(self, other: LockNote) -> None:
        what = f"another run writes here (host {other.host}, process {other.pid})"
        instead = "wait for its end, or choose another --out"
        raise InputError(what, where=str(self._store.address), instead=instead)


def new_owner() -> str:
    """Draw the identity of a spool; it decides no content."""
    return secrets.token_hex(8)
