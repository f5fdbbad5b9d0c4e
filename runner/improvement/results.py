"""Results of an improvement: success by round with its interval, sources of the rows, waiting time of each role."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.media.pages import render_html
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.evaluation.results import rate_text, read_evaluation
from nimbus.runner.improvement.learner import read_record
from nimbus.runner.improvement.loop import Improvement, LoopSettings
from nimbus.runner.improvement.times import ROLE_NAMES, RoleTimes, read_times

RESULTS, PAGE = "results.json", "report.html"
_TEMPLATE = Path(__file__).parent / "templates" / "improvement.html.j2"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 260, 44, 26
"""Size of the chart and of its margins [px]."""


@dataclass(frozen=True, kw_only=True)
class RoundResult:
    """One round: the sources of the rows of its version, and the success of the version."""

    round: int
    policy: str
    sources: dict[str, int]
    """Episodes of this round that it learned from, by source."""
    success: int = 0
    of: int = 0
    """Number of evaluated held-out layouts; 0 if the version is not evaluated."""
    interval: tuple[float, float] = (0.0, 1.0)
    """Interval of the success rate at 95 % (Wilson)."""

    @property
    def rate(self) -> float:
        """Fraction of the layouts at which it succeeds."""
        return self.success / max(1, self.of)


@dataclass(frozen=True, kw_only=True)
class ImprovementResults:
    """All rounds of an improvement, and the times of its roles."""

    settings: LoopSettings
    rounds: tuple[RoundResult, ...]
    times: dict[str, RoleTimes]

    def to_text(self) -> str:
        """Encode as JSON."""
        return to_json(self, indent=1) + "\n"


def summarize(loop: Improvement) -> ImprovementResults:
    """Collect the results in the files of an improvement."""
    waiting = set(loop.unevaluated())
    versions = range(loop.published())
    return ImprovementResults(
        settings=loop.settings,
        rounds=tuple(_round(loop, version, is_evaluated=version not in waiting) for version in versions),
        times={name: read_times(loop, name) for name in ROLE_NAMES},
    )


def _round(loop: Improvement, version: int, *, is_evaluated: bool) -> RoundResult:
    record = read_record(loop, version)
    if version >= len(record.rounds):
        what = f"expected the sources of at least {version + 1} rounds, found {len(record.rounds)}"
        raise InputError(
            what, where=str(loop.policy(version)), instead="restore the folder, or begin a new improvement"
        )
    base = RoundResult(round=version, policy=record.policy, sources=record.rounds[version])
    if not is_evaluated or not loop.settings.layouts:
        return base
    found = read_evaluation(loop.evaluation(version))
    return RoundResult(
        round=version,
        policy=record.policy,
        sources=record.rounds[version],
        success=found.success_count,
        of=len(found.judged),
        interval=found.interval,
    )


def waiting_share(times: RoleTimes) -> float:
    """Return the idle fraction of a role's time, from the first version on."""
    total = times.working + times.evaluating + times.waiting
    return times.waiting / total if total else 0.0


def lines_of(found: ImprovementResults) -> list[str]:
    """Lines for the terminal."""
    lines = [f"{Path(found.settings.task).stem}: {found.settings.objective}, staleness {found.settings.staleness}"]
    for one in found.rounds:
        learned = ", ".join(f"{count} {name}" for name, count in one.sources.items()) or "nothing new"
        rate = rate_text(one.success, one.of, one.interval) if one.of else "not evaluated"
        lines.append(f"round {one.round}: {rate}, from {learned}; policy {one.policy}")
    for name, times in found.times.items():
        parts = f"{times.working:.0f} s at work, {times.evaluating:.0f} s evaluating, {times.waiting:.0f} s waiting"
        lines.append(f"{name}: {parts} ({waiting_share(times):.0%})")
    return lines


def write_results(loop: Improvement, found: ImprovementResults) -> None:
    """Write the results and the page that shows them."""
    replace_text(loop.folder / RESULTS, found.to_text())
    page = render_html(
        _TEMPLATE,
        title=f"{Path(found.settings.task).stem}: success by round",
        subtitle=f"{found.settings.objective}, seed {found.settings.seed}, staleness {found.settings.staleness}",
        chart=_chart(found),
        rounds=found.rounds,
        times=[(name, times, waiting_share(times)) for name, times in found.times.items()],
    )
    replace_text(loop.folder / PAGE, str(page))


@dataclass(frozen=True, kw_only=True)
class RoundChart:
    """Success by round, as lines of a drawing [px]."""

    width: int
    height: int
    left: int
    ticks: list[tuple[float, str]]
    """Height and text of each horizontal line."""
    rounds: list[tuple[float, float, float, float, str]]
    """Place, rate, ends of the interval, and text of each round."""
    line: str
    """Path through the rates."""


def _chart(found: ImprovementResults) -> RoundChart:
    shown = [one for one in found.rounds if one.of]
    step = (_WIDTH - _LEFT) / max(1, len(shown))

    def y(rate: float) -> float:
        return round(8 + (1 - rate) * (_HEIGHT - _BOTTOM - 8), 1)

    places = [round(_LEFT + (index + 0.5) * step, 1) for index in range(len(shown))]
    rows = [
        (x, y(one.rate), y(one.interval[0]), y(one.interval[1]), f"{one.round}")
        for x, one in zip(places, shown, strict=True)
    ]
    return RoundChart(
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        ticks=[(y(rate), f"{rate:.0%}") for rate in (0.0, 0.25, 0.5, 0.75, 1.0)],
        rounds=rows,
        line="M" + "L".join(f"{x} {middle}" for x, middle, *_ in rows) if rows else "",
    )
