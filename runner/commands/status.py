"""``nimbus status DIR``: shows the run that writes into a dataset, once or until it ends, and its cluster's nodes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError, StorageError
from nimbus.runner.commands.options import AsJson, RunFolder, TokenFile, whole
from nimbus.runner.system.output import write_json, write_out

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nimbus.runner.monitor.status import NodeStatus, Status

_PERIOD = 0.5
"""Interval between two reads of the status file [s]."""
_REFRESH = 30.0
"""Interval between two requests to a store, into which a run publishes its status once per minute [s]."""


def command(
    folder: RunFolder,
    *,
    node: Annotated[str, typer.Option("--node", metavar="NAME", help="show one node of a cluster and its cell")] = "",
    follow: Annotated[bool, typer.Option("--follow", help="update until the run ends")] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="print Prometheus metrics")] = False,
    serve: Annotated[
        int | None,
        typer.Option(
            "--serve", metavar="PORT", parser=whole(0, 65535), help="serve a page and metrics on 127.0.0.1 until Ctrl-C"
        ),
    ] = None,
    token_to: TokenFile = None,
    as_json: AsJson = False,
) -> int:
    """Print the status."""
    from nimbus.runner.monitor.metrics import metrics_text
    from nimbus.runner.system.console import TerminalConsole

    if token_to and serve is None:
        raise InputError("only a server has a token", where="--token-file", instead="add --serve PORT")
    source = _StatusSource(folder)
    status = source.read()
    if serve is not None:
        from nimbus.datagen.files.server_tokens import token_file
        from nimbus.datagen.files.trusted_servers import LOOPBACK
        from nimbus.runner.monitor.status_server import StatusServer

        with StatusServer(serve, source.read, source.read_node) as server, token_file(token_to, server.token):
            place = f"http://{LOOPBACK}:{server.server_port}/metrics"
            write_out(f"{server.address}  (for programs that send the token: {place}; Ctrl-C ends it)\n")
            server.serve_forever()
        return 0
    if node:
        _node_of(status, node, folder)
    if as_json:
        details = source.read_node(node) if node else status
        write_json(details.to_plain() if details else None)
        return 0
    if metrics:
        write_out(metrics_text(status))
        return 0
    console = TerminalConsole()
    if not follow:
        console.print(_view(source, status, node))
        return 0
    from rich.live import Live

    with Live(_view(source, status, node), console=console, refresh_per_second=4) as live:
        while status.state == "running":
            time.sleep(_PERIOD)
            status = source.read()
            live.update(_view(source, status, node))
    return 0


class _StatusSource:
    """Reads the status of a run again and again, from its folder or from a store.

    Args:
        folder: Folder of the dataset, or its copy.

    Raises:
        InputError: No run has written into the folder.
    """

    def __init__(self, folder: Path) -> None:
        from nimbus.runner.monitor.status import read_status

        self.folder, self._asked = folder, time.monotonic()
        if (status := read_status(folder)) is None:
            what = "no run has written into this folder"
            raise InputError(what, where=str(folder), instead="give the --out of a run")
        self._last = status

    def read(self) -> Status:
        """Return the current status; the previous one if the file cannot be read."""
        from nimbus.runner.monitor.status import read_status

        self._refresh()
        self._last = read_status(self.folder) or self._last
        return self._last

    def read_node(self, name: str) -> Status | None:
        """Return the last known status of a node's cell."""
        from nimbus.runner.monitor.node_details import read_details

        return read_details(self.folder, name)

    def _refresh(self) -> None:
        """Fetch the status from a store if the last try was long enough ago; without the store, keep the old status."""
        from nimbus.datagen.store.remote.cache_root import address_of
        from nimbus.datagen.store.remote.working_copy import is_remote, open_dataset

        if time.monotonic() < self._asked + _REFRESH or not is_remote(self.folder):
            return
        self._asked = time.monotonic()
        try:
            open_dataset(address_of(self.folder), may_be_empty=True)
        except StorageError:
            return


def _view(source: _StatusSource, status: Status, name: str) -> RenderableType:
    from nimbus.runner.monitor.cluster_view import node_view, status_view

    if not name:
        return status_view(status)
    return node_view(_node_of(status, name, source.folder), source.read_node(name))


def _node_of(status: Status, name: str, folder: Path) -> NodeStatus:
    """Return a node of the run by its name.

    Raises:
        InputError: There is none.
    """
    nodes = status.cluster.nodes if status.cluster else ()
    for node in nodes:
        if node.name == name:
            return node
    names = ", ".join(node.name for node in nodes[:20])
    instead = f"one of {names}" if names else "this run has no nodes"
    raise InputError(f"no node '{name}'", where=str(folder), instead=instead)
