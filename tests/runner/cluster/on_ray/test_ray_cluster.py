"""Raylets on this machine make the dataset of one process, whatever is killed. `make test-cluster` runs these tests."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

# Ray is not imported here, because the import reads the token of Ray's cluster.
if importlib.util.find_spec("ray") is None:
    pytest.skip("the extra 'cluster' brings Ray; make test-cluster", allow_module_level=True)

from nimbus.runner.cell.transport.spec import CellSpec
from tests.support.cells import finish, make_spec, tagged, until
from tests.support.ray_clusters import RayNodes, RayRun, actor_pids, kill_actors

pytestmark = pytest.mark.slow
EPISODES = 80


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the hashes of the dataset that one process makes."""
    return finish(make_spec(tmp_path_factory.mktemp("alone") / "data", episodes=EPISODES), serial=True)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayNodes]:
    """Start a head and three raylets."""
    found = RayNodes(tmp_path_factory.mktemp("ray"), nodes=3)
    yield found
    found.stop()


def cells() -> list[int]:
    """Return the processes of all cells of the nodes."""
    spool = Path(os.environ["NIMBUS_SPOOL"])
    return [pid for place in spool.glob("*/*/*/drive") for pid in tagged(CellSpec(folder=str(place)))]


def test_raylets_make_what_one_process_makes(nodes: RayNodes, alone: dict[str, str], tmp_path: Path):
    run = RayRun(make_spec(tmp_path / "data", episodes=EPISODES))
    assert run.run().state == "done"
    assert run.hashes() == alone
    assert until(lambda: not actor_pids("RelayActor") and not actor_pids("HeadActor"), patience=20.0)


def test_stopped_run_continues(nodes: RayNodes, alone: dict[str, str], tmp_path: Path):
    """Ray's own signal handler once ended the driver, and the nodes did not finish their episodes."""
    run = RayRun(make_spec(tmp_path / "data", episodes=EPISODES))
    run.at(20, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert run.run().state == "interrupted"
    assert until(lambda: not cells(), patience=20.0)
    assert run.run().state == "done"
    assert run.hashes() == alone


def test_killed_parts_cost_no_episode(nodes: RayNodes, alone: dict[str, str], tmp_path: Path):
    """A relay, a cell, the head actor and a raylet are killed."""
    run = RayRun(make_spec(tmp_path / "data", episodes=EPISODES))
    run.at(1, lambda: kill_actors("RelayActor")).at(15, kill_cells)
    run.at(30, lambda: kill_actors("HeadActor")).at(45, nodes.kill_raylet)
    assert run.run().state == "done"
    assert run.hashes() == alone
    assert until(lambda: not cells(), patience=20.0)


def kill_cells() -> None:
    for pid in cells():
        os.kill(pid, signal.SIGKILL)
