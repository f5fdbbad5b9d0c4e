"""Node hours of a cluster run, from which its cost is computed."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.head_status import HeadStatus
from nimbus.runner.cluster.messages import Join
from nimbus.runner.cluster.pending_work import WorkGroup
from nimbus.runner.monitor.progress import Progress

HOUR = 3600.0


class Cluster:
    """Status and balance of a run that costs 2 USD per node hour."""

    def __init__(self, folder: Path) -> None:
        self.balance = Balance([WorkGroup(name="t", count=9)])
        self.status = HeadStatus(Progress(folder, task="t", target=9), price_per_hour={"": 2.0})

    def join(self, name: str, now: float) -> None:
        self.balance.join(name, 1, now)
        self.status.join(Join(node=name, slots=1, version="", platform="", host="h", pid=1, clock=0.0), now)

    def beat(self, name: str, now: float) -> None:
        self.balance.beat(name, now)
        self.status.note_message(name, now)

    def leave(self, name: str, now: float) -> None:
        self.balance.leave(name)
        with patch("time.monotonic", return_value=now):
            self.status.leave(name, "done", has_failed=False)

    def hours(self, now: float) -> float:
        self.balance.look(now)
        self.status.update(self.balance, {}, now)
        found = self.status.progress.status.cluster
        assert found and found.cost == pytest.approx(2.0 * found.node_hours)
        return found.node_hours


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_lost_node_costs_until_its_last_message(cluster: Cluster):
    """A node that was killed in the first minutes once cost as much as one that worked to the end."""
    for name in ("a", "b"):
        cluster.join(name, 0.0)
    cluster.beat("b", HOUR)
    cluster.beat("a", 9 * HOUR)
    assert cluster.hours(9 * HOUR) == 10.0
    cluster.join("b", 9 * HOUR)
    cluster.beat("a", 10 * HOUR)
    cluster.beat("b", 10 * HOUR)
    assert cluster.hours(10 * HOUR) == 12.0


def test_earlier_stays_of_a_node_are_counted(cluster: Cluster):
    cluster.join("a", 0.0)
    cluster.leave("a", 2 * HOUR)
    assert cluster.hours(5 * HOUR) == 2.0
    cluster.join("a", 5 * HOUR)
    cluster.join("a", 5 * HOUR + 20.0)
    cluster.beat("a", 6 * HOUR)
    assert cluster.hours(6 * HOUR) == 3.0
