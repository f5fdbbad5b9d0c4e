"""The report's maps: where objects started, in attempts that succeeded and in those that failed, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nimbus.datagen.store.ledger.ledger import Attempt

_SIZE, _LARGE = 132, 330
_PAD = 0.02
"""Margin around the outermost starts [m]."""
_MOST_KINDS = 30
_MOST_POINTS = 1500
"""Largest number of points in a map; more are thinned out evenly."""
_CELLS = 8
"""Cells along each side, for the figure on the evenness of starts."""


@dataclass(frozen=True)
class _Start:
    kind: str
    x: float
    y: float
    success: bool


@dataclass(frozen=True)
class _StartArea:
    """Area of the maps [m]."""

    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def side(self) -> float:
        """Side of its bounding square."""
        return max(self.x[1] - self.x[0], self.y[1] - self.y[0], 1e-3)


@dataclass(frozen=True, kw_only=True)
class StartMap:
    """Starts seen from above [px]: the robot looks up, along x; y grows to the left."""

    name: str
    count: int
    width: int
    height: int
    radius: float
    """Radius of a dot."""
    cross: str
    """SVG path of a cross, from its center."""
    succeeded: list[tuple[float, float]]
    failed: list[tuple[float, float]]
    columns: list[float]
    """Positions of lines of equal y, 10 cm apart."""
    rows: list[float]
    """Positions of lines of equal x, 10 cm apart."""
    labels: list[tuple[float, float, str]]
    """Position and text of each label."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Maps of all starts."""

    all: StartMap
    kinds: list[StartMap]
    """Maps by kind, ordered by increasing success rate; empty if there is only one kind."""
    hidden: int
    """Kinds without a map."""
    sides: str
    """Size of the area that holds all starts."""
    tried: int
    """Number of map cells with a start."""
    succeeded: int
    """Number of map cells with a start of a successful attempt."""
    fields: int = _CELLS * _CELLS


def map_starts(plans: Iterable[Attempt]) -> Coverage | None:
    """Map the starts of objects; None where the ledger holds no positions.

    Args:
        plans: Attempts, one for each plan.
    """
    starts = [
        _Start(kind=placed["kind"], x=float(placed["x"]), y=float(placed["y"]), success=plan.success)
        for plan in plans
        for placed in plan.objects
        if "x" in placed and "y" in placed
    ]
    if not starts:
        return None
    xs, ys = [start.x for start in starts], [start.y for start in starts]
    box = _StartArea((min(xs) - _PAD, max(xs) + _PAD), (min(ys) - _PAD, max(ys) + _PAD))
    kinds = sorted({start.kind for start in starts}, key=lambda kind: _share(_of(starts, kind)))
    return Coverage(
        all=_map("", starts, box, _LARGE),
        kinds=[_map(kind, _of(starts, kind), box, _SIZE) for kind in kinds[:_MOST_KINDS] if len(kinds) > 1],
        hidden=len(kinds) - _MOST_KINDS,
        sides=f"{(box.x[1] - box.x[0]) * 100:.0f} × {(box.y[1] - box.y[0]) * 100:.0f} cm",
        tried=len({_cell(start, box) for start in starts}),
        succeeded=len({_cell(start, box) for start in starts if start.success}),
    )


def _of(starts: list[_Start], kind: str) -> list[_Start]:
    return [start for start in starts if start.kind == kind]


def _share(starts: list[_Start]) -> float:
    return sum(start.success for start in starts) / len(starts)


def _cell(start: _Start, box: _StartArea) -> tuple[int, int]:
    row = (start.x - box.x[0]) / max(box.x[1] - box.x[0], 1e-6)
    column = (start.y - box.y[0]) / max(box.y[1] - box.y[0], 1e-6)
    return min(_CELLS - 1, int(row * _CELLS)), min(_CELLS - 1, int(column * _CELLS))


def _map(name: str, starts: list[_Start], box: _StartArea, size: int) -> StartMap:
    """Lay out a map; only a large one has labels."""
    scale = size / box.side
    width, height = (box.y[1] - box.y[0]) * scale, (box.x[1] - box.x[0]) * scale
    shown = starts[:: max(1, len(starts) // _MOST_POINTS)]
    radius = max(2.0, size / 110)
    columns = [(round((box.y[1] - y) * scale, 1), y) for y in _tens(box.y)]
    rows = [(round((box.x[1] - x) * scale, 1), x) for x in _tens(box.x)]
    # Labels that would overlap in the lower left corner are left out.
    labels: list[tuple[float, float, str]] = []
    labels += [(round(x + 2, 1), round(height) - 3, f"y {y:.1f}") for x, y in columns if 18 < x < width - 40]
    labels += [(3, round(y - 2, 1), f"x {x:.1f} m") for y, x in rows if 12 < y < height - 14]
    return StartMap(
        name=name,
        count=len(starts),
        width=round(width),
        height=round(height),
        radius=round(radius, 1),
        cross=_cross(radius * 1.3),
        succeeded=[_place(start, box, scale) for start in shown if start.success],
        failed=[_place(start, box, scale) for start in shown if not start.success],
        columns=[x for x, _ in columns],
        rows=[y for y, _ in rows],
        labels=labels if size == _LARGE else [],
    )


def _place(start: _Start, box: _StartArea, scale: float) -> tuple[float, float]:
    return round((box.y[1] - start.y) * scale, 1), round((box.x[1] - start.x) * scale, 1)


def _cross(arm: float) -> str:
    return f"m{-arm:.1f} {-arm:.1f}l{2 * arm:.1f} {2 * arm:.1f}m0 {-2 * arm:.1f}l{-2 * arm:.1f} {2 * arm:.1f}"


def _tens(span: tuple[float, float]) -> Iterator[float]:
    first, last = (round(value * 10) for value in span)
    yield from (tenth / 10 for tenth in range(first, last + 1) if span[0] <= tenth / 10 <= span[1])
