"""``nimbus merge PART… --out OUT``: merges the parts of a dataset that several machines made."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nimbus.runner.commands.options import AsJson, NewFolder
from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import write_json


def command(
    parts: Annotated[list[Path], typer.Argument(metavar="PART...", parser=path, help="folders of datasets")],
    *,
    out: NewFolder,
    as_json: AsJson = False,
) -> int:
    """Merge and print a summary of the result."""
    from nimbus.datagen.datasets.merge import merge_parts
    from nimbus.runner.monitor.output_summary import print_place, report_pending
    from nimbus.runner.system.console import TerminalConsole

    made = merge_parts(parts, out, report=report_pending)
    if as_json:
        write_json(asdict(made) | {"out": str(made.out)})
        return 0
    console = TerminalConsole()
    stood = "" if made.is_new else " (already complete)"
    doubled = f", {made.doubled} of them in several parts" if made.doubled else ""
    console.print(f"merged: {made.episode_count} episodes of {made.part_count} parts{doubled}{stood}", soft_wrap=True)
    print_place(made.out, console)
    return 0
