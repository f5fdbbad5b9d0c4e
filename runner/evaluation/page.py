"""Page of an evaluation: one HTML file beside its videos."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.analysis.significance import wilson
from nimbus.datagen.media.pages import render_html
from nimbus.datagen.store.ledger.ledger import FILE_NAME, Ledger
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.evaluation.compare import Comparison
from nimbus.runner.evaluation.measures import read_answer_times
from nimbus.runner.evaluation.results import Evaluation, LayoutResult, rate_text
from nimbus.runner.evaluation.show import measure_facts
from nimbus.runner.evaluation.videos import FOLDER, video_name
from nimbus.runner.report.coverage import Coverage, map_starts

NAME = "evaluation.html"
_TEMPLATE = Path(__file__).parent / "templates" / "evaluation.html.j2"
_LISTED = 200
"""Largest number of failures in the table."""


@dataclass(frozen=True, kw_only=True)
class RateBar:
    """A success rate with its confidence interval."""

    name: str
    count: int
    of: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """Return the fraction of the layouts with success."""
        return self.count / max(1, self.of)

    @property
    def line(self) -> str:
        """Return the result as text."""
        return f"{self.name}: {rate_text(self.count, self.of, (self.low, self.high))}"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A curve of values over steps."""

    title: str
    points: Sequence[tuple[float, float]]

    def path(self, width: float, height: float) -> str:
        """Return the points of an SVG polyline; the bottom is 0 and the top is the largest value."""
        most = max((value for _, value in self.points), default=1.0) or 1.0
        last = max((step for step, _ in self.points), default=1.0) or 1.0
        return " ".join(f"{width * x / last:.1f},{height * (1 - y / most):.1f}" for x, y in self.points)


def rate_bar(name: str, evaluation: Evaluation) -> RateBar:
    """Return the bar of an evaluation's success rate."""
    return bar_of(name, evaluation.success_count, len(evaluation.judged))


def bar_of(name: str, count: int, of: int) -> RateBar:
    """Return a bar with the confidence interval of ``count`` successes in ``of`` layouts."""
    low, high = wilson(count, of)
    return RateBar(name=name, count=count, of=of, low=low, high=high)


def write_page(
    folder: Path,
    evaluation: Evaluation,
    *,
    beside: Sequence[RateBar] = (),
    comparison: Comparison | None = None,
    facts: Sequence[tuple[str, str]] = (),
    curve: Curve | None = None,
    name: str = NAME,
) -> Path:
    """Write the page; return its path.

    Args:
        folder: Folder of the evaluation, in which the page is written.
        evaluation: Results of the evaluation.
        beside: Further rates to show beside that of the evaluation, such as the demonstrator's.
        comparison: Comparison with the first of these rates, by layout.
        facts: Further lines of name and value, such as the training's settings.
        curve: Loss curve of the training.
        name: Name of the file.
    """
    times = read_answer_times(folder, execute=evaluation.execute)
    kinds = [bar_of(kind.replace("_", " "), kept, tried) for kind, (kept, tried) in evaluation.by_kind().items()]
    failures = [one for one in evaluation.judged if not one.success]
    page = render_html(
        _TEMPLATE,
        title=f"{evaluation.task}: {evaluation.success_count} of {len(evaluation.judged)} layouts",
        subtitle=f"policy {evaluation.policy} · {evaluation.split} layouts of seed {evaluation.seed}"
        f" · {evaluation.execute} actions per answer · at most {evaluation.limit} steps",
        evaluation=evaluation,
        rates=[rate_bar("this policy", evaluation), *beside],
        comparison=comparison,
        facts=[*facts, *measure_facts(evaluation, times)],
        curve=curve,
        starts=_starts(folder),
        kinds=sorted(kinds, key=lambda bar: (bar.rate, bar.name)) if len(kinds) > 1 else [],
        failures=[(one, _video(folder, one)) for one in failures[:_LISTED]],
        hidden=max(0, len(failures) - _LISTED),
        successes=[(one, _video(folder, one)) for one in evaluation.judged if one.success and _video(folder, one)],
    )
    replace_text(folder / name, str(page))
    return folder / name


def _starts(folder: Path) -> Coverage | None:
    if not (folder / FILE_NAME).is_file():
        return None
    with closing(Ledger(folder, read_only=True)) as ledger:
        return map_starts([attempt for attempt in ledger.attempts() if attempt.final])


def _video(folder: Path, result: LayoutResult) -> str:
    path = f"{FOLDER}/{video_name(result)}"
    return path if (folder / path).is_file() else ""
