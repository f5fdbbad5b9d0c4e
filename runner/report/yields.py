"""The report's yield ledger: which values are seldom kept, and what was planned against what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nimbus.datagen.analysis.significance import wilson
from nimbus.datagen.analysis.yields import YieldRow, Yields

_HEIGHT, _WIDTH, _GAP = 44, 18, 3
_MOST_BARS = 24
_MOST_LOOKS = 48
"""Factors of looks that are shown."""
_CATEGORIES = ("kind", "variant", "class", "rest pose", "cell")
"""Shown elsewhere, or too many for bars."""


def flag_words(flag: YieldRow) -> str:
    """One line about a value that is not kept as often as others."""
    what = f"{flag.factor} {flag.value}: {flag.flag}, {flag.kept} of {flag.episodes} episodes"
    return f"{what} (p = {flag.p_value:.2g}, q = {flag.q_value:.2g})"


def render_flags(yields: Yields) -> str:
    """The flagged values as HTML, and how they were found."""
    if not yields.episodes:
        return ""
    method = (
        f"<p><small>{yields.kept} of {yields.episodes} episodes kept. Every value drawn before the motion is tested: "
        "Fisher's exact test, one-sided, over episodes; q after Benjamini and Hochberg over the values that are "
        f"frequent enough to be found; level {yields.level:.0%}. What the strongest flag explains is not blamed "
        "again.</small></p>"
    )
    if not yields.flags:
        return f"<p>No value is kept significantly seldom.</p>{method}"
    rows = "".join(
        f"<tr><td>{escape(flag.factor)}</td><td><b>{escape(flag.value)}</b></td><td>{flag.flag}</td>"
        f"<td>{flag.kept} of {flag.episodes}</td><td>{_interval(flag)}</td><td>{flag.p_value:.2g}</td>"
        f"<td>{flag.q_value:.2g}</td></tr>"
        for flag in yields.flags
    )
    head = "".join(f"<th>{name}</th>" for name in ("", "value", "", "kept", "95 %", "p", "q"))
    return f"<table class=left><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{method}"


def render_planned(yields: Yields) -> str:
    """Planned against kept, a small chart for each parameter, as HTML."""
    factors: dict[str, list[YieldRow]] = {}
    for row in yields.rows:
        if row.factor not in _CATEGORIES:
            factors.setdefault(row.factor, []).append(row)
    charts = {"physical": "", "doing": "", "visual": ""}
    for factor, rows in factors.items():
        if rows[0].part != "visual" or charts["visual"].count("<figure") < _MOST_LOOKS:
            charts[rows[0].part] += _chart(factor, rows)
    looks = f"<details><summary>looks</summary><div class='charts'>{charts['visual']}</div></details>"
    text = '<p class="legend"><span><i class="planned"></i>planned</span><span><i class="kept"></i>kept</span></p>'
    text += f'<div class="charts">{charts["physical"]}{charts["doing"]}</div>'
    if not charts["physical"] + charts["doing"] + charts["visual"]:
        return ""
    return text + (looks if charts["visual"] else "")


def render_variants(yields: Yields) -> str:
    """Object variants from the least kept, as a table."""
    rows = sorted(yields.of("variant", "rest pose"), key=lambda row: (row.share, -row.episodes))[:16]
    body = "".join(
        f"<tr><td>{escape(row.value.replace('_', ' '))}</td><td>{row.share:.0%}</td><td>{row.kept} of {row.episodes}"
        f"</td><td>{row.successes} of {row.attempts}</td></tr>"
        for row in rows
    )
    head = "".join(f"<th>{name}</th>" for name in ("", "kept", "episodes", "attempts"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""


def _interval(row: YieldRow) -> str:
    low, high = wilson(row.kept, row.episodes)
    return f"{low:.0%} to {high:.0%}"


def _chart(factor: str, rows: Sequence[YieldRow]) -> str:
    """Bars of the planned, filled as far as they were kept."""
    shown = rows[:_MOST_BARS]
    most = max(row.episodes for row in shown) or 1
    bars = []
    for place, row in enumerate(shown):
        x, full, kept = place * (_WIDTH + _GAP), row.episodes / most * _HEIGHT, row.kept / most * _HEIGHT
        words = f"{row.value}: {row.kept} of {row.episodes}"
        style = "kept bad" if row.flag else "kept"
        bars.append(
            f'<g><title>{escape(words)}</title><rect class="planned" x="{x}" y="{_HEIGHT - full:.1f}" width="{_WIDTH}" '
            f'height="{full:.1f}"/><rect class="{style}" x="{x}" y="{_HEIGHT - kept:.1f}" width="{_WIDTH}" '
            f'height="{kept:.1f}"/></g>'
        )
    width = len(shown) * (_WIDTH + _GAP)
    ends = (shown[0].value, shown[-1].value)
    if shown[0].low is not None and shown[-1].high is not None:
        ends = (f"{shown[0].low:.3g}", f"{shown[-1].high:.3g}")
    axis = escape(ends[0] if len(shown) == 1 or ends[0] == ends[1] else f"{ends[0]} … {ends[1]}")
    drawing = f'<svg viewBox="0 0 {width} {_HEIGHT}" style="width:{width}px">{"".join(bars)}</svg>'
    worst = min(row.share for row in shown)
    caption = f"<b>{escape(factor)}</b><br>{axis}<br>kept: {worst:.0%} at least"
    return f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"
