"""What QA found, as one HTML file with its style, plots and pictures inside."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterator
from html import escape
from string import Template

import numpy as np
from PIL import Image

from nimbus.datagen.datasets.quality import plots
from nimbus.datagen.datasets.quality.checks import Examination
from nimbus.datagen.datasets.quality.finding import CHECKS, Level
from nimbus.datagen.datasets.quality.signals import ACTION, STATE
from nimbus.datagen.datasets.quality.view import View

_LISTED = 200
_TALL = 120

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>
:root { color-scheme: light dark; --ink: #1d2129; --faint: #68707d; --paper: #fbfbf9; --card: #fff; --line: #e4e4df;
  --mark: #2f7d6d; --fail: #c0392b; --warn: #b9770e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e4; --faint: #9aa1ac; --paper: #16181c; --card: #1e2126;
  --line: #30343b; --mark: #4fb29d; --fail: #ea6f60; --warn: #dd9a5a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 2.5rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 1.8rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .8rem; }
h3 { font-size: .85rem; font-weight: 500; color: var(--faint); margin: 0 0 .4rem; }
p.sub { color: var(--faint); margin: .2rem 0 1.2rem; }
p.verdict { font-size: 1.25rem; font-weight: 650; margin: 0 0 1.6rem; }
.fail { color: var(--fail); } .warn { color: var(--warn); } .ok { color: var(--mark); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.2rem;
  margin: 0 0 1rem; overflow-x: auto; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1.4rem; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: .22rem .8rem .22rem 0; text-align: left; vertical-align: top; }
th { color: var(--faint); font-weight: 500; font-size: .85rem; } td.name { white-space: nowrap; font-weight: 600; }
svg { display: block; width: 100%; max-width: 26rem; height: auto; overflow: visible; }
svg text { fill: var(--ink); font-size: 12px; } svg text.tick { fill: var(--faint); font-size: 11px; }
.mark { fill: var(--mark); } .line { stroke: var(--faint); stroke-width: 2; }
.strip { display: flex; gap: 4px; margin: 0 0 .9rem; flex-wrap: wrap; }
.strip img { border-radius: 4px; display: block; }
.square svg { max-width: 15rem; }
</style></head><body>
<h1>$title</h1><p class="sub">$subtitle</p><p class="verdict">$verdict</p>
$findings<section><h2>Checks</h2>$checks</section>
<section><h2>Spread</h2><div class="plots">$plots</div></section>
$pictures</body></html>
""")


def render_page(name: str, view: View, found: Examination, *, notes: str = "") -> str:
    """The page as text.

    Args:
        name: Of the dataset.
        view: The dataset.
        found: What came of it.
        notes: HTML of more sections, before the checks.
    """
    fails = sum(finding.level is Level.FAIL for finding in found.findings)
    warns = len(found.findings) - fails
    verdict = f'<span class="fail">{fails} faults</span>' if fails else '<span class="ok">Fit to train on.</span>'
    verdict += f' <span class="warn">{warns} warnings.</span>' if warns else ""
    looked = (
        "all pictures" if found.pictures_looked_at >= found.picture_count else f"{found.pictures_looked_at:,} pictures"
    )
    parts = [view.format, f"{found.episode_count:,} episodes", f"{found.frame_count:,} frames", f"{view.fps:g} Hz"]
    parts += [view.robot] if view.robot else []
    return _PAGE.substitute(
        title=escape(name),
        subtitle=escape(" · ".join([*parts, f"{looked} looked at"])),
        verdict=verdict,
        findings=_findings(found) + notes,
        checks=_checks(found),
        plots="".join(
            f'<div class="{kind}"><h3>{escape(title)}</h3>{svg}</div>' for title, svg, kind in _plots(view, found)
        ),
        pictures=_pictures(found),
    )


def _figure(title: str, svg: str, kind: str) -> str:
    return f'<div class="{kind}"><h3>{escape(title)}</h3>{svg}</div>'


def _row(level: str, *cells: str) -> str:
    first, *others = cells
    return f'<tr><td class="name {level}">{first}</td>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'


def _findings(found: Examination) -> str:
    if not found.findings:
        return ""
    ordered = sorted(found.findings, key=lambda finding: finding.level is not Level.FAIL)
    rows = "".join(_row(one.level.value, one.check, escape(one.where), escape(one.what)) for one in ordered[:_LISTED])
    more = f"<p>and {len(ordered) - _LISTED} more</p>" if len(ordered) > _LISTED else ""
    return f"<section><h2>Findings</h2><table>{rows}</table>{more}</section>"


def _checks(found: Examination) -> str:
    counts = Counter((finding.check, finding.level) for finding in found.findings)
    rows: list[str] = []
    for name, meaning in CHECKS.items():
        told = [f"{counts[name, level]} {level.value}" for level in Level if counts[name, level]]
        kind = "fail" if counts[name, Level.FAIL] else "warn" if told else "ok"
        rows.append(
            f'<tr><td class="name {kind}">{name}</td><td>{meaning}</td><td>{", ".join(told) or "nothing"}</td></tr>'
        )
    return f"<table><tr><th>check</th><th>what should hold</th><th>found</th></tr>{''.join(rows)}</table>"


def _plots(view: View, found: Examination) -> Iterator[tuple[str, str, str]]:
    if found.lengths:
        yield "length of episodes", plots.histogram([*found.lengths.values()], unit="rows"), ""
    if found.tasks:
        yield "episodes by instruction", plots.bars(found.tasks), ""
    for name, label in ((STATE, "range of states"), (ACTION, "range of actions")):
        if name in found.ranges:
            yield label, plots.ranges(*found.ranges[name], view.joint_names), ""
    starts = {name[:-6]: values for name, values in found.drawn.items() if name.endswith(" x [m]")}
    x = np.concatenate([*starts.values()]) if starts else np.zeros(0)
    y = np.concatenate([found.drawn[f"{name} y [m]"] for name in starts]) if starts else np.zeros(0)
    if len(x):
        yield "where objects start, from above", plots.scatter(x, y), "square"
    for name, values in found.drawn.items():
        if name.startswith("light ") and len(np.unique(values)) > 1:
            yield f"drawn: {name}", plots.histogram(values, unit=""), ""


def _pictures(found: Examination) -> str:
    if not found.looks:
        return ""
    rows = "".join(
        f'<h3>episode {look.number}, {escape(look.camera)}</h3><div class="strip">'
        + "".join(f'<img alt="" height="{_TALL}" src="{_data(picture)}">' for picture in look.strip)
        + "</div>"
        for look in found.looks
    )
    return f"<section><h2>Pictures</h2>{rows}</section>"


def _data(picture: np.ndarray) -> str:
    """A picture as an address of its own."""
    image = Image.fromarray(picture)
    image.thumbnail((4 * _TALL, _TALL))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"
