"""Statistics of rows: of each episode, and of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.store.episode_file.statistics import QUANTILES, VectorTotal

KEYS = ("min", "max", "mean", "std", *QUANTILES)
_LEVELS = np.array([*QUANTILES.values()])


def side_by_side(numbers: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """(T, D) the columns of all features."""
    return np.concatenate([*numbers.values()], axis=1)


def episode_stats(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(S, D) statistics of (T, D) rows, in the order of :data:`KEYS`."""
    mean, std = rows.mean(axis=0), rows.std(axis=0)
    rows = np.sort(rows, axis=0)
    # As np.quantile does, which takes ten times as long for so few rows.
    places = _LEVELS * (len(rows) - 1)
    below = np.floor(places).astype(np.intp)
    above = np.minimum(below + 1, len(rows) - 1)
    quantiles = rows[below] + (rows[above] - rows[below]) * (places - below)[:, None]
    return np.stack([rows[0], rows[-1], mean, std, *quantiles])


def by_feature(stats: NDArray[np.float64], sizes: Mapping[str, int], count: int) -> dict[str, dict[str, Any]]:
    """Split what :func:`episode_stats` gave by feature and name, and add the number of rows.

    Args:
        stats: (S, D) statistics, in the order of :data:`KEYS` [units of the features].
        sizes: Columns of each feature, in their order in ``stats``; their sum is D.
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
    """Statistics (E, S, D) of many episodes as columns ``feature/name`` of lists, one an episode."""
    found: dict[str, list[list[float]]] = {}
    start = 0
    for name, size in sizes.items():
        for row, key in enumerate(KEYS):
            found[f"{name}/{key}"] = stats[:, row, start : start + size].tolist()
        start += size
    return found


def joint_image_stats(episodes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Statistics of the pictures of all episodes from those of each; quantiles, which none has, are left out."""
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
    """Statistics of the rows of all episodes, by feature.

    Args:
        row_count: Of all.
    """

    def __init__(self, row_count: int) -> None:
        self._row_count = row_count
        self._totals: dict[str, VectorTotal] = {}

    def add(self, numbers: Mapping[str, NDArray[np.float64]]) -> None:
        """Take in (T, D) rows by feature, each in its own units."""
        for name, rows in numbers.items():
            self._totals.setdefault(name, VectorTotal(self._row_count)).add(rows)

    def stats(self) -> dict[str, dict[str, Any]]:
        """Of all rows."""
        return {name: total.stats() for name, total in self._totals.items()}
