"""Local folder of a run for a dataset in a store, in which new episodes wait for their upload."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import move, remove_file, remove_tree
from nimbus.datagen.store.info import INFO_NAME
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import replace_text
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.cache_root import note_origin
from nimbus.datagen.store.remote.episode_manifest import FILE_NAME as MANIFEST
from nimbus.datagen.store.remote.object_store import ObjectStore, check_creates_once
from nimbus.datagen.store.remote.uploader import PAGES
from nimbus.datagen.store.remote.uploads import FILE_NAME as UPLOADS
from nimbus.datagen.store.remote.uploads import Uploads
from nimbus.datagen.store.remote.working_copy import spool_folder
from nimbus.datagen.store.remote.writer_lock import WriterLock, new_owner

_OWNER, _EPOCH = "owner", "epoch"
_OWN = ("journal/", "lock.json", "episodes/", "failures/", "incidents/", LEDGER, MANIFEST, *PAGES)
"""Objects that a run writes before ``dataset.json``; the dataset exists only once that file does."""
_LOOKS = 32
"""Number of objects looked up in parallel."""
_PAGE = 1000
_MOST_LOOKED_UP = 50_000
"""Largest number of ledger rows whose objects are looked up when a run continues; 'nimbus verify' checks all."""


def open_spool(address: StoreAddress) -> tuple[Path, ObjectStore, WriterLock]:
    """Take a dataset's lock, and create or continue the folder of its run.

    Raises:
        InputError: The store overwrites objects, there is no permission or bucket, the address holds other data, or
            another run writes there.
        StoreAwayError: The store does not answer.
    """
    if address.is_read_only:
        what = f"{address.scheme}:// is read-only"
        raise InputError(what, where=str(address), instead="write to s3://, gs://, az:// or a folder")
    store, spool = ObjectStore(address), spool_folder(address)
    check_creates_once(store)
    note_origin(spool, str(address))
    if not (spool / _OWNER).exists():
        replace_text(spool / _OWNER, new_owner())
    lock = WriterLock(store, (spool / _OWNER).read_text())
    before = lock.take()
    try:
        mine = int((spool / _EPOCH).read_text()) if (spool / _EPOCH).exists() else 0
        # A run that was killed before it noted its epoch in this spool has written nothing into the dataset. Episodes
        # that wait in the spool stay.
        has_newest = not lock.was_taken_by_others(mine, before) if before else mine == 0
        if not has_newest or not (spool / INFO_NAME).exists():
            _take_over(spool, store)
        else:
            _forget_lost(spool, store)
        assert lock.note
        replace_text(spool / _EPOCH, str(lock.note.epoch))
    except BaseException:
        with suppress(InputError):
            lock.free()
        raise
    return spool, store, lock


def _take_over(spool: Path, store: ObjectStore) -> None:
    """Replace the spool's state with that of the store, because another machine wrote last."""
    has_dataset = store.stat(INFO_NAME) is not None
    if not has_dataset:
        strangers = (name for name, _ in islice(store.names(), _PAGE) if not name.startswith(_OWN))
        if stranger := next(strangers, None):
            what = f"holds '{stranger}' and no {INFO_NAME}: not a dataset"
            raise InputError(what, where=str(store.address), instead="choose another --out with no objects under it")
        _forget_lost(spool, store, most=None)  # a run ended before it published anything, or the dataset was removed
        return
    for name in ("stage", "episodes", "failures", "orphans"):
        remove_tree(spool / name)
    for name in (LEDGER, f"{LEDGER}-wal", f"{LEDGER}-shm", UPLOADS, f"{UPLOADS}-wal", f"{UPLOADS}-shm", INFO_NAME):
        remove_file(spool / name)
    for name in (LEDGER, INFO_NAME):  # the description comes last, because a folder that has one counts as complete
        store.download(name, part := spool / f".{name}.part")
        if name == LEDGER:
            move(part, spool / name)
            _note_stored(spool)
        else:
            move(part, spool / name)


def _note_stored(spool: Path) -> None:
    """Mark all objects of the ledger as already sent to the store."""
    uploads, ledger = Uploads(spool), Ledger(spool, read_only=True)
    try:
        rows = _objects(ledger)
        while page := list(islice(rows, _PAGE)):
            uploads.add(page)
    finally:
        ledger.close()
        uploads.close()


def _objects(ledger: Ledger) -> Iterator[tuple[str, int]]:
    for row in ledger.walk_attempts():
        if row.path:
            yield from row.files.items()
        if row.failure:
            yield row.failure.path, row.failure.byte_count


def _forget_lost(spool: Path, store: ObjectStore, *, most: int | None = _MOST_LOOKED_UP) -> None:
    """Drop objects missing from the store; their episodes are made again.

    Args:
        spool: Folder of the run.
        store: Store of the dataset.
        most: Number of rows above which nothing is looked up; None for no limit.
    """
    if not (spool / LEDGER).exists() or not (spool / UPLOADS).exists():
        return
    uploads, ledger = Uploads(spool), Ledger(spool, read_only=True)
    try:
        if most is not None and ledger.row_count() > most:
            return
        sent = [entry for entry in _objects(ledger) if uploads.has(entry[0])]

        def is_lost(entry: tuple[str, int]) -> bool:
            return store.stat(entry[0]) is None

        with ThreadPoolExecutor(_LOOKS) as pool:
            uploads.remove(name for (name, _), lost in zip(sent, pool.map(is_lost, sent), strict=True) if lost)
    finally:
        ledger.close()
        uploads.close()
