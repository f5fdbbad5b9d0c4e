"""Rows of episodes in LeRobot tables: copies with new numbers, and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nimbus.datagen.datasets.convert.lerobot_set import NEEDED, LeRobotEpisode
from nimbus.datagen.datasets.convert.plan import ConversionPlan
from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.tables import check_columns, read_table
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.foreign_tables import open_table
from nimbus.datagen.store.episode_file.statistics import QUANTILES, VectorTotal

KEYS = ("min", "max", "mean", "std", *QUANTILES)
_LEVELS = np.array([*QUANTILES.values()])
_KINDS = dict.fromkeys(NEEDED, "whole") | {"timestamp": "time"}
_SEE_QA = "run 'nimbus qa' for details"


def side_by_side(numbers: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Concatenate the columns of all features into one array (T, D)."""
    return np.concatenate([*numbers.values()], axis=1)


def episode_stats(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the statistics (S, D) of rows (T, D), in the order of :data:`KEYS`."""
    mean, std = rows.mean(axis=0), rows.std(axis=0)
    rows = np.sort(rows, axis=0)
    # The result equals np.quantile, which takes ten times as long for so few rows.
    places = _LEVELS * (len(rows) - 1)
    below = np.floor(places).astype(np.intp)
    above = np.minimum(below + 1, len(rows) - 1)
    quantiles = rows[below] + (rows[above] - rows[below]) * (places - below)[:, None]
    return np.stack([rows[0], rows[-1], mean, std, *quantiles])


def by_feature(stats: NDArray[np.float64], sizes: Mapping[str, int], count: int) -> dict[str, dict[str, Any]]:
    """Split statistics by feature and name, and add the number of rows.

    Args:
        stats: (S, D) statistics from :func:`episode_stats` [units of the features].
        sizes: Number of columns of each feature, in the order of ``stats``; their sum is D.
        count: Number of rows.
    """
    found: dict[str, dict[str, Any]] = {}
    start = 0
    for name, size in sizes.items():
        mine = stats[:, start : start + size]
        found[name] = {key: row.tolist() for key, row in zip(KEYS, mine, strict=True)} | {"count": [count]}
        start += size
    return found


def by_column(stats: NDArray[np.float64], sizes: Mapping[str, int]) -> dict[str, list[list[float]]]:
    """Convert statistics of many episodes to columns of a table.

    Args:
        stats: (E, S, D) statistics from :func:`episode_stats` [units of the features].
        sizes: Number of columns of each feature, in the order of ``stats``; their sum is D.

    Returns:
        Columns named ``feature/name``, with one list per episode.
    """
    found: dict[str, list[list[float]]] = {}
    start = 0
    for name, size in sizes.items():
        for row, key in enumerate(KEYS):
            found[f"{name}/{key}"] = stats[:, row, start : start + size].tolist()
        start += size
    return found


def joint_image_stats(episodes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Combine the image statistics of episodes; quantiles are omitted, because they cannot be combined."""
    low, high, total, mean, squares = np.inf, -np.inf, 0.0, 0.0, 0.0
    for stats in episodes:
        count = float(np.ravel(stats["count"])[0])
        low = np.minimum(low, np.asarray(stats["min"], np.float64))
        high = np.maximum(high, np.asarray(stats["max"], np.float64))
        step = np.asarray(stats["mean"], np.float64) - mean
        squares = squares + np.asarray(stats["std"], np.float64) ** 2 * count
        squares = squares + step**2 * total * count / (total + count)
        mean = mean + step * count / (total + count)
        total += count
    arrays = {"min": low, "max": high, "mean": mean, "std": np.sqrt(squares / total)}
    return {key: np.asarray(value).tolist() for key, value in arrays.items()} | {"count": [int(total)]}


class RowTotals:
    """Accumulates the statistics of all rows, by feature.

    Args:
        row_count: Total number of rows.
    """

    def __init__(self, row_count: int) -> None:
        self._row_count = row_count
        self._totals: dict[str, VectorTotal] = {}

    def add(self, numbers: Mapping[str, NDArray[np.float64]]) -> None:
        """Add rows (T, D) of each feature."""
        for name, rows in numbers.items():
            self._totals.setdefault(name, VectorTotal(self._row_count)).add(rows)

    def stats(self) -> dict[str, dict[str, Any]]:
        """Return the statistics of all rows, by feature."""
        return {name: total.stats() for name, total in self._totals.items()}


class Rows:
    """Reads the rows of a plan's episodes; a file is read once for successive episodes.

    Args:
        plan: Plan of the new dataset.
    """

    def __init__(self, plan: ConversionPlan) -> None:
        self._plan = plan
        self._starts = plan.starts
        self._file: Any = None
        self._table: Any = None
        self._numbers: NDArray[np.int64] = np.zeros(0, np.int64)
        self._schema: Any = None

    def read(self, positions: range) -> Any:
        """Return the rows of successive episodes in one table, with new numbers.

        Args:
            positions: New indices of the episodes.

        Raises:
            InputError: The rows cannot be read, or contradict the tables.
        """
        items = [self._plan.items[position] for position in positions]
        table = pa.concat_tables([self._cast(self._find(item), item) for item in items])
        lengths = np.array([item.length for item in items])
        first = self._starts[positions.start]
        index = np.arange(first, first + len(table))
        numbers = {
            "frame_index": index - np.repeat(self._starts[positions.start : positions.stop], lengths),
            "episode_index": np.repeat(np.array(positions), lengths),
            "index": index,
            "task_index": self._new_tasks(table.column("task_index").to_numpy(), items, lengths),
        }
        for name, values in numbers.items():
            place = table.schema.get_field_index(name)
            field = table.schema.field(place)
            table = table.set_column(place, field, pa.array(values, field.type))
        return table

    def _new_tasks(
        self, old: NDArray[Any], items: list[LeRobotEpisode], lengths: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        known, places = np.unique(old, return_inverse=True)
        tasks = self._plan.tasks
        if lost := [number for number in known.tolist() if number not in tasks]:
            row = np.flatnonzero(old == lost[0])[0]
            item = items[int(np.searchsorted(np.cumsum(lengths), row, side="right"))]
            raise self._wrong(item, f"a row has task {lost[0]}, which no remaining episode has")
        return np.array([tasks[number] for number in known.tolist()])[places]

    def _find(self, item: LeRobotEpisode) -> Any:
        if self._file != item.rows:
            try:
                self._table = read_table(item.rows)
                check_columns(self._table, _KINDS)
            except Unreadable as error:
                raise InputError(error.what, where=str(item.rows), instead="restore it from a copy") from None
            if lacking := [name for name in NEEDED if name not in self._table.column_names]:
                raise InputError(f"column {lacking[0]} is missing", where=str(item.rows), instead=_SEE_QA)
            self._file = item.rows
            self._numbers = self._table.column("episode_index").to_numpy().astype(np.int64)
        mine = np.flatnonzero(self._numbers == item.number)
        if len(mine) != item.length:
            raise self._wrong(item, f"there are {len(mine)} rows, expected {item.length}")
        if mine[-1] - mine[0] + 1 != item.length:
            raise self._wrong(item, "the rows of the episode are not adjacent")
        return self._table.slice(int(mine[0]), item.length)

    def _cast(self, table: Any, item: LeRobotEpisode) -> Any:
        """Cast a table to the column types of the first episode."""
        if self._schema is None:
            self._schema = _schema_of(self._plan)
        if table.schema.equals(self._schema):
            return table
        try:
            return table.select(self._schema.names).cast(self._schema)
        except (KeyError, pa.ArrowException) as error:
            raise self._wrong(item, f"the columns differ from those of the first episode: {error}") from None

    def _wrong(self, item: LeRobotEpisode, what: str) -> InputError:
        name = item.rows.relative_to(self._plan.source.folder).as_posix()
        return InputError(what, where=f"{name}, episode {item.number}", instead=_SEE_QA)


def _schema_of(plan: ConversionPlan) -> Any:
    path = plan.items[0].rows
    try:
        return open_table(path).schema_arrow
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), instead="restore it from a copy") from None


def numbers_of(table: Any) -> dict[str, NDArray[np.float64]]:
    """Return each column of numbers or of vectors of one size as an array (T, D); skip columns with empty cells."""
    found: dict[str, NDArray[np.float64]] = {}
    for name in table.column_names:
        values = table.column(name).combine_chunks()
        kind = values.type
        if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
            kind, flat = kind.value_type, values.flatten()
        else:
            flat = values
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or not len(values):
            continue
        if not len(flat) or len(flat) % len(values) or values.null_count or flat.null_count:
            continue
        rows = flat.to_numpy(zero_copy_only=False).astype(np.float64)
        found[name] = rows.reshape(len(values), -1)
    return found
