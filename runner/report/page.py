"""The page of a report: one HTML file with its style and pictures inside, readable without JavaScript."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.datasets.certificates.subject import render_certificates
from nimbus.datagen.media.pages import jpeg_uri, render_html
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Attempt
from nimbus.runner.media.preview import camera_order, readable
from nimbus.runner.monitor.dashboard_view import duration
from nimbus.runner.report.coverage import map_starts
from nimbus.runner.report.failures import FailureTree
from nimbus.runner.report.scene_maps import map_scenes
from nimbus.runner.report.summary import Summary
from nimbus.runner.report.table import TableMap, map_table
from nimbus.runner.report.timeline import SHOWN, Timeline
from nimbus.runner.report.yields import chart_yields, flag_rows, least_kept, shown_meanings

_TEMPLATE = Path(__file__).parent / "templates" / "report.html.j2"
_SAMPLES = 6
_LISTED = 200
_MOMENTS = (0.05, 0.35, 0.65, 0.98)


@dataclass(frozen=True)
class KeyFigure:
    """Key figure at the top of the page."""

    name: str
    value: str
    note: str = ""
    """Text in a smaller font beside the value."""


@dataclass(frozen=True)
class SampleStrip:
    """Pictures of one episode."""

    instruction: str
    episode_id: str
    pictures: list[tuple[str, str]]
    """Camera and address of each."""


def render_page(
    folder: Path,
    summary: Summary,
    *,
    plans: Sequence[Attempt],
    failures: FailureTree | None,
    timelines: Sequence[Timeline],
) -> str:
    """Render the page, with sample images from the stored episodes.

    Args:
        folder: Folder of the dataset.
        summary: Figures of the report.
        plans: Attempts, one for each plan; evenly spread ones of a large dataset.
        failures: Tree of all failed attempts.
        timelines: Timelines of the last runs.
    """
    samples = readable(_sample, [folder / attempt.path for attempt in summary.episodes[:_SAMPLES]])
    return render_html(
        _TEMPLATE,
        title=f"{summary.task}: {summary.stored} episode{'' if summary.stored == 1 else 's'}",
        subtitle=_subtitle(summary),
        summary=summary,
        figures=list(_key_figures(summary)),
        stages=SHOWN,
        timelines=timelines,
        yields=summary.yields,
        flags=flag_rows(summary.yields),
        meanings=list(shown_meanings(summary.semantic_yields)),
        variants=least_kept(summary.yields),
        planned=chart_yields(summary.yields),
        table=_table(folder, summary, plans),
        starts=map_starts(plans),
        scene_maps=map_scenes(folder, plans),
        failures=failures,
        certificates=render_certificates(folder),
        samples=[sample for sample in samples if sample],
        max_rows=_LISTED,
        duration=duration,
        size=_size,
        local_time=_local_time,
    )


def _table(folder: Path, summary: Summary, plans: Sequence[Attempt]) -> TableMap | None:
    reach = next((run.reach for run in reversed(summary.runs) if run.reach), {})
    stored = [attempt.path for attempt in summary.episodes[:1]]
    kept = [plan.failure.path for plan in plans if plan.failure][:1]
    return map_table(summary.yields, reach=reach, episodes=[folder / path for path in (*stored, *kept)[:1]])


def _subtitle(summary: Summary) -> str:
    cameras = ", ".join(f"{name} {width} × {height}" for name, (width, height) in sorted(summary.cameras.items()))
    parts = [
        f"robot {summary.robot}" if summary.robot else "",
        f"seed {summary.seed}",
        f"{summary.rate:g} Hz" if summary.rate else "",
        cameras,
    ]
    parts.append(f"last run: {summary.state}" if summary.state else "")
    return " · ".join(part for part in parts if part)


def _key_figures(summary: Summary) -> Iterator[KeyFigure]:
    median = summary.durations.get("median")
    yield KeyFigure("episodes stored", f"{summary.stored}", f"of {summary.target}" if summary.target else "")
    yield KeyFigure(f"of {summary.attempts} attempts succeed", f"{summary.success_rate:.0%}")
    yield KeyFigure(f"CPU time {summary.each}", f"{summary.cpu_per_episode:.1f} s")
    yield KeyFigure("median motion", f"{median:.1f} s" if median is not None else "–")
    yield KeyFigure("demonstrations in all", duration(summary.durations.get("total", 0.0)))
    yield KeyFigure("on disk", _size(summary.byte_count + summary.failure_bytes))
    if summary.wall_seconds:
        yield KeyFigure("wall time", duration(summary.wall_seconds))
    if summary.startup_seconds:
        yield KeyFigure("of which start-up, once per run", duration(summary.startup_seconds))
    if summary.stored_per_working_hour:
        yield KeyFigure("episodes stored per hour", f"{summary.stored_per_working_hour:.0f}")
    if distance := summary.distance_after_startup:
        bound = summary.working_bound
        yield KeyFigure(f"times the bound of {duration(bound.seconds)} ({bound.name})", f"{distance:.2f}")
    if summary.cost_per_episode is not None:
        name = f"cost of a stored episode, at {summary.price_per_hour:g} per hour"
        yield KeyFigure(name, f"{summary.cost_per_episode:.2g}")
    if summary.quarantined:
        yield KeyFigure("episodes quarantined", str(summary.quarantined))


def _size(byte_count: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if byte_count >= factor:
            return f"{byte_count / factor:.1f} {unit}"
    return f"{byte_count / 1e3:.0f} kB"


def _local_time(seconds: float, pattern: str) -> str:
    return time.strftime(pattern, time.localtime(seconds))


def _sample(path: Path) -> SampleStrip | None:
    with EpisodeFile(path) as episode:
        if not episode.cameras:
            return None
        last = episode.step_count - 1
        pictures = [
            (camera, jpeg_uri(episode.rows(f"observations/images/{camera}", round(moment * last))))
            for rank, camera in enumerate(camera_order(episode))
            for moment in (_MOMENTS[1:3] if rank else _MOMENTS)
        ]
        return SampleStrip(episode.instruction, episode.episode_id, pictures)
