"""``nimbus qa DIR``: whether a dataset is fit to train on; of Nimbus, or of LeRobot whoever wrote it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from rich.console import Console

from nimbus.datagen.datasets.quality.checks import Examination, examine
from nimbus.datagen.datasets.quality.finding import Finding, Level
from nimbus.datagen.datasets.quality.thresholds import Thresholds, with_settings
from nimbus.datagen.datasets.quality.view import View, open_view
from nimbus.datagen.files.codec import to_json
from nimbus.runner.system import threads as threads  # one thread each


def command(args: argparse.Namespace) -> int:
    """Print every finding; 1 when one fails the dataset."""
    thresholds = with_settings(Thresholds(), args.set)
    view = open_view(args.folder)
    found = examine(view, thresholds, robot=args.robot or "", strips=bool(args.html), tell=_tell)
    if args.html:
        from nimbus.datagen.datasets.certificates.page import render_certificates
        from nimbus.datagen.datasets.quality.page import render_page
        from nimbus.datagen.store.publish import replace_text

        certificates = render_certificates(args.folder)
        replace_text(args.html, render_page(args.folder.resolve().name, view, found, certificates=certificates))
    is_fit = found.is_fit and not (args.strict and found.findings)
    if args.json:
        sys.stdout.write(to_json(_plain(view, found, thresholds, is_fit=is_fit), indent=2) + "\n")
    else:
        _print(view, found.findings)
    return 0 if is_fit else 1


def _plain(view: View, found: Examination, thresholds: Thresholds, *, is_fit: bool) -> dict[str, object]:
    return {
        "format": view.format,
        "fit": is_fit,
        "episodes": found.episode_count,
        "frames": found.frame_count,
        "pictures": found.picture_count,
        "pictures_looked_at": found.pictures_looked_at,
        "findings": [asdict(finding) for finding in found.findings],
        "thresholds": asdict(thresholds),
    }


def _print(view: View, found: tuple[Finding, ...]) -> None:
    console = Console()
    for finding in found:
        line = f"{finding.level.value}  {finding.check}: {finding.where}: {finding.what}"
        style = "red" if finding.level is Level.FAIL else "yellow"
        console.print(line, style=style, soft_wrap=True, markup=False, highlight=False)
    failed = sum(finding.level is Level.FAIL for finding in found)
    verdict = f"{view.format}: {failed} faults" if failed else f"{view.format}: fit to train on"
    console.print(verdict, style="bold red" if failed else "bold green", highlight=False)


def _tell(left: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{left} episodes left \x1b[K" if left > 0 else "\r\x1b[K")
