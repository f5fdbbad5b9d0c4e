"""``nimbus qa DIR``: checks that a dataset of Nimbus, or a LeRobot dataset of any origin, is fit for training."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder
from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import write_json, write_progress

if TYPE_CHECKING:
    from nimbus.datagen.datasets.quality.checks import Examination
    from nimbus.datagen.datasets.quality.thresholds import Thresholds
    from nimbus.datagen.datasets.quality.view import View


def command(
    folder: DatasetFolder,
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", parser=path, help="write a page with plots and images")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=X", parser=str, help="a threshold, such as jump=12")
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option("--robot", metavar="NAME", parser=str, help="robot whose joint limits apply (the dataset's)"),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="exit code 1 also for warnings")] = False,
    as_json: AsJson = False,
) -> int:
    """Print the checks and every finding; return 1 if a finding fails the dataset."""
    from nimbus.datagen.datasets.quality.checks import examine
    from nimbus.datagen.datasets.quality.thresholds import Thresholds, with_settings
    from nimbus.datagen.datasets.quality.view import open_view

    thresholds = with_settings(Thresholds(), settings or [])
    view = open_view(folder)
    found = examine(view, thresholds, robot=robot or "", strips=bool(html), tell=_tell)
    if html:
        _write_page(html, folder, view, found)
    is_fit = found.is_fit and not (strict and found.findings)
    if as_json:
        write_json(_plain(view, found, thresholds, is_fit=is_fit))
    else:
        _print(view, found)
    return 0 if is_fit else 1


def _write_page(path: Path, folder: Path, view: View, found: Examination) -> None:
    from nimbus.datagen.datasets.certificates.subject import render_certificates
    from nimbus.datagen.datasets.quality.page import render_page
    from nimbus.datagen.store.publish import replace_text

    proof = render_certificates(folder)
    replace_text(path, render_page(folder.resolve().name, view, found, certificates=proof))


def _plain(view: View, found: Examination, thresholds: Thresholds, *, is_fit: bool) -> dict[str, object]:
    return {
        "format": view.format,
        "fit": is_fit,
        "episodes": found.episode_count,
        "frames": found.frame_count,
        "pictures": found.picture_count,
        "pictures_looked_at": found.pictures_looked_at,
        "findings": [
            {"check": found.check, "level": found.severity, "where": found.where, "what": found.what}
            for found in found.findings
        ],
        "unchecked": found.unchecked,
        "thresholds": asdict(thresholds),
    }


def _print(view: View, found: Examination) -> None:
    """Print the figures, the checks, every finding, and the verdict."""
    from rich.table import Table

    from nimbus.datagen.errors import Severity
    from nimbus.runner.system.console import TerminalConsole, trim_lines

    console = TerminalConsole()
    table = Table(show_header=False, box=None)
    for name, text in _figures(view, found):
        table.add_row(name, text)
    with trim_lines(console):
        console.print(table)
    for finding in found.findings:
        line = f"{finding.severity.value}  {finding.check}: {finding.where}: {finding.what}"
        style = "red" if finding.severity is Severity.FAIL else "yellow"
        console.print(line, style=style, soft_wrap=True)
    failed = sum(finding.severity is Severity.FAIL for finding in found.findings)
    verdict = f"{view.format}: {failed} faults" if failed else f"{view.format}: fit to train on"
    console.print(verdict, style="bold red" if failed else "bold green")


def _figures(view: View, found: Examination) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each row above the findings."""
    from nimbus.datagen.datasets.quality.finding import CHECKS

    yield "dataset", ", ".join(filter(None, (view.format, view.robot, f"{view.fps:g} Hz")))
    yield "episodes", f"{found.episode_count:,}"
    yield "frames", f"{found.frame_count:,}"
    if found.picture_count:
        is_whole = found.pictures_looked_at >= found.picture_count
        looked = "all examined" if is_whole else f"{found.pictures_looked_at:,} examined, evenly spread"
        yield "pictures", f"{found.picture_count:,}, {looked}"
    yield "columns", ", ".join(f"{name} {len(low)}" for name, (low, _, _) in found.ranges.items())
    warned = Counter(finding.check for finding in found.findings)
    lines = {name: f"{name} ({warned[name]} found)" if warned[name] else name for name in CHECKS}
    yield "checked", ", ".join(line for name, line in lines.items() if name not in found.unchecked)
    reasons: dict[str, list[str]] = {}
    for name, why in found.unchecked.items():
        reasons.setdefault(why, []).append(name)
    for why, names in reasons.items():
        yield "not checked", f"{', '.join(names)}: {why}"


def _tell(left: int) -> None:
    if sys.stderr.isatty():
        write_progress(f"{left} episodes left" if left > 0 else "")
