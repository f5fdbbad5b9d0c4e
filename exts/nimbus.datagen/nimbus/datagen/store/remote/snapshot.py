"""Snapshot of a dataset's ledger and description for the store; episodes that were not sent yet are pending in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from nimbus.datagen.errors import StorageError
from nimbus.datagen.files.own_files import remove_file
from nimbus.datagen.store.info import INFO_NAME, DatasetInfo, info_text, read_info
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.publish import disk
from nimbus.datagen.store.remote.episode_manifest import FILE_NAME as MANIFEST
from nimbus.datagen.store.remote.episode_manifest import write_manifest
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.uploads import FILE_NAME as UPLOADS

_CUT = """
UPDATE attempts SET byte_count = (SELECT byte_count FROM sent.objects WHERE name = path)
WHERE path IN (SELECT name FROM sent.objects);
DELETE FROM attempts WHERE path != '' AND path NOT IN (SELECT name FROM sent.objects);
UPDATE attempts SET failure = 'null'
WHERE failure != 'null' AND json_extract(failure, '$.path') NOT IN (SELECT name FROM sent.objects);
DELETE FROM episodes WHERE state IN ('LEASED', 'INTENT') OR (state = 'DONE' AND NOT EXISTS (
SELECT 1 FROM attempts WHERE path != '' AND attempts.idx = episodes.idx AND attempts.variant = episodes.variant
AND (episodes.task = '' OR attempts.task = episodes.task)));
"""
_SIZES = """
UPDATE episodes SET byte_count = (
SELECT byte_count FROM attempts WHERE path != '' AND attempts.idx = episodes.idx
AND attempts.variant = episodes.variant AND (episodes.task = '' OR attempts.task = episodes.task))
WHERE state = 'DONE';
"""
_COUNTS = """
SELECT COUNT(*), COALESCE(SUM(step_count), 0), COALESCE(SUM(byte_count + (
SELECT COALESCE(SUM(json_extract(value, '$.byte_count')), 0) FROM json_each(videos))), 0)
FROM attempts WHERE path != ''
"""


def publish_snapshot(
    store: ObjectStore, spool: Path, *, check: Callable[[], None] = lambda: None
) -> DatasetInfo | None:
    """Write ledger, manifest and description into the store, in this order; each replaces the earlier one.

    Args:
        store: Store of the dataset.
        spool: Folder in which a run may continue to write.
        check: Called before the first object is replaced; raises an error if this run may not write any more.

    Returns:
        The description; None before the run has begun.

    Raises:
        StoreAwayError: The store does not answer.
    """
    if not (spool / LEDGER).exists() or not (spool / INFO_NAME).exists():
        return None
    target, manifest = spool / ".snapshot.sqlite", spool / ".manifest.parquet"
    info = read_info(spool)
    try:
        with _copying(target):
            count, steps, size = _cut(spool, target)
        if count and not info.features:
            return None  # the description is written some seconds after the ledger
        info = replace(info, episode_count=count, step_count=steps, byte_count=size)
        with _copying(manifest):
            write_manifest(target, manifest, info)
        check()
        store.replace(LEDGER, target)
        store.replace(MANIFEST, manifest)
        store.replace(INFO_NAME, info_text(info).encode())
    finally:
        remove_file(target)
        remove_file(manifest)
    return info


@contextmanager
def _copying(target: Path) -> Iterator[None]:
    """Convert errors of the database and the disk to one line; the next snapshot includes the missing rows."""
    try:
        with disk(target):
            yield
    except sqlite3.Error as error:  # the ledger was locked for too long, or the disk is full
        instead = "free space on this disk"
        raise StorageError(f"the ledger cannot be copied: {error}", where=str(target), instead=instead) from error


def _cut(spool: Path, target: Path) -> tuple[int, int, int]:
    remove_file(target)
    source = sqlite3.connect(f"{(spool / LEDGER).absolute().as_uri()}?mode=ro", uri=True)
    copy = sqlite3.connect(target, isolation_level=None)
    try:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.execute("PRAGMA synchronous = OFF")  # it is sent to the store, and is not read from this disk again
        copy.execute("ATTACH ? AS sent", (f"{(spool / UPLOADS).absolute()}",))
        copy.executescript(f"BEGIN;{_CUT}{_SIZES}COMMIT;")
        return copy.execute(_COUNTS).fetchone()
    finally:
        copy.close()
        source.close()
