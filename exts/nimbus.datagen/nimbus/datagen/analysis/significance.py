"""Values with a significantly low yield, found by Fisher's exact test with a correction for multiple testing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import BoolArray, FloatArray


def fisher_p_values(total: int, lost: int, having: NDArray[np.int64], having_lost: NDArray[np.int64]) -> FloatArray:
    """Return one-sided p-values of Fisher's exact test.

    A p-value is the probability that at least as many of the lost episodes have the value by chance.

    Args:
        total: Number of tried episodes.
        lost: Number of tried episodes that were not kept.
        having: (V,) number of tried episodes with each value.
        having_lost: (V,) number of lost episodes with each value.
    """
    from scipy.stats import hypergeom  # takes half a second to import

    return np.asarray(hypergeom.sf(np.asarray(having_lost) - 1, total, lost, having), dtype=float)


def adjust_p_values(p_values: FloatArray, attainable: FloatArray, *, level: float) -> FloatArray:
    """Return the q-values of Benjamini and Hochberg (1995) over the testable values.

    A value that is too rare to reach the level, even if every episode with it were lost, is not tested (after Tarone,
    1990): its q-value is 1, and it does not count in the correction of the others. Testability does not depend on the
    losses.

    Args:
        p_values: (V,) p-values.
        attainable: (V,) smallest p-value that each value could reach.
        level: Accepted false discovery rate.
    """
    from scipy.stats import false_discovery_control  # SciPy's statistics take half a second to import

    result = np.ones(len(p_values))
    tested = attainable <= level
    if tested.any():
        result[tested] = false_discovery_control(p_values[tested])
    return result


def find_low_yield(have: BoolArray, lost: BoolArray, *, level: float) -> tuple[list[int], FloatArray, FloatArray]:
    """Find the smallest set of values that explains the lost episodes.

    The most significant value is taken first. Episodes with it are then removed and the rest is tested again, so that a
    value that only co-occurs with it is not blamed.

    Args:
        have: (V, N) True if a tried episode has a value; if rows are equal, only the first one counts.
        lost: (N,) True for episodes that were not kept.
        level: Accepted false discovery rate.

    Returns:
        The found values, the most significant first, and the p-values and q-values (V,) of the first round; for values
        found later, those of their own round.
    """
    left = np.ones(len(lost), dtype=bool)
    found: list[int] = []
    p_values, q_values = np.ones(len(have)), np.ones(len(have))
    while True:
        p, q = _round(have[:, left], lost[left], level)
        if not found:
            p_values, q_values = p.copy(), q.copy()
        if not len(q) or q.min() > level:
            return found, p_values, q_values
        strongest = int(np.flatnonzero(p == p[q <= level].min())[0])
        found.append(strongest)
        p_values[strongest], q_values[strongest] = p[strongest], q[strongest]
        left &= ~have[strongest]


def _round(have: BoolArray, lost: BoolArray, level: float) -> tuple[FloatArray, FloatArray]:
    total, gone = len(lost), int(lost.sum())
    having, having_lost = have.sum(axis=1), (have & lost).sum(axis=1)
    p_values = fisher_p_values(total, gone, having, having_lost)
    return p_values, adjust_p_values(
        p_values, fisher_p_values(total, gone, having, np.minimum(having, gone)), level=level
    )


def wilson(kept: int, tried: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a fraction (Wilson, 1927)."""
    from scipy.stats import binomtest  # SciPy's statistics take half a second to import

    if not tried:
        return 0.0, 1.0
    interval = binomtest(kept, tried).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def edges(values: Sequence[float], *, most: int = 5, least: int = 8) -> list[float]:
    """Return the inner edges of at most ``most`` bins with equal counts, each of at least ``least`` values."""
    bins = min(most, len(values) // least)
    if bins < 2:
        return []
    cuts = np.quantile(np.asarray(values, dtype=float), np.arange(1, bins) / bins)
    return [float(cut) for cut in np.unique(cuts)]
