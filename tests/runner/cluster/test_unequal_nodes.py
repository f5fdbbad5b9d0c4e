"""Nodes get tasks whose needs they satisfy; a task that no node can make ends the run with its need."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.job import ClusterJob, NodeNeeds
from nimbus.runner.cluster.machine import OFFER, read_capabilities
from nimbus.runner.cluster.pending_work import WorkGroup
from tests.support.cells import finish_here, make_spec, sound
from tests.support.clusters import ClusterRun, job_of


def test_node_offers_no_more_than_it_is_allowed_to(monkeypatch: pytest.MonkeyPatch):
    found = read_capabilities()
    monkeypatch.setenv(OFFER, json.dumps({"memory_bytes": 5, "simulators": ["isaacsim"], "engines": ["ompl", "x"]}))
    offered = read_capabilities()
    assert (offered.memory_bytes, offered.engines) == (5, ("ompl",)) and "newton" not in offered.simulators
    assert offered.cuda == found.cuda
    monkeypatch.setenv(OFFER, '{"memory": 5}')
    with pytest.raises(InputError, match="NIMBUS_NODE_OFFER: is not a valid offer of a node"):
        read_capabilities()


def test_node_without_free_memory_waits_for_it():
    balance = Balance([WorkGroup(name="big", count=2, priority=1), WorkGroup(name="small", count=2)])
    balance.join("n1", 1, 0.0, groups=("big", "small"))
    balance.join("n2", 1, 0.0, groups=("small",))
    balance.block("n1", ["big"])
    assert (lease := balance.pull("n1", 1, 1.0)) and lease.group == "small"
    balance.block("n1", [])
    assert (lease := balance.pull("n1", 1, 2.0)) and lease.group == "big"
    balance.block("n1", ["big"])  # its own context fills the memory
    assert (lease := balance.pull("n1", 1, 3.0)) and lease.group == "big"
    for index in range(2):
        balance.settled("n1", 0, "small", index, 4.0)
    assert not balance.has_work_for("n2") and balance.has_work_for("n1")


def job(tmp_path: Path, *, needs: NodeNeeds) -> ClusterJob:
    """Return a job of two tasks of the point robot, the first with needs."""
    big, small = (
        job_of(make_spec(tmp_path / "job" / name, episodes=4, seed=seed)).tasks[0]
        for seed, name in enumerate(("big", "small"))
    )
    return ClusterJob(
        folder=f"{tmp_path}/job", tasks=(replace(big, name="big", needs=needs), replace(small, name="small"))
    )


@pytest.mark.slow
@pytest.mark.long  # test_store_cluster.py has several nodes, test_job_file.py has needs
def test_three_unequal_nodes_make_two_tasks(tmp_path: Path):
    """The second node has too little memory for one task, the third can make none."""
    offers = {2: {"memory_bytes": 1}, 3: {"simulators": []}}
    made = job(tmp_path, needs=NodeNeeds(memory_bytes=1000))
    spec = made.tasks[0].spec
    run = ClusterRun(spec, nodes=3, environment=lambda number: {OFFER: json.dumps(offers.get(number, {}))}, job=made)
    assert run.run().state == "done"
    for seed, task in enumerate(made.tasks):
        alone = make_spec(tmp_path / "alone" / task.name, episodes=4, seed=seed)
        assert sound(task.spec) == finish_here(alone)
    assert any("node n3: refused: lacks big: simulator newton" in event.text for event in run.status().events)


@pytest.mark.slow
def test_task_that_no_node_can_make_ends_the_run_with_its_need(tmp_path: Path):
    run = ClusterRun(make_spec(tmp_path / "x"), job=job(tmp_path, needs=NodeNeeds(memory_bytes=10**15)))
    end = run.run()
    assert end.state == "failed" and "no node has what big needs: 1000000.0 GB of free memory" in end.line
    assert len(list((tmp_path / "job" / "small" / "episodes").glob("*.hdf5"))) == 4
