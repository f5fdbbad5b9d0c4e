"""Spans of work, merged as finely as a timeline can show them: a long run leaves no longer a list than a short one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Stay: TypeAlias = tuple[str, float, float]
"""A stage, with its begin and end [s since 1970]."""

_WINDOWS = 2000
"""Windows in a run so far: stays shorter than a window are joined with others of their row in it."""
_FINEST = 0.1
"""Shortest window [s]."""


@dataclass
class _SpanWindow:
    begin: float
    busy: dict[str, float] = field(default_factory=dict)
    """Busy time by stage, in the order of first use [s]."""


class SpanMerger:
    """Joins the short spans of a row: in each window of time, one for a stage, as long as all of them together.

    A window is a tenth of a second at first and one part in two thousand of the run so far later on, so that a run of
    minutes is kept exactly, and one of a month in some ten thousand spans a row.

    Args:
        started: Start of the run [s since 1970].
    """

    def __init__(self, *, started: float) -> None:
        self._started = started
        self._windows: dict[str, _SpanWindow] = {}

    def take(self, row: str, spans: Iterable[Stay]) -> Iterator[Stay]:
        """Take the next spans of a row, in their order, and give those whose windows have ended."""
        for stage, begin, end in spans:
            window = self._windows.get(row)
            if window is None or end - window.begin > max(_FINEST, (end - self._started) / _WINDOWS):
                yield from self.rest(row)
                window = self._windows[row] = _SpanWindow(begin)
            window.busy[stage] = window.busy.get(stage, 0.0) + end - begin

    def rest(self, row: str) -> Iterator[Stay]:
        """Give the rest of a row's last window, one stage after the other."""
        window = self._windows.pop(row, None)
        if window is None:
            return
        begin = window.begin
        for stage, seconds in window.busy.items():
            yield stage, begin, begin + seconds
            begin += seconds


def merge_spans(spans: Iterable[Stay]) -> tuple[Stay, ...]:
    """Merge the spans of a worker, those of work, as finely as any timeline shows them."""
    merger = SpanMerger(started=math.inf)
    work = (span for span in spans if span[0] not in ("none", "wait"))
    return (*merger.take("", work), *merger.rest(""))
