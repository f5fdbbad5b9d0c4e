"""Values with a significantly low yield: Fisher's exact test, corrected for multiple testing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import BoolArray, FloatArray


def fisher_p_values(total: int, lost: int, having: NDArray[np.int64], having_lost: NDArray[np.int64]) -> FloatArray:
    """One-sided p-values of Fisher's exact test: so many of the lost would have the value by chance.

    Args:
        total: Episodes that were tried.
        lost: Those of them that were not kept.
        having: (V,) tried episodes that have each value.
        having_lost: (V,) lost episodes that have it.
    """
    from scipy.stats import hypergeom  # takes half a second to import

    return np.asarray(hypergeom.sf(np.asarray(having_lost) - 1, total, lost, having), dtype=float)


def adjust_p_values(p_values: FloatArray, attainable: FloatArray, *, level: float) -> FloatArray:
    """Return Benjamini and Hochberg's (1995) q-values over the testable values.

    A value so rare that it could not reach the level even if every episode with it were lost is not tested (after
    Tarone, 1990): its q-value is 1, and it does not count toward the others' correction. Testability does not depend on
    the losses.

    Args:
        p_values: (V,) p-values.
        attainable: (V,) smallest p-value that each could have.
        level: Accepted false discovery rate.
    """
    from scipy.stats import false_discovery_control  # as slow to import

    result = np.ones(len(p_values))
    tested = attainable <= level
    if tested.any():
        result[tested] = false_discovery_control(p_values[tested])
    return result


def find_low_yield(have: BoolArray, lost: BoolArray, *, level: float) -> tuple[list[int], FloatArray, FloatArray]:
    """Return the smallest set of values that explains the loss of episodes.

    The most significant value is taken first; episodes with it are then removed and the rest is tested again, so that a
    value that merely co-occurs with it is not blamed.

    Args:
        have: (V, N) True for values of each of N tried episodes. Of equal values the first one is taken.
        lost: (N,) episodes that were not kept.
        level: Accepted false discovery rate.

    Returns:
        The values found, strongest first; p-values and q-values (V,) of the first round, those of a value found
        later from its own round.
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
    """Interval of a share at 95 % (Wilson, 1927)."""
    from scipy.stats import binomtest  # as slow to import

    if not tried:
        return 0.0, 1.0
    interval = binomtest(kept, tried).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def edges(values: Sequence[float], *, most: int = 5, least: int = 8) -> list[float]:
    """Inner edges of bins of equal counts: at most so many bins, each of at least so many values."""
    bins = min(most, len(values) // least)
    if bins < 2:
        return []
    cuts = np.quantile(np.asarray(values, dtype=float), np.arange(1, bins) / bins)
    return [float(cut) for cut in np.unique(cuts)]
