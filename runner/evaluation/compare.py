"""Comparison of two evaluations, paired by layout: McNemar's exact test, and the layouts that changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from nimbus.datagen.errors import InputError
from nimbus.runner.evaluation.results import Evaluation, read_evaluation

_SAME = ("task", "task_hash", "split", "seed")
"""Fields in which two evaluations must agree to have the same layouts."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Comparison of two evaluations on the layouts for which both have an outcome."""

    layouts: int
    first: int
    """Number of successes of the first evaluation."""
    second: int
    only_first: tuple[int, ...]
    """Indices of layouts at which the first succeeded and the second failed."""
    only_second: tuple[int, ...]
    p_value: float
    """Probability that a difference of this size occurs by chance: McNemar's exact test, two-sided."""
    both: int = 0
    """Number of layouts at which both succeeded."""
    median_steps: tuple[float, float] = (0.0, 0.0)
    """Median length of each evaluation's episodes on these layouts [steps]."""


def compare(one: Path, other: Path) -> Comparison:
    """Compare two evaluations of the same layouts.

    Raises:
        InputError: The evaluations do not have the same layouts.
    """
    first, second = read_evaluation(one), read_evaluation(other)
    for name in _SAME:
        if getattr(first, name) != getattr(second, name):
            what = f"{name} is {getattr(first, name)} in {one} and {getattr(second, name)} in {other}"
            raise InputError(what, where="--compare", instead="compare evaluations of the same task and layouts")
    if not _outcomes(first).keys() & _outcomes(second).keys():
        raise InputError(
            "the two evaluations have no layout in common",
            where="--compare",
            instead="evaluate both on the same layouts",
        )
    return pair(first, second)


def pair(first: Evaluation, second: Evaluation) -> Comparison:
    """Compare the outcomes of two evaluations of the same task, layout by layout."""
    from scipy.stats import binomtest

    mine, theirs = _outcomes(first), _outcomes(second)
    steps = [{one.index: one.steps for one in evaluation.judged} for evaluation in (first, second)]
    shared = sorted(mine.keys() & theirs.keys())
    only_first = tuple(index for index in shared if mine[index] and not theirs[index])
    only_second = tuple(index for index in shared if theirs[index] and not mine[index])
    both = [index for index in shared if mine[index] and theirs[index]]
    first_median, second_median = (float(median([held[index] for index in both] or [0])) for held in steps)
    changed = len(only_first) + len(only_second)
    return Comparison(
        layouts=len(shared),
        first=sum(mine[index] for index in shared),
        second=sum(theirs[index] for index in shared),
        only_first=only_first,
        only_second=only_second,
        p_value=float(binomtest(len(only_first), changed).pvalue) if changed else 1.0,
        both=len(both),
        median_steps=(first_median, second_median),
    )


def _outcomes(evaluation: Evaluation) -> dict[int, bool]:
    return {one.index: one.success for one in evaluation.judged}
