"""Duration of repeated calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

SECONDS = 1.0
"""Shortest measured time [s]."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times of all calls together."""

    calls: int
    wall: float
    """[s]"""
    cpu: float
    """CPU time of this process [s]."""


def repeat(call: Callable[[], object], *, seconds: float | None = None) -> Timing:
    """Repeat a call, which waits for the device, at least once and until a time has passed.

    Args:
        call: The call; the caller has made it once before, so compiling is not measured.
        seconds: Shortest time [s]; :data:`SECONDS` by default.
    """
    least = SECONDS if seconds is None else seconds
    calls, start, cpu_start = 0, time.perf_counter(), time.process_time()
    while not calls or time.perf_counter() - start < least:
        call()
        calls += 1
    return Timing(calls=calls, wall=time.perf_counter() - start, cpu=time.process_time() - cpu_start)
