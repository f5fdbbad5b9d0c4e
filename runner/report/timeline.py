"""Timeline of the report: one row per worker seat, colored by stage, with faults marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.store.ledger.records import Fault, TimeSpan
from nimbus.runner.report.figures import RunFigures

SHOWN = ("load", "randomize", "plan", "render", "store")
"""Stages with a color; other activities, such as starting, are drawn as loading."""
_WIDTH, _LEFT, _TOP = 1000, 64, 6
_ROW, _GAP = 22, 6
_BINS = 1400
_MOST_SEATS = 32
_MOST_RUNS = 4
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


@dataclass(frozen=True, kw_only=True)
class TimelineRow:
    """Row of one worker seat."""

    seat: str
    y: int
    """Vertical position [px]."""
    bars: dict[str, str]
    """SVG path of the time that a stage took, by stage."""


@dataclass(frozen=True, kw_only=True)
class FaultMark:
    """Mark of a fault."""

    path: str
    """SVG path."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Drawing of one run; all lengths are pixels."""

    run: RunFigures
    height: int
    length: float
    """Length of the whole run [px]."""
    startup: float
    """Length of the run's start-up [px]."""
    rows: list[TimelineRow]
    marks: list[FaultMark]
    ticks: list[tuple[float, str]]
    """Position [px] and text of each tick."""
    fault_count: int
    hidden: int
    """Workers without a row."""
    width: int = _WIDTH
    left: int = _LEFT
    top: int = _TOP
    row_height: int = _ROW


def lay_out_timelines(
    runs: Sequence[RunFigures], spans_of: Callable[[int], Iterable[TimeSpan]], faults: Iterable[Fault]
) -> list[Timeline]:
    """Lay out the timelines of the last runs that have known spans.

    Args:
        runs: Runs in order.
        spans_of: Returns the work of workers in a run, by its number; called twice.
        faults: Faults in any of these runs.
    """
    known, faults = list[Timeline](), list(faults)
    for run in reversed(runs):
        seats: set[str] = set()
        end = run.started + run.seconds
        for span in spans_of(run.id):
            seats.add(span.worker)
            end = max(end, span.end)
        if seats:
            mine = [fault for fault in faults if fault.run == run.id]
            known.insert(0, _lay_out(run, seats, end, spans_of(run.id), mine))
        if len(known) == _MOST_RUNS:
            break
    return known


def _lay_out(
    run: RunFigures, workers: set[str], end: float, spans: Iterable[TimeSpan], faults: list[Fault]
) -> Timeline:
    seats = sorted(workers | {fault.worker for fault in faults if fault.worker}, key=_number)
    hidden = len(seats) - _MOST_SEATS
    tops = {seat: _TOP + row * (_ROW + _GAP) for row, seat in enumerate(seats[:_MOST_SEATS])}
    length = max(end - run.started, 1e-3)
    scale = (_WIDTH - _LEFT - 8) / length
    busy = {seat: np.zeros((len(SHOWN), _BINS)) for seat in tops}
    for span in spans:
        if span.worker in busy:
            _add(busy[span.worker], span, run.started, length / _BINS)
    rows = [TimelineRow(seat=seat, y=y, bars=_bars(busy[seat], length / _BINS, scale, y)) for seat, y in tops.items()]
    return Timeline(
        run=run,
        height=_TOP + len(rows) * (_ROW + _GAP) + 20,
        length=round(length * scale, 1),
        startup=round(min(run.startup_seconds, length) * scale, 1),
        rows=rows,
        marks=[
            _mark(fault, run.started, scale, tops.get(fault.worker, _TOP))
            for fault in faults
            if not fault.worker or fault.worker in tops
        ],
        ticks=list(_ticks(length, scale)),
        fault_count=len(faults),
        hidden=hidden,
    )


def _add(busy: FloatArray, span: TimeSpan, begin: float, width: float) -> None:
    """Add a span to the time that each stage took in slices of time, (stages, slices) [slices]."""
    stage = SHOWN.index(span.stage) if span.stage in SHOWN else 0
    first, last = (span.begin - begin) / width, (span.end - begin) / width
    low, high = max(0, int(first)), min(_BINS - 1, int(last))
    if high < low:
        return
    busy[stage, low : high + 1] += 1.0
    busy[stage, low] -= first - low
    busy[stage, high] -= high + 1 - last


def _bars(busy: FloatArray, width: float, scale: float, y: int) -> dict[str, str]:
    """Draw one path per stage; each of many slices of time belongs to the stage that took the most of it."""
    chosen = np.where(busy.sum(axis=0) > 0.25, busy.argmax(axis=0), -1)
    edges = np.flatnonzero(np.diff(chosen, prepend=-2, append=-2))
    paths: dict[int, list[str]] = {}
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        if (stage := int(chosen[low])) >= 0:
            x, size = _LEFT + low * width * scale, (high - low) * width * scale
            paths.setdefault(stage, []).append(f"M{x:.1f} {y}h{size:.1f}v{_ROW}h-{size:.1f}z")
    return {SHOWN[stage]: "".join(pieces) for stage, pieces in paths.items()}


def _mark(fault: Fault, begin: float, scale: float, y: int) -> FaultMark:
    x = _LEFT + (fault.time - begin) * scale
    phase = f" in {fault.phase}" if fault.phase else ""
    path = f"M{x:.1f} {y - 4}l6 {_ROW // 2 + 4}l-6 {_ROW // 2 + 4}l-6 -{_ROW // 2 + 4}z"
    return FaultMark(path=path, text=f"{fault.kind}{phase}: {fault.detail}"[:200])


def _ticks(length: float, scale: float) -> Iterator[tuple[float, str]]:
    step = next((tick for tick in _TICKS if length / tick <= 12), _TICKS[-1])
    for tick in range(int(length // step) + 1):
        yield round(_LEFT + tick * step * scale, 1), _clock(tick * step)


def _clock(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02d} min"
    return f"{seconds // 3600}:{seconds % 3600 // 60:02d} h"


def _number(seat: str) -> tuple[int, str]:
    return (int(seat), "") if re.fullmatch("[0-9]{1,9}", seat) else (1 << 30, seat)
