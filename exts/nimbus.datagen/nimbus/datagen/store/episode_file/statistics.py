"""Normalization statistics of signals, and of images from their histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
_MOST_ROWS = 1_000_000
"""Largest number of rows used for quantiles; a longer dataset is strided, so that memory stays bounded."""
_PIXEL_ROWS = 60
"""Smallest number of rows of an image that its histogram samples."""


def vector_stats(values: NDArray[Any]) -> dict[str, list[float]]:
    """Return statistics of each column of (T, D) rows."""
    rows = values.astype(np.float64).reshape(len(values), -1)
    quantiles = np.quantile(rows, list(QUANTILES.values()), axis=0)
    return {
        "min": rows.min(axis=0).tolist(),
        "max": rows.max(axis=0).tolist(),
        "mean": rows.mean(axis=0).tolist(),
        "std": rows.std(axis=0).tolist(),
        "count": [len(rows)],
        **{name: row.tolist() for name, row in zip(QUANTILES, quantiles, strict=True)},
    }


class VectorTotal:
    """Running statistics over many episodes; they are exact, except for quantiles of very many rows."""

    def __init__(self, row_count: int) -> None:
        self._every = -(-row_count // _MOST_ROWS)
        self._kept: list[NDArray[Any]] = []
        self._count = 0
        self._mean: Any = 0.0
        self._squares: Any = 0.0
        self._low: Any = np.inf
        self._high: Any = -np.inf

    def add(self, values: NDArray[Any]) -> None:
        """Add an episode's (T, D) rows."""
        rows = values.astype(np.float64).reshape(len(values), -1)
        # The stride continues across episodes, so that the lengths of episodes do not bias the sample.
        self._kept.append(values.reshape(len(values), -1)[-self._count % self._every :: self._every])
        total, mean = self._count + len(rows), rows.mean(axis=0)
        # Chan's parallel update of mean and variance is stable; a sum of squares would lose digits by cancellation.
        step = mean - self._mean
        self._squares = self._squares + ((rows - mean) ** 2).sum(axis=0) + step**2 * self._count * len(rows) / total
        self._mean = self._mean + step * len(rows) / total
        self._count = total
        self._low, self._high = np.minimum(self._low, rows.min(axis=0)), np.maximum(self._high, rows.max(axis=0))

    def stats(self) -> dict[str, list[float]]:
        """Return statistics of each column over all rows."""
        found = vector_stats(np.concatenate(self._kept))
        return found | {
            "min": self._low.tolist(),
            "max": self._high.tolist(),
            "mean": self._mean.tolist(),
            "std": np.sqrt(self._squares / self._count).tolist(),
            "count": [self._count],
        }


def histogram(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count each value in a grid of pixels of (T, H, W, 3) images; return (3, 256)."""
    every = max(1, images.shape[1] // _PIXEL_ROWS)
    pixels = images[:, ::every, ::every].reshape(-1, 3)
    return np.stack([np.bincount(pixels[:, channel], minlength=256) for channel in range(3)]).astype(np.int64)


def image_stats(counts: NDArray[np.int64], frame_count: int) -> dict[str, Any]:
    """Return statistics of each channel in [0, 1], of shape (3, 1, 1).

    Args:
        counts: A histogram, or a sum of histograms.
        frame_count: Number of frames in it.
    """
    values = np.arange(256) / 255.0
    total = counts.sum(axis=1)
    mean = counts @ values / total
    square = counts @ values**2 / total
    found = {
        "min": [values[np.flatnonzero(row)[0]] for row in counts],
        "max": [values[np.flatnonzero(row)[-1]] for row in counts],
        "mean": mean.tolist(),
        "std": np.sqrt(np.maximum(square - mean**2, 0.0)).tolist(),
        **{name: [_quantile(row, level) for row in counts] for name, level in QUANTILES.items()},
    }
    return {name: [[[float(value)]] for value in row] for name, row in found.items()} | {"count": [frame_count]}


def _quantile(counts: NDArray[np.int64], level: float) -> float:
    """Return a quantile in [0, 1] of a channel's (256,) counts, interpolated linearly as NumPy does."""
    ends = np.cumsum(counts)
    place = level * (ends[-1] - 1)
    low, high = (int(np.searchsorted(ends, rank, side="right")) for rank in (np.floor(place), np.ceil(place)))
    return (low + (high - low) * (place - np.floor(place))) / 255.0
