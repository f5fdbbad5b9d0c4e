"""``nimbus scale DIR 3x1``: changes the number and the roles of the workers of a run in progress."""

from __future__ import annotations

from typing import Annotated

import typer

from nimbus.runner.commands.options import DatasetFolder, WorkerSplit, worker_split
from nimbus.runner.system.output import write_out


def command(
    folder: DatasetFolder,
    split: Annotated[
        WorkerSplit,
        typer.Argument(
            metavar="PxR", parser=worker_split, help="number of planners and of renderers; auto: by the number of cores"
        ),
    ],
) -> int:
    """Request another split from the run that writes into a folder."""
    from nimbus.runner.monitor.scale import request_scale

    write_out(f"{request_scale(folder, split.counts)}\n")
    return 0
