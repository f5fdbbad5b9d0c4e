"""An agent with a head in this process: its leases, offers and reports."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.cluster import node_agent
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.job import NodeNeeds
from nimbus.runner.cluster.line_socket import HeadClient
from nimbus.runner.cluster.messages import Capabilities
from nimbus.runner.cluster.node_agent import AgentOptions, NodeAgent
from nimbus.runner.cluster.node_cell import NodeCell
from nimbus.runner.cluster.node_delivery import NodeDelivery
from nimbus.runner.cluster.outbox import CellResult
from nimbus.runner.cluster.store_delivery import open_uploader
from tests.support.cells import make_spec
from tests.support.clusters import job_of
from tests.support.synthetic import failed_attempts


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HeadServer]:
    """Return a head that runs in a thread; its task needs memory."""
    job = job_of(make_spec(tmp_path / "data"))
    job = replace(job, tasks=(replace(job.tasks[0], needs=NodeNeeds(memory_bytes=1000)),))
    made = HeadServer(job, tmp_path / "s")
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.head.balance.nodes.clear()
    made.ask_to_stop()
    thread.join(20)


@pytest.fixture
def agent(server: HeadServer, tmp_path: Path) -> NodeAgent:
    """Return an agent that has joined."""
    folder = tmp_path / "n1"
    folder.mkdir()
    made = NodeAgent(AgentOptions(node="n1", slots=1, folder=folder), HeadClient(tmp_path / "s"))
    assert made._join() and made._has_joined
    return made


def test_own_cells_cost_no_place_in_the_cluster(server: HeadServer, agent: NodeAgent, monkeypatch: pytest.MonkeyPatch):
    """A restarted head checks the needs again, while a cell fills the memory."""
    monkeypatch.setattr(node_agent, "read_capabilities", lambda: Capabilities(memory_bytes=1))
    server.head.balance.leave("n1")
    agent._beat()
    assert not agent._has_joined
    assert agent._join() and agent._has_joined


def test_lease_of_what_is_made_is_not_made_twice(agent: NodeAgent):
    agent._delivery._outbox.add("drive", 1, CellResult(index=0, attempts=()), seconds=1.0)
    agent._pull(time.monotonic())
    queued = [index for index, _ in agent._cells.held["drive"].queued]
    assert queued and 0 not in queued


def test_full_outbox_pulls_nothing(agent: NodeAgent):
    """A heartbeat with more episodes would not fit into a message."""
    for index in range(4001):
        agent._delivery._outbox.add("drive", 1, CellResult(index=9_000_000 + index, attempts=()), seconds=1.0)
    agent._pull(time.monotonic())
    assert not agent._cells.held["drive"].queued
    agent._beat()
    assert agent._has_joined


def test_full_spool_pauses_the_cell(server: HeadServer, agent: NodeAgent, monkeypatch: pytest.MonkeyPatch):
    """Episodes of a lease stay in the queue, and the cell is kept however long that takes."""
    agent._pull(time.monotonic())
    work = agent._cells.held["drive"]
    monkeypatch.setattr(NodeCell, "is_fit", lambda cell: True)
    monkeypatch.setattr(NodeCell, "is_running", True)
    monkeypatch.setattr(NodeCell, "keep_running", lambda cell, now: None)
    monkeypatch.setattr(NodeDelivery, "byte_count", 9 << 30)
    agent._attend_cells(time.monotonic() + 1e6)
    assert work.queued and not work.fed and agent._last_lease > time.monotonic()
    agent._beat()
    server.head.look(time.monotonic())
    assert (cluster := server.progress.status.cluster) and cluster.nodes[0].state == "full"
    monkeypatch.setattr(NodeDelivery, "byte_count", 0)
    agent._attend_cells(time.monotonic() + 2e6)
    assert work.fed


def test_cell_that_starts_again_is_read_again(agent: NodeAgent):
    """A ledger without a writer is opened as immutable."""
    cell = NodeCell(agent._cells.tasks["drive"], agent._options.folder, slots=1)
    cell.folder.mkdir()
    (cell.folder / "status.json").write_text("{}")
    Ledger(cell.folder).close()
    assert cell.unreported() == []
    cell._process = subprocess.Popen(["sleep", "30"], text=True)
    writer = Ledger(cell.folder)
    try:
        writer.record(replace(failed_attempts(variants=1)[0], idx=0, final=True))
        assert [result.index for result in cell.results([0])] == [0]
    finally:
        writer.close()
        cell.kill()


def test_idle_cell_ends_without_a_fault(agent: NodeAgent):
    """Five stops of a cell without work once made a node leave."""
    cell = NodeCell(agent._cells.tasks["drive"], agent._options.folder, slots=1)
    ended = "import json; print(json.dumps({'code': 1, 'state': 'short', 'line': ''}))"
    for closed, failures in ((True, 0), (False, 1)):
        cell._is_closed = closed
        cell._process = subprocess.Popen([sys.executable, "-c", ended], stdout=subprocess.PIPE, text=True)
        cell._process.wait()
        cell._note_end(0.0)
        assert cell._ends == failures and not cell.failure


def test_folder_that_a_node_does_not_reach_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="does not reach the folder"):
        open_uploader(f"{tmp_path}/nowhere", "n1")


def test_cell_is_no_link(agent: NodeAgent, tmp_path: Path):
    (tmp_path / "private").mkdir()
    (tmp_path / "n1" / "drive").symlink_to(tmp_path / "private")
    with pytest.raises(InputError, match="the folder contains links"):
        NodeCell(agent._cells.tasks["drive"], tmp_path / "n1", slots=1)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_log_of_a_cell_is_a_file(agent: NodeAgent, tmp_path: Path, kind: str):
    (tmp_path / "private").write_text("mine")
    log = tmp_path / "n1" / "drive.log"
    if kind == "link":
        log.symlink_to(tmp_path / "private")
    else:
        os.mkfifo(log)
    cell = NodeCell(agent._cells.tasks["drive"], tmp_path / "n1", slots=1)
    with pytest.raises(InputError):
        cell.keep_running(0.0)
    assert not cell.is_running and (tmp_path / "private").read_text() == "mine"


def test_files_behind_a_link_are_not_removed(agent: NodeAgent, tmp_path: Path):
    cell = NodeCell(agent._cells.tasks["drive"], tmp_path / "n1", slots=1)
    (row,) = failed_attempts(variants=1)
    path = f"episodes/{row.episode_id}.hdf5"
    (tmp_path / "private" / "episodes").mkdir(parents=True)
    (tmp_path / "private" / path).touch()
    cell.folder.mkdir()
    (cell.folder / "episodes").symlink_to(tmp_path / "private" / "episodes")
    with pytest.raises(InputError, match="this is a link"):
        cell.remove_files([replace(row, path=path)])
    assert (tmp_path / "private" / path).exists()


def test_large_row_reaches_the_head(server: HeadServer, agent: NodeAgent):
    """A large row once ended the agent, and each later agent with the same result."""
    row = replace(failed_attempts(variants=1)[0], detail="x" * 100_000)
    agent._delivery._outbox.add("drive", 1, CellResult(index=0, attempts=(row,)), seconds=1.0).is_uploaded = True
    agent._cells.cells["drive"] = NodeCell(agent._cells.tasks["drive"], agent._options.folder, slots=1)
    agent._delivery.go_on(time.monotonic())
    assert agent._delivery.is_empty
    assert [len(found.detail) for found in server._entries["drive"].dataset.ledger.attempts(0)] == [100_000]
