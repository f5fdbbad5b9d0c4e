"""Checks of signals: numbers, jumps, constant columns, stored statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.qa.finding import Finding, fail, warn
from nimbus.datagen.qa.view import Clip

_STATE = "observation.state"
_JUMP = 8.0
"""How many times further than in 95 of 100 steps is a jump, …"""
_JUMP_SHARE = 0.2
"""… if it is also this share of a column's range."""
_BACK = 0.5
"""Share of a jump that is left after the way back."""
_OFF = 1e-3
"""Of a column's range: what stored statistics may differ by."""
_COUNTERS = ("timestamp", "frame_index", "episode_index", "index", "task_index")


class SignalChecks:
    """Takes episodes in and says at the end what shows only in all of them.

    Args:
        stats: Statistics as stored, by feature.
    """

    def __init__(self, stats: Mapping[str, Mapping[str, Any]]) -> None:
        self._stats = stats
        self._sums: dict[str, dict[str, Any]] = {}
        self._states: list[tuple[str, NDArray[np.float32]]] = []

    def add(self, clip: Clip) -> Iterator[Finding]:
        """What is wrong with one episode on its own."""
        for name, values in clip.columns.items():
            if values.dtype.kind not in "fiu" or name in _COUNTERS or not len(values):
                continue
            rows = values.reshape(len(values), -1).astype(np.float64)
            bad = ~np.isfinite(rows).all(axis=1)
            if bad.any():
                yield fail("finite", clip.name, f"{name}: row {int(np.argmax(bad))} holds a number that is not finite")
                continue
            known = self._sums.setdefault(name, {"count": 0, "sum": 0.0, "low": np.inf, "high": -np.inf})
            known["count"] += len(rows)
            known["sum"] = known["sum"] + rows.sum(axis=0)
            known["low"] = np.minimum(known["low"], rows.min(axis=0))
            known["high"] = np.maximum(known["high"], rows.max(axis=0))
            if name == _STATE:
                self._states.append((clip.name, rows.astype(np.float32)))

    def end(self) -> list[Finding]:
        """What shows in all episodes together."""
        return [*self._jumps(), *self._constants(), *self._statistics()]

    def _jumps(self) -> Iterator[Finding]:
        steps = [np.abs(np.diff(rows, axis=0)) for _, rows in self._states if len(rows) > 1]
        if not steps:
            return
        known = self._sums[_STATE]
        share = _JUMP_SHARE * (known["high"] - known["low"])
        far = np.maximum(_JUMP * np.quantile(np.concatenate(steps), 0.95, axis=0), share)
        for name, rows in self._states:
            step = np.diff(rows, axis=0)
            there, back = step[:-1], step[1:]
            # A gripper may close within a step; nothing real goes somewhere and is back in the next one.
            jumps = (np.abs(there) > far) & (np.abs(back) > far) & (np.abs(there + back) < _BACK * np.abs(there))
            if jumps.any():
                row, column = (int(place[0]) for place in np.nonzero(jumps))
                what = f"{_STATE}[{column}] jumps by {there[row, column]:.3g} in row {row + 1} and back"
                yield fail("jumps", name, what)

    def _constants(self) -> Iterator[Finding]:
        for name, known in self._sums.items():
            still = np.flatnonzero(known["high"] == known["low"])
            if len(still):
                yield warn("constant", name, f"column {still[0]} never changes: normalizing divides by zero")

    def _statistics(self) -> Iterator[Finding]:
        for name, known in self._sums.items():
            scale = np.maximum(known["high"] - known["low"], 1e-9)
            right = {"min": known["low"], "max": known["high"], "mean": known["sum"] / known["count"]}
            for key, value in right.items():
                stored = self._stats.get(name, {}).get(key)
                if stored is None:
                    continue
                if np.shape(stored) != np.shape(value) or np.any(np.abs(np.asarray(stored) - value) > _OFF * scale):
                    yield fail("stats", name, f"stored {key} is not that of the rows")
                    break
