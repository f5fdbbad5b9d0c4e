"""Nodes on this machine make the dataset of one process, whatever is killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.cell.start_run import dataset_of
from nimbus.runner.cluster.demand import NodeBounds
from nimbus.runner.cluster.local_cluster import LocalCluster, nodes_folder
from nimbus.runner.cluster.machine import OFFER
from tests.support.cells import finish_here, make_spec
from tests.support.clusters import ClusterRun, job_of

EPISODES = 10


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the hashes of the dataset that one process makes."""
    return finish_here(make_spec(tmp_path_factory.mktemp("alone") / "data", episodes=EPISODES))


def test_nodes_make_what_one_process_makes(alone: dict[str, str], tmp_path: Path):
    """The same command again finds nothing to do.

    A killed node stages a file and does not report it: such files once stayed.
    """
    spec = make_spec(tmp_path / "data", episodes=EPISODES)
    run = ClusterRun(spec).at(1, lambda run: (run.folder / "stage" / "episode.n9.tmp").touch())
    assert run.run().state == "done"
    assert run.hashes() == alone
    nodes = run.status().cluster.nodes  # type: ignore[union-attr]
    assert {node.state for node in nodes} == {"gone"} and sum(node.stored for node in nodes) == EPISODES
    assert ClusterRun(spec).run().state == "done" and ClusterRun(spec).hashes() == alone


def test_refused_run_leaves_the_nodes_of_the_first(tmp_path: Path):
    """The end of the refused run once removed the folders of these nodes, with undelivered episodes."""
    spec = make_spec(tmp_path / "data", episodes=EPISODES)
    job = job_of(spec)
    with dataset_of(job.tasks[0].origin, spec.folder):
        kept = nodes_folder(tmp_path / "data") / "n1" / "kept"
        kept.parent.mkdir(parents=True)
        kept.touch()
        end = LocalCluster(job, nodes=1, slots=1, watch=lambda: 0).run()
    assert end.state == "failed" and kept.exists()


def test_links_among_the_nodes_files_are_refused(tmp_path: Path):
    """A dataset from another user may contain links; a node once sent and removed the files at their targets."""
    spec = make_spec(tmp_path / "data", episodes=EPISODES)
    cluster = LocalCluster(job_of(spec), nodes=1, slots=1, watch=lambda: 0)
    private = tmp_path / "private" / "episodes"
    private.mkdir(parents=True)
    node = nodes_folder(tmp_path / "data") / "n1"
    node.mkdir(parents=True)
    (node / "drive").symlink_to(private.parent)
    with pytest.raises(InputError, match="the folder contains links"):
        cluster.run()
    assert (node / "drive").is_symlink() and not cluster.processes


def test_nodes_that_all_fail_are_no_interruption(tmp_path: Path):
    run = ClusterRun(make_spec(tmp_path / "data"), nodes=1, environment=lambda _: {OFFER: '{"memory": 5}'})
    end = run.run()
    assert end.state == "failed" and "is not a valid offer of a node" in end.line


@pytest.mark.slow
def test_node_that_cannot_work_is_replaced(alone: dict[str, str], tmp_path: Path):
    """The run once ended when such a node ended. Ten light episodes do not need a third node."""
    spec = make_spec(tmp_path / "data", episodes=EPISODES)
    job = replace(job_of(spec), bounds=NodeBounds(least=1, most=3))
    run = ClusterRun(spec, nodes=3, job=job, environment=lambda n: {OFFER: '{"simulators": []}'} if n == 1 else {})
    assert run.run().state == "done" and run.hashes() == alone
    assert [node.name for node in run.status().cluster.nodes] == ["n2"]  # type: ignore[union-attr]
    assert any("node n1: refused: lacks drive: simulator newton" in event.text for event in run.status().events)


@pytest.mark.long
@pytest.mark.slow
def test_killed_processes_cost_no_episode(alone: dict[str, str], tmp_path: Path):
    """A cell, an agent and the head are killed, every third answer is dropped, and a node is stopped."""
    spec = make_spec(tmp_path / "data", episodes=EPISODES)
    run = ClusterRun(spec, environment=lambda number: {"NIMBUS_DROP_ANSWERS": "3"} if number == 2 else {})
    run.at(1, lambda run: run.kill_cell("n1")).at(2, lambda run: run.kill("n2")).at(4, lambda run: run.kill("head"))
    run.at(6, lambda run: run.freeze("n1", 3.0))
    assert run.run().state == "done"
    assert run.hashes() == alone


@pytest.mark.slow
@pytest.mark.long
def test_upload_without_a_report_is_adopted(tmp_path: Path):
    """An agent dies between the two steps; the next agent reports the complete files. Each of the next agents dies as
    well.

    ``test_store_cluster`` has the same death, with a store instead of a folder.
    """
    spec = make_spec(tmp_path / "data", episodes=4)
    run = ClusterRun(spec, environment=lambda number: {"NIMBUS_FAILPOINT": "after_upload:2"} if number == 1 else {})
    assert run.run().state == "done"
    assert run.hashes() == finish_here(make_spec(tmp_path / "alone" / "data", episodes=4))
