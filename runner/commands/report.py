"""``nimbus report DIR``: summarizes a dataset's runs in the terminal, as JSON, and as a self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder, Price
from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import write_json


def command(
    folder: DatasetFolder,
    *,
    as_json: AsJson = False,
    price_per_hour: Price = None,
    yields: Annotated[
        Path | None,
        typer.Option("--yields", metavar="FILE", parser=path, help="write the yield of every value as CSV"),
    ] = None,
) -> int:
    """Print the figures and write the page."""
    from nimbus.runner.report import print_summary, write_report
    from nimbus.runner.report.summary import summarize
    from nimbus.runner.report.yields import write_yields
    from nimbus.runner.system.console import TerminalConsole

    summary = summarize(folder, price_per_hour=price_per_hour)
    if yields:
        write_yields(yields, summary.yields, summary.semantic_yields)
    if as_json:
        write_json(summary.to_plain())
        return 0
    print_summary(summary)
    page = write_report(folder, price_per_hour=price_per_hour)
    TerminalConsole().print(f"page: {page}", soft_wrap=True)
    return 0
