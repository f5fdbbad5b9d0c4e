"""``nimbus status DIR``: shows the run that writes into a dataset, once or until it ends, and its cluster's nodes."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.runner.commands.options import AsJson, DatasetFolder, whole
from nimbus.runner.system.output import write_json, write_out

if TYPE_CHECKING:
    from nimbus.runner.monitor.status import Status

_PERIOD = 0.5
"""Interval between two reads of the status file [s]."""


def command(
    folder: DatasetFolder,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="update until the run ends")] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="print Prometheus metrics")] = False,
    serve: Annotated[
        int | None,
        typer.Option(
            "--serve", metavar="PORT", parser=whole(0, 65535), help="serve a page and metrics on 127.0.0.1 until Ctrl-C"
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Print the status."""
    from nimbus.runner.monitor.cluster_view import status_view
    from nimbus.runner.monitor.metrics import metrics_text
    from nimbus.runner.monitor.status import read_status
    from nimbus.runner.system.console import TerminalConsole

    if (status := read_status(folder)) is None:
        raise InputError("no run has written into this folder", where=str(folder), instead="give the --out of a run")
    if serve is not None:
        from nimbus.runner.monitor.status_server import StatusServer

        with StatusServer(serve, partial(_newest, folder, status)) as server:
            write_out(f"{server.address}  (metrics: {server.address}metrics; Ctrl-C ends it)\n")
            server.serve_forever()
        return 0
    if as_json:
        write_json(status.to_plain())
        return 0
    if metrics:
        write_out(metrics_text(status))
        return 0
    console = TerminalConsole()
    if not follow:
        console.print(status_view(status))
        return 0
    from rich.live import Live

    with Live(status_view(status), console=console, refresh_per_second=4) as live:
        while status.state == "running":
            time.sleep(_PERIOD)
            status = read_status(folder) or status
            live.update(status_view(status))
    return 0


def _newest(folder: Path, before: Status) -> Status:
    """Return the current status; the previous one if the file cannot be read."""
    from nimbus.runner.monitor.status import read_status

    return read_status(folder) or before
