"""The table of a chaos run, for the terminal and for docs/reliability.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"
"""Marks in the page; :func:`write` replaces the text between them."""


def totals(report: dict[str, Any]) -> dict[str, Any]:
    """Return the totals over all scenarios."""
    results = report["scenarios"].values()
    found = [result["findings"] for result in results]

    def count(*names: str) -> int:
        return sum(len(findings.get(name, ())) for findings in found for name in names)

    rows = [row for result in results for row in result["faults"].values()]
    figures = {name: value for result in results for name, value in result["figures"].items()}
    return {
        "episodes": sum(result["episodes"] for result in results),
        "faults injected": sum(row["injected"] for row in rows),
        "of them in real physics and render workers in mid-phase": sum(result["in_mid_phase"] for result in results),
        "faults detected": sum(row["detected"] for row in rows),
        "lost": count("lost"),
        "stored twice": count("doubled"),
        "wrong content": count("wrong", "other"),
        "half files": count("half_files"),
        "stray processes": count("processes"),
        "stray shared memory": count("shared_memory"),
        "false kills": sum(result["false_kills"] for result in results),
        "false quarantines": count("false_quarantines"),
        "poison that was missed": count("missed_poison"),
        "latest end of a hang after its deadline [s]": figures.get("hang_noticed_after_deadline_s", "not run"),
        "goodput with 10 % of the leases dying ÷ without": figures.get("goodput", "not run"),
    }


def table(report: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    return "\n".join(_lines(report))


def _lines(report: dict[str, Any]) -> Iterator[str]:
    asked, scenarios = report["asked"], report["scenarios"]
    minutes = sum(result["wall_seconds"] for result in scenarios.values()) / 60
    yield f"Run of {report['date']}: commit {report['commit']}, seed {asked['seed']}, {minutes:.0f} minutes."
    yield f"{report['machine']}, Python {report['python']}."
    yield ""
    yield "| over all scenarios | |"
    yield "|---|---|"
    for name, value in totals(report).items():
        yield f"| {name} | {value} |"
    yield ""
    yield "| scenario | episodes | faults | wall [s] | result |"
    yield "|---|---|---|---|---|"
    for name, result in scenarios.items():
        verdict = result["skipped"] or ("as promised" if result["is_good"] else "; ".join(_broken(result)))
        cells = (name, result["episodes"], result["fault_count"], f"{result['wall_seconds']:.0f}", verdict)
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield "| scenario | fault | injected | noticed | median [s] | longest [s] |"
    yield "|---|---|---|---|---|---|"
    for name, result in scenarios.items():
        for kind, row in result["faults"].items():
            times = ("" if row[key] is None else f"{row[key]:.3f}" for key in ("median_s", "max_s"))
            yield f"| {name} | {kind.replace('_', ' ')} | {row['injected']} | {row['detected']} | {' | '.join(times)} |"


def _broken(result: dict[str, Any]) -> Iterator[str]:
    yield from (line.replace("|", "/")[:120] for line in result["failed"][:3])
    yield from (f"{name}: {len(found)}" for name, found in result["findings"].items())
    if result["false_kills"]:
        yield f"{result['false_kills']} false kills"


def write(path: Path, report: dict[str, Any]) -> None:
    """Write the table into the page."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{table(report)}\n\n{END}{after}", encoding="utf-8")
