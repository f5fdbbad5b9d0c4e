"""What a run says of itself in ``status.json``, as much as a panel shows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """One look at a run."""

    state: str = ""
    """``running``, or how it ended: ``done``, ``short``, ``interrupted``, ``failed``."""
    activity: str = ""
    target: int = 0
    settled: int = 0
    """Episodes that need no more work."""
    stored: int = 0
    """Episodes stored, also by earlier runs into this folder."""
    failed: int = 0
    """Attempts that did not succeed."""
    remaining: float | None = None
    """[s]; None while nothing is known."""

    @property
    def share(self) -> float:
        """How much of the run is done, 0 to 1."""
        return min(1.0, self.settled / self.target) if self.target else 0.0


def read_run_status(folder: Path, *, since: float = 0.0) -> RunStatus | None:
    """The status of a run; None while there is none, or while it cannot be read.

    Args:
        folder: Of the dataset.
        since: [s since 1970] What was written before is of an earlier run.
    """
    path = folder / "status.json"
    try:
        if path.stat().st_mtime < since:
            return None
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return _status(data) if isinstance(data, dict) else None


def _status(data: dict[str, Any]) -> RunStatus:
    def number(name: str) -> int:
        value = data.get(name)
        return int(value) if isinstance(value, int | float) else 0

    failures, remaining = data.get("failures"), data.get("remaining_seconds")
    return RunStatus(
        state=str(data.get("state", "")),
        activity=str(data.get("activity", "")),
        target=number("target"),
        settled=number("settled"),
        stored=number("already_stored") + number("stored"),
        failed=sum(value for value in failures.values() if isinstance(value, int)) if isinstance(failures, dict) else 0,
        remaining=float(remaining) if isinstance(remaining, int | float) else None,
    )
