"""Value of the flags that say how many workers a run has: planners and renderers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nimbus.runner.cell.transport.spec import MOST_WORKERS


@dataclass(frozen=True)
class WorkerSplit:
    """Value of ``PxR``: planners and renderers."""

    counts: tuple[int, int] | None
    """None: chosen from the number of cores."""


def worker_split(text: str) -> WorkerSplit:
    """Parse planners and renderers such as ``2x1``, or ``auto``."""
    if text == "auto":
        return WorkerSplit(None)
    match = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", text)
    if match is None or not int(match[1]) or not int(match[2]):
        raise ValueError(f"expected 'auto' or planners x renderers such as 2x1, found '{text}'")
    planners, renderers = int(match[1]), int(match[2])
    if planners + renderers > MOST_WORKERS:
        raise ValueError(f"{text} are {planners + renderers} workers, at most {MOST_WORKERS} can work")
    return WorkerSplit((planners, renderers))
