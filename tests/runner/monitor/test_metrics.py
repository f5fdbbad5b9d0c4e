"""Metrics of a run, and the table of its nodes."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from nimbus.runner.monitor.cluster_view import in_order, status_view
from nimbus.runner.monitor.metrics import metrics_text
from nimbus.runner.monitor.status import ClusterStatus, NodeStatus, Status

PHASES = {"render": 5, "plan": 2}
NODES = (
    NodeStatus(
        name="n1", host="a", state="working", slots=4, held=6, stored=40, rate=0.1, outbox=55_000_000, phases=PHASES
    ),
    NodeStatus(name="n2", host="b", state="failed", slots=2, why='no "driver"'),
)
STATUS = Status(
    task="sort_trash",
    mode="cluster",
    target=100,
    stored=40,
    already_stored=10,
    already=10,
    faults={"killed": 2},
    cluster=ClusterStatus(leases=21, waiting=44, held=6, node_hours=1.5, cost=3.0, useful=0.934, nodes=NODES),
)


def test_metrics_name_episodes_faults_and_nodes():
    lines = metrics_text(STATUS).splitlines()
    assert "nimbus_episodes_stored 50" in lines and 'nimbus_faults{kind="killed"} 2' in lines
    assert 'nimbus_node_held{node="n1"} 6' in lines and "nimbus_cost 3.0" in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_metrics_of_one_machine_have_no_nodes():
    assert "node" not in metrics_text(Status(task='a "quoted" task')).replace("nimbus_node", "node_")


def test_table_shows_every_node():
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(status_view(STATUS))
    text = console.export_text()
    assert (
        "n1" in text
        and "55 MB" in text
        and 'failed: no "driver"' in text
        and "21 leases" in text
        and "93% of the slots" in text
    )


def test_nodes_are_in_the_order_of_their_numbers():
    names = [replace(NODES[0], name=f"n{number}") for number in (10, 2)]
    assert [node.name for node in in_order([NODES[1], *names])] == ["n2", "n10", "n2"]
    assert in_order([NODES[1], *names])[-1].state == "failed"
    long = [replace(NODES[0], name="n" + digit * 5000) for digit in "21"]  # more digits than Python converts
    assert [node.name[1] for node in in_order(long)] == ["1", "2"]
