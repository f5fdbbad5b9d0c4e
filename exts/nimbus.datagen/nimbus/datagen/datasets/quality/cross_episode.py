"""Checks that compare episodes: duplicates, overlapping splits, balance of tasks, lengths, coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.finding import fail, warn
from nimbus.datagen.datasets.quality.signals import ACTION, STATE
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import EpisodeView, View
from nimbus.datagen.errors import Diagnostic

_PLACES = 16
"""Number of steps, at equal spacing, at which motions are compared."""
_LISTED = 20
"""Largest number of duplicates that are reported."""


@dataclass
class CrossEpisodeChecks:
    """Collects a summary of each episode, and compares the summaries."""

    motions: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    """(P, D) states and actions at P steps, by number of the episode."""
    lengths: dict[int, int] = field(default_factory=dict)
    """Number of rows by number of the episode."""
    plans: dict[int, str] = field(default_factory=dict)
    """Id of the plan by number of the episode; empty if unknown."""
    tasks: Counter[int] = field(default_factory=Counter)
    """Number of episodes by number of the task."""
    drawn: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    """Plans and drawn values, by name of the value."""

    def add(self, clip: EpisodeView) -> None:
        """Add an episode."""
        self.lengths[clip.number] = clip.length
        self.plans[clip.number] = clip.plan
        if (motion := _motion(clip)) is not None:
            self.motions[clip.number] = motion
        if "task_index" in clip.columns and len(clip.columns["task_index"]):
            self.tasks[int(clip.columns["task_index"][0])] += 1
        for name, value in clip.drawn.items():
            self.drawn.setdefault(name, []).append((clip.plan, value))

    def end(self, view: View, thresholds: Thresholds) -> Iterator[Diagnostic]:
        """Yield the findings on the dataset as a whole."""
        twins = list(self._twins(thresholds))
        yield from self._leaks(view, twins)
        for one, other in [pair for pair in twins if not self._is_variant(*pair)][:_LISTED]:
            yield warn("duplicates", f"episode {other}", f"the motion equals that of episode {one}")
        yield from self._lengths(thresholds)
        yield from self._balance(view, thresholds)
        yield from self._coverage(thresholds)

    def _is_variant(self, one: int, other: int) -> bool:
        return bool(self.plans[one]) and self.plans[one] == self.plans[other]

    def _twins(self, thresholds: Thresholds) -> Iterator[tuple[int, int]]:
        """Yield pairs of episodes with the same motion."""
        from scipy.spatial import KDTree

        groups: dict[tuple[int, ...], list[int]] = {}
        for number, motion in self.motions.items():
            groups.setdefault(motion.shape, []).append(number)
        for numbers in groups.values():
            if len(numbers) < 2:
                continue
            every = np.stack([self.motions[number] for number in numbers])
            scale = np.ptp(every, axis=(0, 1))
            points = (every[:, :, scale > 0] / scale[scale > 0]).reshape(len(numbers), -1)
            if not points.shape[1]:
                continue
            near = KDTree(points).query_pairs(thresholds.same_motion, p=np.inf)
            for one, other in sorted(near):
                if self.lengths[numbers[one]] == self.lengths[numbers[other]]:
                    yield numbers[one], numbers[other]

    def _leaks(self, view: View, twins: list[tuple[int, int]]) -> Iterator[Diagnostic]:
        split_of = {number: name for name, numbers in view.splits.items() for number in numbers}
        firsts: dict[str, int] = {}
        pairs = list(twins)
        for number, plan in self.plans.items():
            if plan and (first := firsts.setdefault(plan, number)) != number:
                pairs.append((first, number))
        for one, other in dict.fromkeys(pairs):
            here, there = split_of.get(one), split_of.get(other)
            if here and there and here != there:
                what = f"the motion in split '{there}' equals that of episode {one} in split '{here}'"
                yield fail("leakage", f"episode {other}", what)

    def _lengths(self, thresholds: Thresholds) -> Iterator[Diagnostic]:
        if len(self.lengths) < thresholds.few:
            return
        median = float(np.median([*self.lengths.values()]))
        for number, length in self.lengths.items():
            if not median / thresholds.length <= length <= median * thresholds.length:
                yield warn("lengths", f"episode {number}", f"there are {length} rows, the median is {median:.0f}")

    def _balance(self, view: View, thresholds: Thresholds) -> Iterator[Diagnostic]:
        counts = {number: self.tasks.get(number, 0) for number in {*self.tasks, *view.wordings}}
        if len(self.lengths) < thresholds.few or len(counts) < 2 or not self.tasks:
            return
        most = max(counts.values())
        for number, count in sorted(counts.items()):
            if count < thresholds.balance * most:
                yield warn(
                    "balance", f"task {number}", f"there are {count} episodes, but {most} of the most frequent task"
                )

    def _coverage(self, thresholds: Thresholds) -> Iterator[Diagnostic]:
        spread = spread_of(self.drawn)
        plans = len(set(self.plans.values()))
        if plans < thresholds.few or not spread:
            return
        starts = {name: values for name, values in spread.items() if name.endswith(" [m]")}
        if starts and all(len(np.unique(values)) == 1 for values in starts.values() if len(values) >= thresholds.few):
            yield warn("coverage", "starts of objects", f"every object has the same start in all {plans} plans")
        for name, values in spread.items():
            common = Counter(np.round(values, 6).tolist()).most_common(1)[0][1]
            if len(values) >= thresholds.few and 0.5 < common / len(values) < 1:
                yield warn("coverage", name, f"{common} of {len(values)} plans have the same value")


def spread_of(drawn: Mapping[str, list[tuple[str, float]]]) -> dict[str, NDArray[np.float64]]:
    """Return the drawn values, one per plan, by name."""
    return {name: np.array([*dict(values).values()]) for name, values in drawn.items()}


def _motion(clip: EpisodeView) -> NDArray[np.float32] | None:
    found = [clip.columns[name] for name in (STATE, ACTION) if name in clip.columns]
    rows = [values.reshape(len(values), -1) for values in found if values.dtype.kind == "f" and len(values) > 1]
    if not rows:
        return None
    places = np.linspace(0, min(map(len, rows)) - 1, _PLACES).round().astype(int)
    motion = np.concatenate([values[places] for values in rows], axis=1).astype(np.float32)
    return motion if np.isfinite(motion).all() else None
