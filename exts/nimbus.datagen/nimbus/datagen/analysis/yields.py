"""Yields: numbers of tried and kept episodes for each value of each drawn quantity.

A value is flagged if episodes with it are never kept, or significantly less often. The tests count episodes instead of
attempts: attempts at one layout are not independent, and an episode that is kept at its third attempt is in the
dataset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nimbus.datagen.analysis.significance import edges, find_low_yield
from nimbus.datagen.store.ledger.attempt import Attempt

Values = dict[str, list[str | float]]
"""Values by factor: texts for categories, or numbers that are binned."""

CELL = 0.1
"""Side of the cells into which positions are binned [m]."""
_OWN = {"kind", "variant", "rest_pose", "x", "y"}
"""Drawn properties of an object that are counted as separate factors."""
LEVEL = 0.05
"""Accepted fraction of false flags. The test is conservative, because counts are whole numbers: of 600 simulated runs
without any effect, 6 had a flag."""
_FEW = 6
"""Number of distinct whole numbers up to which they count as categories."""

Part = Literal["physical", "visual", "doing"]


def physical_factors(attempt: Attempt) -> Values:
    """Return the values drawn for physics, which can decide the outcome; general factors come first."""
    values: Values = {}
    for item in attempt.objects:
        _add(values, "class", item.get("class", ""))
        _add(values, "kind", item["kind"])
        _add(values, "variant", f"{item['kind']} {item.get('variant', '')}")
        _add(values, "rest pose", f"{item['kind']} {item.get('rest_pose', '')}")
        if "x" in item and "y" in item:
            _add(values, "cell", cell_name(float(item["x"]), float(item["y"])))
    _add(values, "objects", float(len(attempt.objects)))
    _add_drawn(values, attempt, "physical")
    return values


def visual_factors(attempt: Attempt) -> Values:
    """Return the values drawn for the appearance, which cannot decide an outcome and are therefore only displayed."""
    values: Values = {}
    _add_drawn(values, attempt, "visual")
    return values


def step_of(text: str) -> str:
    """Return a step without the number of its object, such as ``pick items`` for ``pick items_0``."""
    skill, _, target = text.partition(" ")
    stem, _, number = target.rpartition("_")
    return f"{skill} {stem if number.isdigit() and stem else target}".rstrip()


def failed_step(attempt: Attempt) -> str:
    """Return the step in which a failed attempt ended; ``success`` if only the final conditions failed."""
    if attempt.phase.startswith("success"):
        return "success"
    return step_of(attempt.steps[-1]) if attempt.steps else attempt.phase.split(" ")[0] or "start"


def cell_name(x: float, y: float) -> str:
    """Return the name of a point's cell: the coordinates of the cell's lower corner [m]."""
    low = (math.floor(value / CELL + 1e-9) * CELL + 0.0 for value in (x, y))
    return "x {:.1f} y {:.1f}".format(*low)


def _add(values: Values, factor: str, value: str | float) -> None:
    if value != "" and value not in (known := values.setdefault(factor, [])):
        known.append(value)


def _add_drawn(values: Values, attempt: Attempt, part: str) -> None:
    names = {item["name"] for item in attempt.objects}
    drawn = attempt.drawn.get(part, {})
    for path, value in _leaves(drawn if isinstance(drawn, Mapping) else {}):
        if path[0] == "objects" and (path[-1] in _OWN or path[-1] == "count"):
            continue
        factor = ".".join(key for key in path if key not in names)
        _add(values, factor, value)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str | float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path[:-1], f"{path[-1]}[{index}]"))
    elif isinstance(value, bool | str):
        yield path, str(value)
    elif isinstance(value, int | float):
        yield path, float(value)


@dataclass(frozen=True, kw_only=True)
class YieldRow:
    """Yield for one value of one factor."""

    factor: str
    value: str
    part: Part
    """Group of the row: a drawn value that is tested, a drawn value that is only shown, or an action of the robot. Rows
    of actions count attempts."""
    low: float | None = None
    """Lower bound of a numeric bin."""
    high: float | None = None
    episodes: int
    """Number of finished episodes with this value."""
    kept: int
    attempts: int
    successes: int
    p_value: float = 1.0
    q_value: float = 1.0
    flag: Literal["", "never kept", "seldom kept"] = ""

    @property
    def share(self) -> float:
        """Fraction of the episodes that are kept, from 0 to 1."""
        return self.kept / self.episodes if self.episodes else 0.0


@dataclass(frozen=True, kw_only=True)
class Yields:
    """Yields of a dataset."""

    episodes: int
    kept: int
    level: float
    rows: tuple[YieldRow, ...]

    @property
    def flags(self) -> tuple[YieldRow, ...]:
        """Flagged rows, the most significant first."""
        return tuple(sorted((row for row in self.rows if row.flag), key=lambda row: row.p_value))

    def of(self, *factors: str) -> tuple[YieldRow, ...]:
        """Return the rows of some factors."""
        return tuple(row for row in self.rows if row.factor in factors)


@dataclass(frozen=True)
class _Episode:
    """All attempts at one layout."""

    attempts: tuple[Attempt, ...]

    @property
    def kept(self) -> bool:
        return any(attempt.success for attempt in self.attempts)


def find_yields(attempts: Iterable[Attempt], *, level: float = LEVEL) -> Yields:
    """Compute the yield of every value.

    Args:
        attempts: Attempts in the ledger; only the first variant of each plan counts.
        level: Accepted false discovery rate.
    """
    episodes = _episodes(attempts)
    has_tasks = len({episode.attempts[0].task for episode in episodes}) > 1

    def factors(attempt: Attempt) -> Values:
        values = physical_factors(attempt)
        if has_tasks:
            _add(values, "task", attempt.task)
        return values

    rows = _drawn_rows(episodes, "physical", factors, level)
    rows += _drawn_rows(episodes, "visual", visual_factors, level)
    rows += _doing_rows([attempt for episode in episodes for attempt in episode.attempts])
    return Yields(episodes=len(episodes), kept=sum(one.kept for one in episodes), level=level, rows=tuple(rows))


def _episodes(attempts: Iterable[Attempt]) -> list[_Episode]:
    plans: dict[tuple[str, int, int], dict[int, Attempt]] = {}
    for attempt in attempts:
        plans.setdefault((attempt.task, attempt.seed, attempt.idx), {}).setdefault(attempt.attempt, attempt)
    found = (_Episode(tuple(mine[number] for number in sorted(mine))) for mine in plans.values())
    return [one for one in found if one.kept or any(attempt.final for attempt in one.attempts)]


def _drawn_rows(
    episodes: Sequence[_Episode], part: Part, factors: Callable[[Attempt], Values], level: float
) -> list[YieldRow]:
    values = [factors(episode.attempts[0]) for episode in episodes]
    lost = np.array([not episode.kept for episode in episodes], dtype=bool)
    names = list(dict.fromkeys(name for mine in values for name in mine))
    bins = [entry for name in names for entry in _bins(name, [mine.get(name, []) for mine in values])]
    have = np.array([entry.have for entry in bins], dtype=bool).reshape(len(bins), len(episodes))
    found, p_values, q_values = [], np.ones(len(bins)), np.ones(len(bins))
    if part == "physical" and len(bins) and lost.any() and not lost.all():
        found, p_values, q_values = find_low_yield(have, lost, level=level)
    rows = []
    for place, entry in enumerate(bins):
        mine = [episode for episode, has in zip(episodes, entry.have, strict=True) if has]
        kept = sum(episode.kept for episode in mine)
        rows.append(
            YieldRow(
                factor=entry.factor,
                value=entry.value,
                part=part,
                low=entry.low,
                high=entry.high,
                episodes=len(mine),
                kept=kept,
                attempts=sum(len(episode.attempts) for episode in mine),
                successes=sum(attempt.success for episode in mine for attempt in episode.attempts),
                p_value=float(p_values[place]),
                q_value=float(q_values[place]),
                flag="" if place not in found else "seldom kept" if kept else "never kept",
            )
        )
    return rows


@dataclass(frozen=True)
class _Bin:
    factor: str
    value: str
    have: tuple[bool, ...]
    """(N,) True for episodes with the value."""
    low: float | None = None
    high: float | None = None


def _bins(factor: str, values: Sequence[Sequence[str | float]]) -> list[_Bin]:
    """Return a bin per category; numbers are divided into bins of equal counts."""
    numbers = [value for mine in values for value in mine if isinstance(value, float)]
    categories = sorted({value for mine in values for value in mine if isinstance(value, str)})
    found = [_Bin(factor, text, tuple(text in mine for mine in values)) for text in categories]
    distinct = sorted(set(numbers))
    if len(distinct) <= _FEW and all(number.is_integer() for number in distinct):
        return found + [_Bin(factor, f"{n:g}", tuple(n in mine for mine in values), n, n) for n in distinct]
    cuts = [-np.inf, *edges(numbers), np.inf]
    for low, high in zip(cuts, cuts[1:], strict=False):
        inside = [number for number in numbers if low < number <= high]
        have = tuple(any(isinstance(one, float) and low < one <= high for one in mine) for mine in values)
        if inside:
            least, most = min(inside), max(inside)
            found.append(_Bin(factor, f"{least:.4g} … {most:.4g}", have, least, most))
    return found


def _doing_rows(attempts: Sequence[Attempt]) -> list[YieldRow]:
    """Return rows for steps and grasps: the attempts that reached each of them, and those that completed it."""
    rows = []
    for step in dict.fromkeys(step_of(text) for attempt in attempts for text in attempt.steps):
        mine = [attempt for attempt in attempts if step in map(step_of, attempt.steps)]
        past = sum(attempt.success or failed_step(attempt) != step for attempt in mine)
        rows.append(_doing("step", step, len(mine), past))
    reached = [attempt for attempt in attempts if attempt.success or failed_step(attempt) == "success"]
    if reached:
        rows.append(_doing("step", "success", len(reached), sum(attempt.success for attempt in reached)))
    for name, unit, factor in (("tilt", "deg", float(np.degrees(1.0))), ("width", "mm", 1e3)):
        values = [[grasp[name] * factor for grasp in attempt.grasps if name in grasp] for attempt in attempts]
        for entry in _bins(f"grasp {name} [{unit}]", values):
            mine = [attempt for attempt, has in zip(attempts, entry.have, strict=True) if has]
            row = _doing(entry.factor, entry.value, len(mine), sum(attempt.success for attempt in mine))
            rows.append(row)
    return rows


def _doing(factor: str, value: str, tried: int, passed: int) -> YieldRow:
    return YieldRow(
        factor=factor, value=value, part="doing", episodes=tried, kept=passed, attempts=tried, successes=passed
    )
