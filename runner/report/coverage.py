"""The report's maps: where objects started, in attempts that succeeded and in those that failed, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from nimbus.datagen.store.ledger.ledger import Attempt

_SIZE, _LARGE = 132, 330
_PAD = 0.02
"""[m] Around the outermost starts."""
_MOST_KINDS = 30
_MOST_POINTS = 1500
"""In one map; of more, evenly chosen ones are shown."""
_CELLS = 8
"""Along each side, of the figure that says how evenly starts are spread."""


@dataclass(frozen=True)
class _Start:
    kind: str
    x: float
    y: float
    success: bool


@dataclass(frozen=True)
class _MapBox:
    """What the maps show [m]."""

    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def side(self) -> float:
        """Of the square that holds it."""
        return max(self.x[1] - self.x[0], self.y[1] - self.y[0], 1e-3)


def render_coverage(plans: Iterable[Attempt]) -> str:
    """Maps as HTML; empty where the ledger holds no positions.

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
        return ""
    xs, ys = [start.x for start in starts], [start.y for start in starts]
    box = _MapBox((min(xs) - _PAD, max(xs) + _PAD), (min(ys) - _PAD, max(ys) + _PAD))
    kinds = sorted({start.kind for start in starts}, key=lambda kind: _share(_of(starts, kind)))
    maps = [_small(kind, _of(starts, kind), box) for kind in kinds[:_MOST_KINDS] if len(kinds) > 1]
    more = f"<p><small>and {len(kinds) - _MOST_KINDS} more kinds</small></p>" if len(kinds) > _MOST_KINDS else ""
    legend = '<p class="legend"><span><i class="dot"></i>attempt succeeded</span>'
    legend += '<span><i class="cross"></i>attempt failed</span></p>'
    large = f'<figure class="map">{_map(starts, box, _LARGE, axes=True)}<figcaption>{_words(starts, box)}</figcaption>'
    return f'{legend}<div class="maps">{large}</figure><div class="kinds">{"".join(maps)}{more}</div></div>'


def _of(starts: list[_Start], kind: str) -> list[_Start]:
    return [start for start in starts if start.kind == kind]


def _share(starts: list[_Start]) -> float:
    return sum(start.success for start in starts) / len(starts)


def _words(starts: list[_Start], box: _MapBox) -> str:
    reached = len({_cell(start, box) for start in starts})
    stored = len({_cell(start, box) for start in starts if start.success})
    total = _CELLS * _CELLS
    sides = f"{(box.x[1] - box.x[0]) * 100:.0f} × {(box.y[1] - box.y[0]) * 100:.0f} cm"
    text = f"{len(starts)} starts on {sides}, seen from above with the robot below. Of {total} equal fields,"
    return f"{text} {reached} were tried and {stored} succeeded in."


def _cell(start: _Start, box: _MapBox) -> tuple[int, int]:
    row = (start.x - box.x[0]) / max(box.x[1] - box.x[0], 1e-6)
    column = (start.y - box.y[0]) / max(box.y[1] - box.y[0], 1e-6)
    return min(_CELLS - 1, int(row * _CELLS)), min(_CELLS - 1, int(column * _CELLS))


def _small(kind: str, starts: list[_Start], box: _MapBox) -> str:
    name = escape(kind.replace("_", " "))
    caption = f"<b>{name}</b> {len(starts)}"
    return f'<figure class="map">{_map(starts, box, _SIZE)}<figcaption>{caption}</figcaption></figure>'


def _map(starts: list[_Start], box: _MapBox, size: int, *, axes: bool = False) -> str:
    """Seen from above: the robot looks up, along x; y grows to the left."""
    scale = size / box.side
    width, height = (box.y[1] - box.y[0]) * scale, (box.x[1] - box.x[0]) * scale
    step = max(1, len(starts) // _MOST_POINTS)
    radius = max(2.0, size / 110)
    body = [f'<rect class="idle" width="{width:.0f}" height="{height:.0f}" rx="4"/>']
    body += _grid(box, scale, width, height)
    ordered = sorted(starts[::step], key=lambda start: not start.success)  # failures on top
    for start in ordered:
        x, y = (box.y[1] - start.y) * scale, (box.x[1] - start.x) * scale
        if start.success:
            body.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>')
        else:
            arm = radius * 1.3
            lines = f"m{-arm:.1f} {-arm:.1f}l{2 * arm:.1f} {2 * arm:.1f}m0 {-2 * arm:.1f}l{-2 * arm:.1f} {2 * arm:.1f}"
            body.append(f'<path class="bad" d="M{x:.1f} {y:.1f}{lines}"/>')
    body += _words_of_grid(box, scale, width, height) if axes else ()
    return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" style="width:{width:.0f}px">{"".join(body)}</svg>'


def _grid(box: _MapBox, scale: float, width: float, height: float) -> Iterator[str]:
    """A line every 10 cm."""
    yield from (f'<path class="tick" d="M{(box.y[1] - y) * scale:.1f} 0V{height:.0f}"/>' for y in _tens(box.y))
    yield from (f'<path class="tick" d="M0 {(box.x[1] - x) * scale:.1f}H{width:.0f}"/>' for x in _tens(box.x))


def _words_of_grid(box: _MapBox, scale: float, width: float, height: float) -> Iterator[str]:
    """The lines' coordinates, where they do not meet."""
    for value in _tens(box.y):
        x = (box.y[1] - value) * scale
        if 18 < x < width - 40:
            yield f'<text class="tick" x="{x + 2:.1f}" y="{height - 3:.0f}">y {value:.1f}</text>'
    for value in _tens(box.x):
        y = (box.x[1] - value) * scale
        if 12 < y < height - 14:
            yield f'<text class="tick" x="3" y="{y - 2:.1f}">x {value:.1f} m</text>'


def _tens(span: tuple[float, float]) -> Iterator[float]:
    first, last = (round(value * 10) for value in span)
    yield from (tenth / 10 for tenth in range(first, last + 1) if span[0] <= tenth / 10 <= span[1])
