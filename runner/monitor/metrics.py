"""Status of a run as Prometheus text: version 0.0.4 of the exposition format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nimbus.runner.monitor.status import Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NODE_FIELDS = {
    "slots": "Number of episodes that the node makes at once.",
    "held": "Episodes leased to the node.",
    "stored": "Episodes settled by the node.",
    "rate": "Episodes settled by the node per second.",
    "resident": "Bytes of memory of the node's processes.",
    "disk_free": "Free bytes on the node's disk.",
    "outbox": "Bytes of finished episodes that are not acknowledged yet.",
    "since_beat": "Seconds since the node's last message.",
}


def metrics_text(status: Status) -> str:
    """Write a status as metrics."""
    return "\n".join(_lines(status)) + "\n"


def _lines(status: Status) -> Iterator[str]:
    state = {"state": status.state, "task": status.task}
    yield from _metric("nimbus_run_info", "State of the run.", [(state, 1)])
    single = {
        "episodes_target": ("Requested episodes.", status.target),
        "episodes_stored": ("Stored episodes, including those of earlier runs.", status.already_stored + status.stored),
        "episodes_given_up": ("Episodes that failed in their last attempt.", status.given_up),
        "episodes_quarantined": ("Episodes given up because workers died at them.", status.quarantined),
        "attempts": ("Plans tried.", status.attempts),
        "stored_bytes": ("Bytes stored by this run.", status.byte_count),
        "elapsed_seconds": ("Seconds since the start of the run.", round(status.elapsed, 1)),
    }
    for name, (meaning, value) in single.items():
        yield from _metric(f"nimbus_{name}", meaning, [({}, value)])
    yield from _metric("nimbus_faults", "Faults by kind.", [({"kind": k}, n) for k, n in sorted(status.faults.items())])
    cluster = status.cluster
    if cluster is None:
        return
    yield from _metric("nimbus_leases", "Leases handed out.", [({}, cluster.leases)])
    yield from _metric("nimbus_episodes_waiting", "Episodes that are not leased to a node.", [({}, cluster.waiting)])
    yield from _metric("nimbus_wanted_nodes", "Nodes that a job with bounds asks for.", [({}, cluster.wanted_nodes)])
    yield from _metric("nimbus_node_hours", "Hours of all nodes.", [({}, cluster.node_hours)])
    yield from _metric("nimbus_cost", "Cost of the node hours, if prices are known.", [({}, cluster.cost)])
    yield from _metric("nimbus_useful_share", "Share of slot time for settled episodes.", [({}, cluster.useful)])
    yield from _metric("nimbus_doubled_results", "Dropped second results.", [({}, cluster.doubled)])
    nodes = [({"node": node.name, "state": node.state}, 1) for node in cluster.nodes]
    yield from _metric("nimbus_node_info", "State of each node.", nodes)
    for field, meaning in _NODE_FIELDS.items():
        values = [({"node": node.name}, getattr(node, field)) for node in cluster.nodes]
        yield from _metric(f"nimbus_node_{field}", meaning, values)


def _metric(name: str, meaning: str, values: Iterable[tuple[dict[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} gauge"
    for labels, value in values:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
