"""``nimbus qa DIR``: whether a dataset is fit to train on; of Nimbus, or of LeRobot whoever wrote it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from rich.console import Console

from nimbus.datagen.qa.checks import check
from nimbus.datagen.qa.finding import Finding, Level
from nimbus.datagen.qa.view import View, open_view
from nimbus.datagen.store.json_text import to_json


def command(args: argparse.Namespace) -> int:
    """Print every finding; 1 when one fails the dataset."""
    view = open_view(args.folder)
    found = check(view)
    failed = any(finding.level is Level.FAIL for finding in found)
    if args.json:
        report = {"format": view.format, "fit": not failed, "findings": [asdict(finding) for finding in found]}
        sys.stdout.write(to_json(report, indent=2) + "\n")
    else:
        _print(view, found)
    return 1 if failed else 0


def _print(view: View, found: list[Finding]) -> None:
    console = Console()
    for finding in found:
        line = f"{finding.level.value}  {finding.check}: {finding.where}: {finding.what}"
        style = "red" if finding.level is Level.FAIL else "yellow"
        console.print(line, style=style, soft_wrap=True, markup=False, highlight=False)
    failed = sum(finding.level is Level.FAIL for finding in found)
    verdict = f"{view.format}: {failed} faults" if failed else f"{view.format}: fit to train on"
    console.print(verdict, style="bold red" if failed else "bold green", highlight=False)
