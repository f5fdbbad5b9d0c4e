"""``nimbus filter SRC --where EXPR --out OUT``: writes the episodes that meet a condition, in the same format."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder, NewFolder
from nimbus.runner.system.output import write_json


def command(
    folder: DatasetFolder,
    *,
    where: Annotated[
        str,
        typer.Option(
            "--where",
            metavar="EXPR",
            parser=str,
            help="condition, such as 'success and length > 50'; an unknown column lists the known ones",
        ),
    ],
    out: NewFolder,
    as_json: AsJson = False,
) -> int:
    """Filter and print a summary of the result."""
    from nimbus.datagen.datasets.convert.convert import Converted
    from nimbus.datagen.datasets.filter.expression import Condition
    from nimbus.datagen.store.info import INFO_NAME
    from nimbus.runner.monitor.output_summary import print_converted, print_place, report_pending
    from nimbus.runner.system.console import TerminalConsole

    begin = time.monotonic()
    condition = Condition(where)
    if (folder / INFO_NAME).exists():
        from nimbus.datagen.datasets.filter.native import filter_native

        made = filter_native(folder, out, condition, tell=report_pending)
    else:
        from nimbus.datagen.datasets.filter.lerobot import filter_lerobot

        made = filter_lerobot(folder, out, condition, tell=report_pending)
    if as_json:
        write_json(asdict(made) | {"out": str(made.out)})
    elif isinstance(made, Converted):
        print_converted(made, time.monotonic() - begin)
    else:
        console = TerminalConsole()
        stood = "" if made.is_new else " (already complete)"
        kept = f"{made.episode_count} of {made.of} episodes, {made.step_count} steps, {made.byte_count / 1e6:,.1f} MB"
        console.print(f"kept: {kept}{stood}", soft_wrap=True)
        print_place(made.out, console)
    return 0
