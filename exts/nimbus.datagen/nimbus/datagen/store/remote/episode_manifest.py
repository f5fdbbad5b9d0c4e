"""Manifest of a run's dataset in a store: the data that readers need of each episode, without the ledger.

A ledger takes 5 kB per episode, 0.5 GB for 100,000 of them; the manifest takes 0.1 kB per episode, and single columns
of it can be read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.episode.trajectory import DISTURBED, RECOVERY, TRAIN
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.foreign_tables import read_parquet
from nimbus.datagen.store.info import DatasetInfo

if TYPE_CHECKING:
    import pyarrow

FILE_NAME = "manifest.parquet"
FORMAT = "nimbus-episodes-1"
_FORMAT, _COUNT, _STEPS = b"nimbus.format", b"nimbus.episode_count", b"nimbus.step_count"
_ROWS = 50_000
"""Number of rows that are held in memory."""
_SELECT = """
SELECT attempts.episode_id, attempts.path, seed, attempts.idx, attempts.variant, attempt, success, reason, step_count,
attempts.byte_count, attempts.sha256, videos, steps FROM attempts JOIN episodes
ON episodes.idx = attempts.idx AND episodes.variant = attempts.variant
AND (episodes.task = '' OR episodes.task = attempts.task)
WHERE attempts.path != '' AND episodes.state = 'DONE'
ORDER BY attempts.task, seed, attempts.idx, attempts.variant, attempt
"""


def write_manifest(ledger: Path, target: Path, info: DatasetInfo) -> None:
    """Write the manifest of an unchanging ledger, in constant memory.

    Args:
        ledger: The database.
        target: The manifest.
        info: Description of the dataset, which is published together with the manifest; a reader compares their counts.
    """
    import pyarrow
    from pyarrow import parquet

    counts = {_COUNT: str(info.episode_count).encode(), _STEPS: str(info.step_count).encode()}
    schema = _schema().with_metadata({_FORMAT: FORMAT.encode(), **counts})
    connection = sqlite3.connect(f"{ledger.absolute().as_uri()}?mode=ro", uri=True)
    try:
        rows = connection.execute(_SELECT)
        with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
            while page := rows.fetchmany(_ROWS):
                columns = dict(zip(schema.names, map(list, zip(*map(_row, page), strict=True)), strict=True))
                writer.write_table(pyarrow.Table.from_pydict(columns, schema=schema))
    finally:
        connection.close()


def read_manifest(path: Path, info: DatasetInfo) -> pyarrow.Table | None:
    """Read a manifest, in the order of an export: recoveries follow the other episodes.

    Args:
        path: The manifest.
        info: Description of the dataset.

    Returns:
        The manifest; None if there is none, or if it belongs to an earlier state of the dataset.

    Raises:
        InputError: The manifest is damaged.
    """
    import pyarrow

    if not path.is_file():
        return None
    instead = "delete it; the next run writes it again"
    try:
        table = read_parquet(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"cannot be read: {str(error).splitlines()[0]}", where=str(path), instead=instead) from None
    told = table.schema.metadata or {}
    if told.get(_FORMAT) != FORMAT.encode():
        return None
    counts = (str(info.episode_count).encode(), str(info.step_count).encode())
    if (told.get(_COUNT), told.get(_STEPS)) != counts or not table.num_rows:
        return None
    if table.schema.names != _schema().names or table.schema.types != _schema().types:
        raise InputError("has other columns than a manifest", where=str(path), instead=instead)
    if any(column.null_count for column in table.columns):
        raise InputError("has rows without a value", where=str(path), instead=instead)
    is_recovery = table.column("split").to_numpy() == RECOVERY
    return table.take(np.argsort(is_recovery, kind="stable")) if is_recovery.any() else table


def _schema() -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            ("episode_id", pa.string()),
            ("path", pa.string()),
            ("seed", pa.int64()),
            ("index", pa.int64()),
            ("variant", pa.int64()),
            ("attempt", pa.int64()),
            ("success", pa.bool_()),
            ("reason", pa.string()),
            ("step_count", pa.int64()),
            ("byte_count", pa.int64()),
            ("sha256", pa.string()),
            ("videos", pa.list_(pa.string())),
            ("split", pa.string()),
        ]
    )


def _row(values: tuple[Any, ...]) -> Iterator[Any]:
    episode_id, *plain, videos, steps = values
    plain[5] = bool(plain[5])
    yield episode_id
    yield from plain
    yield [video["path"] for video in json.loads(videos)]
    is_disturbed = DISTURBED in steps and any(step.split(" ")[0] == DISTURBED for step in json.loads(steps))
    yield RECOVERY if is_disturbed else TRAIN
