"""Duration of the start of an instance on this machine, learned from its earlier starts."""

from __future__ import annotations

import logging
import statistics
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.codec import from_json, to_json

logger = logging.getLogger("nimbus.cell")

UNKNOWN = 120.0
"""Assumed duration before the first start [s]: a cold one compiles shaders for minutes."""
_KEPT = 5
"""Number of latest starts that count: caches fill, and drivers change."""


class StartCosts:
    """Durations of the latest starts, kept in a file between runs.

    Args:
        folder: The folder of the instances; empty for none.
    """

    def __init__(self, folder: str) -> None:
        self._path = Path(folder, "starts.json") if folder else None
        self._starts: list[float] = []
        if self._path is not None and self._path.is_file():
            with suppress(OSError, ValueError):  # after a damaged file, durations are learned again
                self._starts = [seconds for seconds in from_json(list[float], self._path.read_text()) if seconds > 0]

    @property
    def seconds(self) -> float:
        """Median duration of the latest starts [s]."""
        return statistics.median(self._starts) if self._starts else UNKNOWN

    def record(self, seconds: float) -> None:
        """Record the duration of a start [s]."""
        self._starts = [*self._starts, seconds][-_KEPT:]
        if self._path is not None:
            try:
                write_atomic(self._path, to_json(self._starts), durable=False, shared=True)
            except OSError as error:
                logger.info("%s: %s", self._path, error.strerror)
