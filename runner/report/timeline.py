"""The report's timeline: one row a worker seat, coloured by what the worker did, faults marked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from html import escape

import numpy as np

from nimbus.datagen.store.ledger.records import Fault, TimeSpan
from nimbus.runner.monitor.dashboard_view import duration
from nimbus.runner.report.figures import RunFigures

SHOWN = ("load", "randomize", "plan", "render", "store")
"""Stages with a colour; what else a worker does, such as starting, looks like loading."""
_WIDTH, _LEFT, _TOP = 1000, 64, 6
_ROW, _GAP = 22, 6
_BINS = 1400
_MOST_SEATS = 32
_MOST_RUNS = 4
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


def render_timeline(runs: Iterable[RunFigures], spans: Iterable[TimeSpan], faults: Iterable[Fault]) -> str:
    """The timeline of the last runs, as HTML; empty when no worker told what it did.

    Args:
        runs: In order.
        spans: What workers did, in any of these runs.
        faults: Likewise.
    """
    by_run: dict[int, list[TimeSpan]] = {}
    for span in spans:
        by_run.setdefault(span.run, []).append(span)
    shown = [run for run in runs if run.id in by_run][-_MOST_RUNS:]
    if not shown:
        return ""
    faults = list(faults)
    parts = [_one(run, by_run[run.id], [fault for fault in faults if fault.run == run.id]) for run in shown]
    return _legend(any(fault.run in {run.id for run in shown} for fault in faults)) + "".join(parts)


def _legend(has_faults: bool) -> str:
    items = [f'<span><i class="s-{stage}"></i>{stage}</span>' for stage in SHOWN]
    items.insert(0, '<span><i class="startup"></i>start-up</span>')
    items += ['<span><i class="s-fault"></i>fault</span>'] if has_faults else []
    return f'<p class="legend">{"".join(items)}</p>'


def _one(run: RunFigures, spans: list[TimeSpan], faults: list[Fault]) -> str:
    seats = sorted({span.worker for span in spans} | {fault.worker for fault in faults if fault.worker}, key=_number)
    hidden = len(seats) - _MOST_SEATS
    seats = seats[:_MOST_SEATS]
    end = max([run.started + run.seconds, *(span.end for span in spans)])
    length = max(end - run.started, 1e-3)
    scale = (_WIDTH - _LEFT - 8) / length
    height = _TOP + len(seats) * (_ROW + _GAP) + 20
    body = [*_axis(length, scale, height)]
    started = min(run.startup_seconds, length) * scale
    for row, seat in enumerate(seats):
        y = _TOP + row * (_ROW + _GAP)
        mine = [span for span in spans if span.worker == seat]
        body.append(f'<text x="0" y="{y + 15}">seat {escape(seat)}</text>')
        body.append(f'<rect class="idle" x="{_LEFT}" y="{y}" width="{length * scale:.1f}" height="{_ROW}" rx="3"/>')
        if started:
            body.append(f'<rect class="startup" x="{_LEFT}" y="{y}" width="{started:.1f}" height="{_ROW}" rx="3"/>')
        body += _bars(mine, run.started, length, scale, y)
        body += [_mark(fault, run.started, scale, y) for fault in faults if fault.worker == seat]
    body += [_mark(fault, run.started, scale, _TOP) for fault in faults if not fault.worker]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started))
    more = f", {hidden} more workers not shown" if hidden > 0 else ""
    head = f"run {run.id} · {when} · {duration(run.seconds)} · {escape(run.state)} · {len(faults)} faults{more}"
    svg = f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="timeline of run {run.id}">{"".join(body)}</svg>'
    return f'<p class="run"><small>{head}</small></p>{svg}'


def _bars(spans: list[TimeSpan], begin: float, length: float, scale: float, y: int) -> Iterator[str]:
    """One path a stage: in each of many slices of time the stage that took the most of it."""
    busy = np.zeros((len(SHOWN), _BINS))
    width = length / _BINS
    for span in spans:
        stage = SHOWN.index(span.stage) if span.stage in SHOWN else 0
        first, last = (span.begin - begin) / width, (span.end - begin) / width
        low, high = max(0, int(first)), min(_BINS - 1, int(last))
        if high < low:
            continue
        busy[stage, low : high + 1] += 1.0
        busy[stage, low] -= first - low
        busy[stage, high] -= high + 1 - last
    chosen = np.where(busy.sum(axis=0) > 0.25, busy.argmax(axis=0), -1)
    edges = np.flatnonzero(np.diff(chosen, prepend=-2, append=-2))
    paths: dict[int, list[str]] = {}
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        if (stage := int(chosen[low])) >= 0:
            x, size = _LEFT + low * width * scale, (high - low) * width * scale
            paths.setdefault(stage, []).append(f"M{x:.1f} {y}h{size:.1f}v{_ROW}h-{size:.1f}z")
    for stage, pieces in paths.items():
        yield f'<path class="s-{SHOWN[stage]}" d="{"".join(pieces)}"/>'


def _mark(fault: Fault, begin: float, scale: float, y: int) -> str:
    x = _LEFT + (fault.time - begin) * scale
    place = f" in {fault.phase}" if fault.phase else ""
    title = escape(f"{fault.kind}{place}: {fault.detail}"[:200])
    shape = f"M{x:.1f} {y - 4}l6 {_ROW // 2 + 4}l-6 {_ROW // 2 + 4}l-6 -{_ROW // 2 + 4}z"
    return f'<path class="s-fault" d="{shape}"><title>{title}</title></path>'


def _axis(length: float, scale: float, height: int) -> Iterator[str]:
    step = next((tick for tick in _TICKS if length / tick <= 12), _TICKS[-1])
    for tick in range(int(length // step) + 1):
        x = _LEFT + tick * step * scale
        yield f'<path class="tick" d="M{x:.1f} {_TOP}V{height - 16}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{height - 2}">{_clock(tick * step)}</text>'


def _clock(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02d} min"
    return f"{seconds // 3600}:{seconds % 3600 // 60:02d} h"


def _number(seat: str) -> tuple[int, str]:
    return (int(seat), "") if seat.isdigit() else (1 << 30, seat)
