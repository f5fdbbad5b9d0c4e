"""Lock for the writer of a dataset in a store: a small object that its run renews. Clocks are never compared."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.objects import MissingObjectError

NAME = "lock.json"
BEAT = 10.0
"""Time between two renewals [s]."""
SILENCE = 25.0
"""Time without a renewal, on the waiting run's clock, after which the owner of a lock counts as lost [s]."""
_MOST_EPOCHS = 10_000
"""Largest number of runs of one dataset."""
_MOST_TRIED = 10
"""Number of epochs that are claimed before the store counts as one that refuses all."""
_OTHER_OUT = "choose another --out"


@dataclass(frozen=True, kw_only=True)
class LockNote:
    """Content of the lock."""

    owner: str
    """Random identity of the spool."""
    host: str
    pid: int
    epoch: int
    """Number of the run for this dataset."""
    beat: int = 0
    is_free: bool = False


class WriterLock:
    """Right to write a dataset's descriptions.

    Each owner has an epoch, for which it has created an object that no other owner could create; the owner of the
    highest epoch has the right. This works as a compare-and-set in every store that can create an object only once; not
    all stores can compare versions (Swift cannot).

    Args:
        store: Store of the dataset.
        owner: Identity of the spool; a run that continues in it takes the lock over.
        epoch: Epoch that another process of this run has taken; 0 if :meth:`take` follows.
        wait: Sleeps for a time [s]; replaced in tests.
    """

    def __init__(
        self, store: ObjectStore, owner: str, *, epoch: int = 0, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._store, self._owner, self._wait = store, owner, wait
        self.note: LockNote | None = self._own_note(epoch) if epoch else None

    def take(self) -> LockNote | None:
        """Take the lock; return its content just before, None if there was none.

        Raises:
            InputError: Another run writes into the dataset, or the store answers that every epoch is taken.
            StoreAwayError: The store does not answer.
        """
        found = self.read()
        if found and not found.is_free and found.owner != self._owner:
            found = self._after_silence(found)
        epoch = found.epoch + 1 if found else 1
        tried = 1
        while not self._store.create(_claim(epoch), to_json(note := self._own_note(epoch)).encode()):
            # Another run has just taken this epoch. It writes the lock next, unless it is killed first.
            found = self._after_silence(found)
            epoch = max(epoch, found.epoch if found else 0) + 1
            while epoch <= _MOST_EPOCHS and self._store.stat(_claim(epoch)):
                epoch += 1
            if (tried := tried + 1) > _MOST_TRIED or epoch > _MOST_EPOCHS:
                raise InputError(
                    "the store states that the number of every new run is taken",
                    where=str(self._store.address),
                    instead=_OTHER_OUT,
                )
        self._write(note)
        if self._store.stat(_claim(epoch + 1)):  # this process was suspended, and another run took the lock
            self._refuse(self.read() or note)
        return found

    def renew(self) -> None:
        """Renew the lock.

        Raises:
            InputError: Another run has taken the lock.
            StoreAwayError: The store does not answer.
        """
        self._continue(is_free=False)

    def free(self) -> None:
        """Release the lock; raises as :meth:`renew` does."""
        self._continue(is_free=True)

    def was_taken_by_others(self, epoch: int, before: LockNote) -> bool:
        """Return True if another owner has taken the lock after an epoch.

        The lock names only its last owner, so the objects of all epochs in between are read, the newest first.

        Args:
            epoch: Last epoch whose state this owner has.
            before: Content of the lock that :meth:`take` returned.

        Raises:
            StoreAwayError: The store does not answer.
        """
        if before.epoch == epoch:
            return False
        return before.owner != self._owner or any(
            self._claimant(number) != self._owner for number in range(before.epoch, epoch, -1)
        )

    def read(self) -> LockNote | None:
        """Return the content of the lock; None if there is none."""
        try:
            found = from_json(LockNote, self._store.read(NAME).decode())
            if 0 < found.epoch < _MOST_EPOCHS:
                return found
        except MissingObjectError:
            return None
        except ValueError:
            pass
        raise InputError("this is not a lock of Nimbus", where=self._store.place(NAME), instead=_OTHER_OUT)

    def _claimant(self, epoch: int) -> str:
        """Return the owner of an epoch; empty if its object is missing or damaged."""
        try:
            return from_json(LockNote, self._store.read(_claim(epoch)).decode()).owner
        except (MissingObjectError, ValueError):
            return ""

    def _own_note(self, epoch: int) -> LockNote:
        return LockNote(owner=self._owner, host=socket.gethostname(), pid=os.getpid(), epoch=epoch)

    def _continue(self, *, is_free: bool) -> None:
        assert self.note, "take the lock first"
        if self._store.stat(_claim(self.note.epoch + 1)):
            self._refuse(self.read() or self.note)
        self._write(replace(self.note, beat=self.note.beat + 1, is_free=is_free))

    def _after_silence(self, before: LockNote | None) -> LockNote | None:
        """Wait, then return the lock; raises ``InputError`` if another owner has written it meanwhile."""
        self._wait(SILENCE)
        now = self.read()
        if now and now != before and not now.is_free and now.owner != self._owner:
            self._refuse(now)
        return now

    def _write(self, note: LockNote) -> None:
        self._store.replace(NAME, to_json(note).encode())
        self.note = note

    def _refuse(self, other: LockNote) -> None:
        what = f"another run writes here (host {other.host}, process {other.pid})"
        instead = f"wait for its end, or {_OTHER_OUT}"
        raise InputError(what, where=str(self._store.address), instead=instead)


def _claim(epoch: int) -> str:
    """Return the name of the object created by the owner of an epoch."""
    return f"journal/owner-{epoch:06d}.json"


def new_owner() -> str:
    """Draw the identity of a spool, which affects no content."""
    return secrets.token_hex(8)
