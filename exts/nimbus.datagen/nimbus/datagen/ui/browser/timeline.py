"""Timeline of a demonstration: its subtasks by arm, the contacts of the hands, and the shown moment, as an SVG."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nimbus.datagen.datasets.multiply.intervals import runs

if TYPE_CHECKING:
    from nimbus.datagen.datasets.multiply.cuts import SubtaskCut
    from nimbus.datagen.ui.cuts_source import ArmContacts

COLORS = ((46, 117, 182), (214, 112, 29), (46, 139, 87), (148, 84, 176), (196, 61, 74), (120, 110, 30))
"""Colors of subtasks, which repeat."""
_WIDTH, _LEFT, _BAR, _GAP = 420, 6, 24, 5
_HEADING, _STRIP, _TICKS = 14, 6, 18
_MOST_TICKS = 8
_TICK_STEPS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
"""Distances of ticks [s]."""
_STYLE = "font: 12px system-ui, sans-serif; width: 100%; display: block; user-select: none"
_LIST = "font: 12px system-ui, sans-serif; width: 100%; border-spacing: 0 2px; margin: 4px 0"


def color_of(index: int) -> tuple[int, int, int]:
    """Return the color of a subtask."""
    return COLORS[index % len(COLORS)]


def draw_timeline(
    cuts: Sequence[SubtaskCut],
    contacts: Mapping[str, ArmContacts],
    *,
    arms: Sequence[str],
    rows: int,
    rate: float,
    chosen: int,
    row: int,
) -> str:
    """Draw a demonstration.

    Args:
        cuts: Subtasks.
        contacts: Contacts by arm; an arm without entry has none.
        arms: Arms of the robot, one line each.
        rows: Number T of rows.
        rate: Rows per second [Hz].
        chosen: Index of the selected subtask.
        row: Shown row.
    """
    named = len(arms) > 1
    line = _BAR + _STRIP + _GAP + (_HEADING if named else 0)
    height = line * len(arms) + _TICKS
    parts = []
    for place, arm in enumerate(arms):
        top = place * line
        if named:
            parts.append(_text(_LEFT, top + 11, "start", arm))
            top += _HEADING
        parts.append(_box(0, rows, rows, top, _BAR, 'fill="#8884" rx="3"'))
        for index, cut in enumerate(cuts):
            if arm in cut.arms:
                parts.append(_bar(cut, index, rows, top, is_chosen=index == chosen))
        if arm in contacts:
            for flags, color in ((contacts[arm].touches, "#9aa"), (contacts[arm].holds, "#334")):
                parts += [_box(*run, rows, top + _BAR + 2, _STRIP - 2, f'fill="{color}"') for run in runs(flags)]
    parts += _ticks(rows, rate, height)
    at = _x(row, rows)
    parts.append(f'<path d="M{at:.1f} 0V{height - _TICKS + 4}" stroke="#e02020" stroke-width="2"/>')
    return f'<svg viewBox="0 0 {_WIDTH} {height}" style="{_STYLE}">{"".join(parts)}</svg>'


def draw_list(cuts: Sequence[SubtaskCut], *, rate: float, chosen: int, arms: Sequence[str]) -> str:
    """Draw the list of subtasks with their times, as an HTML table.

    Args:
        cuts: Subtasks.
        rate: Rows per second [Hz].
        chosen: Index of the selected subtask.
        arms: Arms of the robot; a column names them if there are several.
    """
    lines = []
    for index, cut in enumerate(cuts):
        red, green, blue = color_of(index)
        cells = [f"{index + 1}. {cut.verb} {cut.frame or 'in the world'}"]
        cells += [", ".join(cut.arms)] if len(arms) > 1 else []
        cells += [f"{cut.start / rate:.2f} s", f"{(cut.stop - 1) / rate:.2f} s"]
        style = "font-weight: 700; background: #8883" if index == chosen else ""
        mark = f'<td style="width: 12px; background: rgb({red},{green},{blue})"></td>'
        marked = (f'<td style="padding: 1px 6px">{html.escape(cell)}</td>' for cell in cells)
        lines.append(f'<tr style="{style}">{mark}{"".join(marked)}</tr>')
    return f'<table style="{_LIST}">{"".join(lines)}</table>'


def _x(row: float, rows: int) -> float:
    return _LEFT + (_WIDTH - 2 * _LEFT) * row / max(1, rows - 1)


def _box(start: float, stop: float, rows: int, top: float, height: float, style: str) -> str:
    """Return a rectangle between two rows; it ends at the last row T - 1."""
    left, right = _x(start, rows), _x(min(stop, rows - 1), rows)
    return f'<rect x="{left:.1f}" y="{top}" width="{max(1.5, right - left):.1f}" height="{height}" {style}/>'


def _bar(cut: SubtaskCut, index: int, rows: int, top: int, *, is_chosen: bool) -> str:
    red, green, blue = color_of(index)
    edge = 'stroke="currentColor" stroke-width="2.5"' if is_chosen else ""
    bar = _box(cut.start, cut.stop - 1, rows, top, _BAR, f'fill="rgb({red},{green},{blue})" rx="3" {edge}')
    middle = (_x(cut.start, rows) + _x(cut.stop - 1, rows)) / 2
    place = f'x="{middle:.1f}" y="{top + 17}" text-anchor="middle"'
    return f'{bar}<text {place} fill="white" font-weight="700">{index + 1}</text>'


def _ticks(rows: int, rate: float, height: int) -> list[str]:
    end = (rows - 1) / rate
    step = next((one for one in _TICK_STEPS if end / one <= _MOST_TICKS), end / _MOST_TICKS)
    parts, at = [], 0.0
    while at <= end - step / 2 or at == 0:
        x = _x(at * rate, rows)
        anchor = "start" if at == 0 else "middle"
        parts.append(f'<path d="M{x:.1f} {height - _TICKS}v4" stroke="currentColor"/>')
        parts.append(_text(x, height - 3, anchor, f"{at:g}"))
        at += step
    return [*parts, _text(_WIDTH - _LEFT, height - 3, "end", f"{end:.1f} s")]


def _text(x: float, y: float, anchor: str, text: str) -> str:
    place = f'x="{x:.1f}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place} font-size="11" fill="currentColor">{html.escape(text)}</text>'
