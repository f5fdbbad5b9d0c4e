"""``nimbus qa DIR``: whether a dataset is fit to train on; of Nimbus, or of LeRobot whoever wrote it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder

if TYPE_CHECKING:
    from nimbus.datagen.datasets.quality.checks import Examination
    from nimbus.datagen.datasets.quality.thresholds import Thresholds
    from nimbus.datagen.datasets.quality.view import View
    from nimbus.datagen.errors import Diagnostic


def command(
    folder: DatasetFolder,
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", parser=Path, help="write a page with plots and pictures")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=X", parser=str, help="a threshold, such as jump=12")
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option("--robot", metavar="NAME", parser=str, help="whose joint limits hold (that of the dataset)"),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="exit code 1 also for warnings")] = False,
    as_json: AsJson = False,
) -> int:
    """Print every finding; 1 when one fails the dataset."""
    from nimbus.datagen.datasets.quality.checks import examine
    from nimbus.datagen.datasets.quality.thresholds import Thresholds, with_settings
    from nimbus.datagen.datasets.quality.view import open_view
    from nimbus.datagen.files.codec import to_json

    thresholds = with_settings(Thresholds(), settings or [])
    view = open_view(folder)
    found = examine(view, thresholds, robot=robot or "", strips=bool(html), tell=_tell)
    if html:
        _write_page(html, folder, view, found)
    is_fit = found.is_fit and not (strict and found.findings)
    if as_json:
        sys.stdout.write(to_json(_plain(view, found, thresholds, is_fit=is_fit), indent=2) + "\n")
    else:
        _print(view, found.findings)
    return 0 if is_fit else 1


def _write_page(path: Path, folder: Path, view: View, found: Examination) -> None:
    from nimbus.datagen.datasets.certificates.page import render_certificates
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
        "thresholds": asdict(thresholds),
    }


def _print(view: View, found: tuple[Diagnostic, ...]) -> None:
    from rich.console import Console

    from nimbus.datagen.errors import Severity

    console = Console()
    for finding in found:
        line = f"{finding.severity.value}  {finding.check}: {finding.where}: {finding.what}"
        style = "red" if finding.severity is Severity.FAIL else "yellow"
        console.print(line, style=style, soft_wrap=True, markup=False, highlight=False)
    failed = sum(finding.severity is Severity.FAIL for finding in found)
    verdict = f"{view.format}: {failed} faults" if failed else f"{view.format}: fit to train on"
    console.print(verdict, style="bold red" if failed else "bold green", highlight=False)


def _tell(left: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{left} episodes left \x1b[K" if left > 0 else "\r\x1b[K")
