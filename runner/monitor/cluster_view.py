"""View of a run in the terminal, with a table of the nodes of a cluster."""

from __future__ import annotations

import time

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nimbus.runner.monitor.dashboard_view import view
from nimbus.runner.monitor.status import ClusterStatus, NodeStatus, Status

_COLORS = {"working": "green", "starting": "cyan", "idle": "dim", "silent": "yellow", "failed": "red"}


def status_view(status: Status) -> RenderableType:
    """Return the view of a run, followed by its nodes where it has some."""
    run = view(status, now=time.time() if status.state == "running" else None)
    return Group(run, *nodes_view(status.cluster, status.stored)) if status.cluster else run


def nodes_view(cluster: ClusterStatus, stored: int) -> tuple[RenderableType, ...]:
    """Return a table of the nodes, and a line about leases and cost of the stored episodes."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("node", "host", "state", "task"):
        table.add_column(name)
    for name in ("slots", "held", "stored", "per hour", "memory", "disk free", "outbox", "last message"):
        table.add_column(name, justify="right")
    for node in cluster.nodes:
        table.add_row(*_cells(node))
    parts = [f"{cluster.waiting} waiting", f"{cluster.held} with nodes", f"{cluster.leases} leases"]
    parts.append(f"{cluster.node_hours:.2f} node hours")
    if cluster.wanted_nodes:
        parts.append(f"{cluster.wanted_nodes} nodes wanted")
    if cluster.cost:
        parts.append(f"cost {cluster.cost:.2f}" + (f", {cluster.cost / stored:.4f} a stored episode" if stored else ""))
    return table, Text("; ".join(parts), style="dim")


def _cells(node: NodeStatus) -> tuple[str | Text, ...]:
    state = f"{node.state}: {node.why}" if node.why else node.state
    return (
        node.name,
        node.host,
        Text(state[:60], style=_COLORS.get(node.state, "")),
        node.group,
        f"{node.slots}",
        f"{node.held}",
        f"{node.stored}",
        f"{3600 * node.rate:.0f}",
        _size(node.resident),
        _size(node.disk_free),
        _size(node.outbox),
        f"{node.since_beat:.0f} s" if node.state not in ("gone", "failed") else "",
    )


def _size(byte_count: int) -> str:
    if byte_count >= 1e9:
        return f"{byte_count / 1e9:.1f} GB"
    return f"{byte_count / 1e6:.0f} MB" if byte_count else ""
