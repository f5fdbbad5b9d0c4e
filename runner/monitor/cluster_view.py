"""View of a run in the terminal, with a table of the nodes of a cluster."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.style import Style
from rich.table import Table
from rich.text import Text

from nimbus.runner.monitor.dashboard_view import view
from nimbus.runner.monitor.status import LEFT_STATES, ClusterStatus, NodeStatus, Status

_COLORS = {"working": "green", "starting": "cyan", "idle": "dim", "silent": "yellow", "full": "yellow", "failed": "red"}
_WHY = 60
"""Longest reason in the table [characters]; the node's page shows the whole reason."""
_WIDE = 110
"""Width from which the table has all columns [characters]."""


def status_view(status: Status, *, link: Callable[[NodeStatus], str] | None = None) -> RenderableType:
    """Return the view of a run, followed by its nodes if it has any.

    Args:
        status: The run.
        link: Returns the address of a node's page; no links by default.
    """
    run = view(status, now=time.time() if status.state == "running" else None)
    if status.cluster is None:
        return run
    return Group(run, "", *_nodes_view(status.cluster, status.stored, link))


def node_rows(node: NodeStatus) -> dict[str, str]:
    """Return the known values of a node by name, in the words and units of the table."""
    doing = ", ".join(f"{count} {phase}" for phase, count in sorted(node.phases.items()))
    rows = {
        "state": node.state,
        "reason": node.why,
        "host": f"{node.host}, process {node.pid}" if node.pid else node.host,
        "task": node.group,
        "slots": f"{node.slots}",
        "workers": f"{node.workers}" + (f": {doing}" if doing else ""),
        "episodes held": f"{node.held}",
        "episodes stored": f"{node.stored}, {3600 * node.rate:.0f} per hour",
        "memory": _size(node.resident),
        "disk free": _size(node.disk_free),
        "outbox": _size(node.outbox) or "empty",
        "last message": "" if node.state in LEFT_STATES else f"{node.since_beat:.0f} s ago",
        "price class": node.price_class,
    }
    return {name: text for name, text in rows.items() if text}


def node_view(node: NodeStatus, details: Status | None) -> RenderableType:
    """Return the view of one node: the head's record of it, and the run of its cell."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("", style="dim")
    table.add_column("")
    for name, text in {"node": node.name, **node_rows(node)}.items():
        table.add_row(name, Text(text, style=_COLORS.get(node.state, "") if name == "state" else ""))
    return Group(table, "", view(details)) if details and node.state not in LEFT_STATES else table


def in_order(nodes: Sequence[NodeStatus]) -> list[NodeStatus]:
    """Sort nodes by name, n2 before n10, with nodes that have left at the end."""

    def key(node: NodeStatus) -> tuple[bool, list[tuple[int, str]]]:
        parts = re.findall(r"[0-9]+|[^0-9]+", node.name)
        digits = [part.lstrip("0") if part.isdecimal() else "" for part in parts]
        # By length first: a name may have more digits than Python converts to a number.
        return node.state in LEFT_STATES, [
            (len(number), number) if number else (0, part) for number, part in zip(digits, parts, strict=True)
        ]

    return sorted(nodes, key=key)


def _nodes_view(
    cluster: ClusterStatus, stored: int, link: Callable[[NodeStatus], str] | None
) -> tuple[RenderableType, ...]:
    """Return a table of the nodes, and a line about leases and cost of the stored episodes."""
    parts = [f"{cluster.waiting} waiting", f"{cluster.held} with nodes", f"{cluster.leases} leases"]
    parts.append(f"{cluster.node_hours:.2f} node hours")
    if cluster.useful:
        parts.append(f"{cluster.useful:.0%} of the slots' time for settled episodes")
    if cluster.doubled:
        parts.append(f"{cluster.doubled} duplicate results")
    if cluster.wanted_nodes:
        parts.append(f"{cluster.wanted_nodes} nodes wanted")
    if cluster.cost:
        parts.append(f"cost {cluster.cost:.2f}" + (f", {cluster.cost / stored:.4f} a stored episode" if stored else ""))
    return _NodesTable(in_order(cluster.nodes), link), Text("; ".join(parts), style="dim")


@dataclass(frozen=True)
class _NodesTable:
    """Table of the nodes, without host and free disk in a narrow terminal."""

    nodes: Sequence[NodeStatus]
    link: Callable[[NodeStatus], str] | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        is_wide = options.max_width >= _WIDE
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0) if is_wide else (0, 1, 0, 0), header_style="dim")
        for name in _cells(NodeStatus(name=""), None, is_wide=is_wide):
            is_text = name in ("node", "host", "state", "task")
            table.add_column(name, justify="left" if is_text else "right", no_wrap=name != "state")
        for node in self.nodes:
            table.add_row(*_cells(node, self.link, is_wide=is_wide).values())
        yield table


def _cells(node: NodeStatus, link: Callable[[NodeStatus], str] | None, *, is_wide: bool) -> dict[str, RenderableType]:
    """Return the cells of a node by column."""
    state = f"{node.state}: {node.why}" if node.why else node.state
    address = Style(link=link(node)) if link else ""
    cells: dict[str, RenderableType] = {
        "node": Text().append(node.name, style=address),  # without a link on the padding
        "host": Text(node.host),
        "state": Text(state if len(state) <= _WHY else f"{state[: _WHY - 1]}\u2026", style=_COLORS.get(node.state, "")),
        "task": Text(node.group),
        "slots": f"{node.slots}",
        "held": f"{node.held}",
        "stored": f"{node.stored}",
        "per hour": f"{3600 * node.rate:.0f}",
        "memory": _size(node.resident),
        "disk free": _size(node.disk_free),
        "outbox": _size(node.outbox),
        "last message": f"{node.since_beat:.0f} s" if node.state not in LEFT_STATES else "",
    }
    if not is_wide:
        del cells["host"], cells["disk free"]
        cells["heard"] = cells.pop("last message")
    return cells


def _size(byte_count: int) -> str:
    if byte_count >= 1e9:
        return f"{byte_count / 1e9:.1f} GB"
    return f"{max(1, round(byte_count / 1e6))} MB" if byte_count else ""
