"""Environment of scenarios: folders, reference datasets and results."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from tools.chaos import checker, processes
from tools.chaos.match import Matched

FINISHED = ("done", "short")
"""States of a complete run; it may be ``short``, because the light pipeline rejects every tenth episode."""


@dataclass(kw_only=True)
class Result:
    """Outcome of a scenario."""

    name: str
    episodes: int = 0
    faults: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Figures by kind of fault: numbers of ``injected`` and ``detected`` faults, and ``median_s`` and ``max_s`` until
    detection."""
    in_mid_phase: int = 0
    """Number of faults in real physics and render workers that hit in the middle of planning, rendering or storing."""
    false_kills: int = 0
    findings: checker.Findings = field(default_factory=checker.Findings)
    figures: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    """Expected events that did not happen."""
    skipped: str = ""
    wall_seconds: float = 0.0
    _seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """True if every expectation was met."""
        return not (self.failed or self.findings.problems or self.false_kills)

    def expect(self, holds: object, otherwise: str) -> None:
        """Record an expectation that was not met."""
        if not holds:
            self.failed.append(otherwise)

    def count(self, kind: str, *, detected: bool = True, seconds: float | None = None) -> None:
        """Count one fault that was injected from outside."""
        row = self.faults.setdefault(kind, {"injected": 0, "detected": 0, "median_s": None, "max_s": None})
        row["injected"] += 1
        row["detected"] += detected
        if seconds is not None:
            times = self._seconds.setdefault(kind, [])
            times.append(round(seconds, 4))
            row |= {"median_s": median(times), "max_s": max(times)}

    def take(self, matched: Matched) -> None:
        """Count matched faults; the ledger must contain every injected fault and no other fault."""
        self.faults |= matched.table()
        self.false_kills += len(matched.false_kills)
        self.failed += [f"unexplained: {row}" for row in matched.false_kills[:5]]
        missed = {kind: count for kind, count in (matched.injected - matched.detected).items() if count}
        self.expect(not missed, f"not noticed: {missed}")

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        plain = {name: value for name, value in asdict(self).items() if not name.startswith("_")}
        plain |= {"findings": self.findings.problems, "is_good": self.is_good}
        return plain | {"fault_count": sum(row["injected"] for row in self.faults.values())}


@dataclass(kw_only=True)
class Lab:
    """Working folder and reference datasets of the scenarios.

    Args:
        folder: Empty folder.
        seed: Seed of all random choices.
        episodes: Number of episodes of the longest scenario.
        faults: Approximate number of faults of all scenarios together.
    """

    folder: Path
    seed: int
    episodes: int
    faults: int
    short: bool = False

    def random(self, *address: str) -> random.Random:
        """Return a random generator for one use."""
        return random.Random(f"{self.seed} {' '.join(address)}")

    @cached_property
    def truth(self) -> checker.Truth:
        """Return the light pipeline's episodes in two variants, from a clean run in one process."""
        spec = processes.light(
            self.folder / "clean", episodes=self.episodes, variants=2, plan_seconds=0.0, render_seconds=0.0
        )
        return self._clean(spec)

    def physics_truth(self, episodes: int) -> checker.Truth:
        """Return real episodes from a clean run in one process."""
        return self._clean(processes.physics(self.folder / "clean_physics", episodes=episodes))

    @contextmanager
    def scenario(self, name: str, **values: Any) -> Iterator[Result]:
        """Run a scenario in the context, and measure its duration."""
        result = Result(name=name, **values)
        begin = time.monotonic()
        yield result
        result.wall_seconds = round(time.monotonic() - begin, 1)

    def _clean(self, spec: Any) -> checker.Truth:
        ended, error = processes.start(spec, "--serial").end()
        if ended["state"] not in FINISHED:
            raise RuntimeError(f"the clean run failed: {ended} {error}")
        return checker.Truth.read(Path(spec.folder))
