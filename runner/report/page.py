"""The page of a report: one HTML file with its style and pictures inside, readable without JavaScript."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from PIL import Image

from nimbus.datagen.datasets.certificates.page import render_certificates
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Attempt
from nimbus.datagen.store.ledger.records import TimeSpan
from nimbus.runner.monitor.dashboard_view import duration
from nimbus.runner.preview import camera_order, readable
from nimbus.runner.report.coverage import render_coverage
from nimbus.runner.report.failures import render_failures
from nimbus.runner.report.style import STYLE
from nimbus.runner.report.summary import Summary
from nimbus.runner.report.table import render_table
from nimbus.runner.report.timeline import render_timeline
from nimbus.runner.report.yields import render_flags, render_planned, render_variants

_SAMPLES = 6
_LISTED = 200
_MOMENTS = (0.05, 0.35, 0.65, 0.98)

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>
:root { color-scheme: light dark; --ink: #1d2129; --faint: #68707d; --paper: #fbfbf9; --card: #fff; --line: #e4e4df;
  --bar: #2f7d6d; --warn: #c7772e; --idle: #efefea; --load: #9a86c4; --randomize: #5b8fd0; --plan: #3a6fb0;
  --render: #2f9d86; --store: #d9a53a; --fault: #cc3d4a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e4; --faint: #9aa1ac; --paper: #16181c; --card: #1e2126;
  --line: #30343b; --bar: #4fb29d; --warn: #dd9a5a; --idle: #272b31; --load: #a794d2; --randomize: #76a5df;
  --plan: #5286c8; --render: #46b39b; --store: #e0b350; --fault: #ea5f6b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 2.5rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 1.8rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .8rem; }
p.sub { color: var(--faint); margin: .2rem 0 1.6rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(11.5rem, 1fr)); gap: 1rem; }
.figure, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.2rem; }
.figure b { display: block; font-size: 1.6rem; font-weight: 650; line-height: 1.25; white-space: nowrap; }
.figure span, small, caption { color: var(--faint); font-size: .85rem; }
.columns { columns: 26rem 2; column-gap: 1rem; } .columns section { break-inside: avoid; margin-bottom: 1rem; }
section { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { padding: .22rem .5rem .22rem 0; text-align: right; white-space: nowrap; }
td:first-child, th:first-child { text-align: left; } th { color: var(--faint); font-weight: 500; font-size: .85rem; }
td.bar { width: 45%; } td.bar i { display: block; height: .7rem; border-radius: 3px; background: var(--bar); }
td.bar i.warn { background: var(--warn); }
table.left td, table.left th { text-align: left; padding-right: 1rem; } td.text { white-space: normal; }
a { color: inherit; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--ink); font-size: 12px; } svg text.tick { fill: var(--faint); font-size: 10px;
  paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
.idle { fill: var(--idle); } path.tick { stroke: var(--line); fill: none; stroke-width: 1; }
.s-load { fill: var(--load); background: var(--load); } .s-plan { fill: var(--plan); background: var(--plan); }
.startup { fill: var(--load); fill-opacity: .3; background: color-mix(in srgb, var(--load) 30%, var(--idle)); }
.s-randomize { fill: var(--randomize); background: var(--randomize); }
.s-render { fill: var(--render); background: var(--render); } .s-store { fill: var(--store); background: var(--store); }
.s-fault { fill: var(--fault); background: var(--fault); stroke: var(--card); }
circle { fill: var(--bar); fill-opacity: .75; } path.bad { stroke: var(--warn); stroke-width: 1.6; fill: none; }
.legend { margin: 0 0 .6rem; font-size: .85rem; color: var(--faint); } .legend span { margin-right: 1.2rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px; margin-right: .35rem;
  vertical-align: -.08rem; } .legend i.dot { background: var(--bar); border-radius: 50%; }
.legend i.cross { background: var(--warn); clip-path: polygon(20% 0, 50% 30%, 80% 0, 100% 20%, 70% 50%, 100% 80%,
  80% 100%, 50% 70%, 20% 100%, 0 80%, 30% 50%, 0 20%); }
p.run { margin: .6rem 0 .2rem; }
.maps { display: flex; gap: 2rem; flex-wrap: wrap; }
.kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(7.6rem, 1fr)); gap: .8rem; flex: 1 1 20rem; }
.kinds svg { max-width: 100%; }
.map { margin: 0; } .map figcaption { font-size: .8rem; color: var(--faint); max-width: 21rem; margin-top: .3rem; }
.map b { color: var(--ink); font-weight: 600; }
section.wide { margin: 1rem 0; }
.sample { margin: 0 0 1.2rem; } .sample p { margin: 0 0 .35rem; } .sample small { float: right; }
.strip { display: grid; gap: 4px; grid-template-columns: repeat(6, 1fr); }
.strip img { width: 100%; border-radius: 4px; }
$style</style></head><body>
<h1>$title</h1><p class="sub">$subtitle</p>
<div class="figures">$figures</div>
$timeline$flags<div class="columns">$sections</div>
$table$coverage$planned$failures$faults<section><h2>Samples</h2>$samples</section>
<section class="wide"><h2>Runs</h2>$runs</section>
<section class="wide"><h2>Stored episodes</h2>$episodes</section>
</body></html>
""")


def render_page(folder: Path, summary: Summary, *, plans: Sequence[Attempt], spans: Iterable[TimeSpan]) -> str:
    """The page as text, sample pictures read from the stored episodes.

    Args:
        folder: Of the dataset.
        summary: Its figures.
        plans: Attempts, one for each plan.
        spans: What workers did.
    """
    sections = [
        (f"CPU time {summary.each}", _stage_table(summary)),
        ("Why attempts failed", _bars(summary.reasons.items(), warn=True) or "<p>No attempt failed.</p>"),
        ("Where attempts failed", _bars(summary.phases.items(), warn=True) or "<p>No attempt failed.</p>"),
        ("Least kept variants and poses", render_variants(summary.yields)),
        ("Yield by kind of object", _kind_table(summary)),
    ]
    samples = readable(_sample, [folder / attempt.path for attempt in summary.episodes[:_SAMPLES]])
    return _PAGE.substitute(
        title=f"{escape(summary.task)}: {summary.stored} episode{'' if summary.stored == 1 else 's'}",
        subtitle=escape(_subtitle(summary)),
        figures="".join(
            f'<div class="figure"><b>{value}</b><span>{name}</span></div>' for name, value in _top(summary)
        ),
        sections="".join(f"<section><h2>{title}</h2>{body}</section>" for title, body in sections),
        style=STYLE,
        flags=_section("Never or seldom kept", render_flags(summary.yields)),
        table=_section("Reach and yield", _table_map(folder, summary, plans)),
        planned=_section("Planned against kept", render_planned(summary.yields)),
        failures=_section("Failures", render_failures(folder, plans)),
        timeline=_section("Who did what", render_timeline(summary.runs, spans, summary.fault_rows)),
        coverage=_section("Where objects started", render_coverage(plans)),
        faults=_section("Certificates", render_certificates(folder)) + _section("Faults", _fault_table(summary)),
        runs=_run_table(summary) or "<p>No run is in the ledger.</p>",
        samples="".join(samples) or "<p>No episode with pictures is stored.</p>",
        episodes=_episode_table(summary),
    )


def _table_map(folder: Path, summary: Summary, plans: Sequence[Attempt]) -> str:
    reach = next((run.reach for run in reversed(summary.runs) if run.reach), {})
    stored = [attempt.path for attempt in summary.episodes[:1]]
    kept = [plan.failure.path for plan in plans if plan.failure][:1]
    return render_table(summary.yields, reach=reach, episodes=[folder / path for path in (*stored, *kept)[:1]])


def _section(title: str, body: str) -> str:
    return f'<section class="wide"><h2>{title}</h2>{body}</section>' if body else ""


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


def _top(summary: Summary) -> list[tuple[str, str]]:
    asked = f" <small>of {summary.target}</small>" if summary.target else ""
    median = summary.durations.get("median")
    figures = _time_figures(summary)
    return [
        ("episodes stored", f"{summary.stored}{asked}"),
        (f"of {summary.attempts} attempts succeed", f"{summary.success_rate:.0%}"),
        (f"CPU time {summary.each}", f"{summary.cpu_per_episode:.1f} s"),
        ("median motion", f"{median:.1f} s" if median is not None else "–"),
        ("demonstrations in all", duration(summary.durations.get("total", 0.0))),
        ("on disk", _size(summary.byte_count + summary.failure_bytes)),
        *figures,
    ]


def _time_figures(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.wall_seconds:
        yield "wall time", duration(summary.wall_seconds)
    if summary.stored_per_hour:
        yield "episodes stored an hour", f"{summary.stored_per_hour:.0f}"
    if summary.distance:
        after = f", {summary.distance_after_startup:.2f} after start-up" if summary.distance_after_startup else ""
        text = f"times the bound of {duration(summary.bound_seconds)}{after}"
        yield text, f"{summary.distance:.2f}"
    if summary.cost_per_episode is not None:
        yield f"a stored episode, at {summary.price_per_hour:g} an hour", f"{summary.cost_per_episode:.2g}"
    if summary.quarantined:
        yield "episodes quarantined", str(summary.quarantined)


def _size(byte_count: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if byte_count >= factor:
            return f"{byte_count / factor:.1f} {unit}"
    return f"{byte_count / 1e3:.0f} kB"


def _table(head: Sequence[str], rows: Iterable[str], *, left: bool = False) -> str:
    cells = "".join(f"<th>{name}</th>" for name in head)
    return f"<table{' class=left' * left}><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _bar(share: float, *, warn: bool = False) -> str:
    style = ' class="warn"' if warn else ""
    return f'<td class="bar"><i{style} style="width:{max(share * 100, 0.5):.1f}%"></i></td>'


def _bars(counts: Iterable[tuple[str, int]], *, warn: bool) -> str:
    counts = list(counts)
    if not counts:
        return ""
    largest = max(count for _, count in counts)
    rows = (
        f"<tr><td>{escape(name.replace('_', ' '))}</td>{_bar(count / largest, warn=warn)}<td>{count}</td></tr>"
        for name, count in counts
    )
    return _table(("", "", "attempts"), rows)


def _stage_table(summary: Summary) -> str:
    total = summary.cpu_per_episode or 1.0
    rows = [
        f"<tr><td>{escape(stage.stage)}</td>{_bar(stage.per_episode / total)}<td>{stage.per_episode:.2f} s</td>"
        f"<td>{stage.per_episode / total:.0%}</td></tr>"
        for stage in summary.stages
    ]
    rows += [
        f"<tr><td><small>once: {escape(stage)}</small></td><td></td><td><small>{seconds:.2f} s</small></td>"
        "<td></td></tr>"
        for stage, seconds in summary.once.items()
    ]
    rows += [
        f"<tr><td><small>{escape(name.replace('_', ' '))}</small></td><td></td>"
        f"<td><small>{seconds / max(1, summary.stored):.2f} s</small></td><td><small>wall</small></td></tr>"
        for name, seconds in summary.waits.items()
    ]
    return _table(("", "", "each", "share"), rows)


def _kind_table(summary: Summary) -> str:
    rows = (
        f"<tr><td>{escape(row.kind.replace('_', ' '))}</td>"
        f"{_bar(row.successes / row.attempts, warn=row.successes / row.attempts < 0.6)}"
        f"<td>{row.successes / row.attempts:.0%}</td><td>{row.attempts}</td></tr>"
        for row in summary.kinds
    )
    return _table(("", "", "succeed", "attempts"), rows)


def _fault_table(summary: Summary) -> str:
    rows = []
    for fault in summary.fault_rows[-_LISTED:]:
        name = escape(fault.incident.rpartition("/")[2])
        link = f'<a href="{quote(fault.incident)}/">{name}</a>' if name else ""
        when = time.strftime("%H:%M:%S", time.localtime(fault.time))
        episode = str(fault.idx) if fault.idx >= 0 else ""
        rows.append(
            f"<tr><td>{when}</td><td>{fault.run}</td><td>{escape(fault.worker) or '–'}</td>"
            f"<td>{escape(fault.kind.replace('_', ' '))}</td><td>{escape(fault.phase)}</td><td>{episode}</td>"
            f'<td class="text">{escape(fault.detail[:160])}</td><td class="text">{link}</td></tr>'
        )
    head = ("time", "run", "seat", "kind", "phase", "episode", "what", "incident")
    return _table(head, rows, left=True) if rows else ""


def _run_table(summary: Summary) -> str:
    rows = [
        f"<tr><td>{run.id}</td><td>{time.strftime('%Y-%m-%d %H:%M', time.localtime(run.started))}</td>"
        f"<td>{escape(run.mode)}</td><td>{escape(run.state)}</td><td>{run.cores or '–'}</td>"
        f"<td>{escape(run.workers) or '–'}</td><td>{duration(run.startup_seconds)}</td><td>{duration(run.seconds)}</td>"
        f"<td>{run.stored}</td><td>{run.faults}</td></tr>"
        for run in summary.runs
    ]
    head = ("run", "began", "mode", "ended", "cores", "workers", "start-up", "took", "stored", "faults")
    return _table(head, rows) if rows else ""


def _episode_table(summary: Summary) -> str:
    rows = [
        f"<tr><td>{escape(attempt.episode_id)}</td><td>{len(attempt.objects)}</td><td>{attempt.attempt + 1}</td>"
        f"<td>{attempt.duration:.1f} s</td><td>{attempt.step_count}</td><td>{_size(attempt.stored_bytes)}</td></tr>"
        for attempt in summary.episodes[:_LISTED]
    ]
    more = len(summary.episodes) - len(rows)
    note = f"<p><small>and {more} more, see ledger.sqlite</small></p>" if more > 0 else ""
    return _table(("episode", "objects", "attempt", "motion", "steps", "size"), rows) + note


def _sample(path: Path) -> str:
    with EpisodeFile(path) as episode:
        if not episode.cameras:
            return ""
        last = episode.step_count - 1
        pictures = []
        for rank, camera in enumerate(camera_order(episode)):
            for moment in _MOMENTS[1:3] if rank else _MOMENTS:
                pixels = episode.rows(f"observations/images/{camera}", round(moment * last))
                pictures.append(f'<img alt="{escape(camera)}" src="data:image/jpeg;base64,{_jpeg(pixels)}">')
        head = f"<p>{escape(episode.instruction)} <small>{escape(episode.episode_id)}</small></p>"
        return f'<div class="sample">{head}<div class="strip">{"".join(pictures)}</div></div>'


def _jpeg(pixels: object) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=85)  # pyright: ignore[reportArgumentType]
    return base64.b64encode(buffer.getvalue()).decode()
