"""Merging of spans of work to the resolution of a timeline, so that the list of a long run does not grow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Stay: TypeAlias = tuple[str, float, float]
"""A stage, with its begin and end [s since 1970]."""

_WINDOWS = 2000
"""Number of windows over the run so far; spans shorter than a window are merged with others of their row."""
_FINEST = 0.1
"""Shortest window [s]."""


@dataclass
class _SpanWindow:
    begin: float
    busy: dict[str, float] = field(default_factory=dict)
    """Busy time by stage, in the order of first use [s]."""


class SpanMerger:
    """Merges the short spans of a row: in each window of time, the spans of a stage become one of their total length.

    A window is a tenth of a second at first, and later a two-thousandth of the run so far. A run of minutes is kept
    exactly, and a run of a month has some ten thousand spans per row.

    Args:
        started: Start of the run [s since 1970].
    """

    def __init__(self, *, started: float) -> None:
        self._started = started
        self._windows: dict[str, _SpanWindow] = {}

    def take(self, row: str, spans: Iterable[Stay]) -> Iterator[Stay]:
        """Add the next spans of a row, in their order; yields merged spans of windows that have ended."""
        for stage, begin, end in spans:
            window = self._windows.get(row)
            if window is None or end - window.begin > max(_FINEST, (end - self._started) / _WINDOWS):
                yield from self.rest(row)
                window = self._windows[row] = _SpanWindow(begin)
            window.busy[stage] = window.busy.get(stage, 0.0) + end - begin

    def rest(self, row: str) -> Iterator[Stay]:
        """Yield the merged spans of a row's last window, one stage after another."""
        window = self._windows.pop(row, None)
        if window is None:
            return
        begin = window.begin
        for stage, seconds in window.busy.items():
            yield stage, begin, begin + seconds
            begin += seconds


def merge_spans(spans: Iterable[Stay]) -> tuple[Stay, ...]:
    """Merge a worker's spans of work to the resolution of a timeline."""
    merger = SpanMerger(started=math.inf)
    work = (span for span in spans if span[0] not in ("none", "wait"))
    return (*merger.take("", work), *merger.rest(""))
