"""Small plots as SVG text, for a page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WIDTH, _HEIGHT = 360, 120


def histogram(values: Sequence[float] | NDArray[Any], *, unit: str, bins: int = 24) -> str:
    """How often values occur."""
    numbers = np.asarray(values, np.float64)
    counts, edges = np.histogram(numbers, bins=min(bins, max(1, len(np.unique(numbers)))))
    step, top = _WIDTH / len(counts), max(1, counts.max())
    bars = "".join(
        f'<rect x="{place * step + 1:.1f}" y="{_HEIGHT - count / top * _HEIGHT:.1f}" width="{max(1, step - 2):.1f}" '
        f'height="{count / top * _HEIGHT:.1f}" class="mark"/>'
        for place, count in enumerate(counts)
    )
    ticks = _ticks([(0, f"{edges[0]:.4g}", "start"), (_WIDTH, f"{edges[-1]:.4g} {unit}", "end")])
    most = f'<text x="0" y="-4" class="tick">up to {int(top)}</text>'
    return _svg(bars + most + ticks, _WIDTH, _HEIGHT + 20, top=16)


def bars(counts: Mapping[str, int], *, most: int = 12) -> str:
    """Counts by name."""
    rows = list(counts.items())[:most]
    top = max((count for _, count in rows), default=1) or 1
    parts = [
        f'<text x="0" y="{row * 34 + 12}">{escape(name[:52])}</text>'
        f'<rect x="0" y="{row * 34 + 17}" width="{max(1.0, count / top * (_WIDTH - 50)):.1f}" height="9" class="mark"/>'
        f'<text x="{count / top * (_WIDTH - 50) + 6:.1f}" y="{row * 34 + 26}" class="tick">{count}</text>'
        for row, (name, count) in enumerate(rows)
    ]
    return _svg("".join(parts), _WIDTH, max(1, len(rows)) * 34)


def ranges(low: NDArray[Any], mean: NDArray[Any], high: NDArray[Any], names: Sequence[str]) -> str:
    """A line from the lowest to the highest value of each column, and its mean."""
    least, greatest = float(low.min()), float(high.max())
    scale = (_WIDTH - 120) / max(greatest - least, 1e-9)
    parts: list[str] = []
    for row, (one, middle, other) in enumerate(zip(low, mean, high, strict=True)):
        name = names[row] if row < len(names) else str(row)
        y, ends = row * 18 + 9, [118 + (value - least) * scale for value in (one, middle, other)]
        parts.append(f'<text x="0" y="{y + 4}">{escape(name[-17:])}</text>')
        parts.append(f'<line x1="{ends[0]:.1f}" x2="{max(ends[2], ends[0] + 1):.1f}" y1="{y}" y2="{y}" class="line"/>')
        parts.append(f'<circle cx="{ends[1]:.1f}" cy="{y}" r="3.5" class="mark"/>')
    bottom = len(low) * 18
    ticks = _ticks([(118, f"{least:.3g}", "start"), (_WIDTH, f"{greatest:.3g}", "end")], y=bottom + 14)
    return _svg("".join(parts) + ticks, _WIDTH, bottom + 20)


def scatter(x: NDArray[Any], y: NDArray[Any]) -> str:
    """Points, both axes to one scale."""
    span = max(float(np.ptp(x)), float(np.ptp(y)), 1e-6)
    left, bottom, size = float(x.min()), float(y.min()), 200
    dots = "".join(
        f'<circle cx="{(one - left) / span * size:.1f}" cy="{size - (other - bottom) / span * size:.1f}" r="2.5" '
        'class="mark" fill-opacity=".6"/>'
        for one, other in zip(x[:2000], y[:2000], strict=True)
    )
    return _svg(dots, size, size + 6, top=6)


def _ticks(places: Sequence[tuple[float, str, str]], *, y: float = _HEIGHT + 14) -> str:
    return "".join(
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" class="tick">{escape(text)}</text>'
        for x, text, anchor in places
    )


def _svg(body: str, width: float, height: float, *, top: float = 0) -> str:
    return f'<svg viewBox="-4 {-top} {width + 8} {height + top}" role="img">{body}</svg>'
