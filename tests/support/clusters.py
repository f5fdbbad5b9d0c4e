"""Clusters of light cells on this machine: the point robot's runs, shared by nodes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cluster.describe_job import describe
from nimbus.runner.cluster.job import ClusterJob, HeadEnd, JobTask
from nimbus.runner.cluster.local_cluster import LocalCluster, nodes_folder
from nimbus.runner.monitor.status import Status, read_status
from tests.support.cells import tagged, until


def job_of(spec: CellSpec) -> ClusterJob:
    """Describe a light spec in this process, without loading a simulator."""
    found = describe(spec)
    assert found.origin, found.error
    return ClusterJob(folder=spec.folder, tasks=(JobTask(name="drive", spec=spec, origin=found.origin),))


class ClusterRun:
    """A cluster that runs in the background of a test.

    Args:
        spec: The run.
        nodes: Number of nodes.
        environment: Additional environment variables of the agents, by node number.
        job: Job of several tasks; that of the spec by default.
    """

    def __init__(
        self,
        spec: CellSpec,
        *,
        nodes: int = 2,
        environment: Callable[[int], dict[str, str]] = lambda number: {},
        job: ClusterJob | None = None,
    ) -> None:
        self.spec, self.folder = spec, Path(job.folder if job else spec.folder)
        self.ends: list[HeadEnd] = []
        self._actions: list[tuple[int, Callable[[ClusterRun], None]]] = []
        os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
        job = job or job_of(spec)
        self.cluster = LocalCluster(job, nodes=nodes, slots=1, watch=self._watch, environment=environment)

    def at(self, settled: int, action: Callable[[ClusterRun], None]) -> ClusterRun:
        """Call a function once a number of episodes are settled."""
        self._actions.append((settled, action))
        return self

    def run(self) -> HeadEnd:
        """Run to the end, and check that no process, no folder and no staged file of a node is left."""
        end = self.cluster.run()
        assert list((Path(self.spec.folder) / "stage").glob("*")) == []
        assert not nodes_folder(self.folder).exists()
        nodes = [f"{nodes_folder(self.folder)}/n{number}/drive" for number in range(1, 9)]
        assert until(lambda: not [pid for folder in nodes for pid in tagged(CellSpec(folder=folder))])
        assert until(lambda: not self.cluster.processes)
        return end

    def hashes(self) -> dict[str, str]:
        """Return the hashes of the dataset, which must pass verification."""
        assert verify(self.folder).problems == ()
        return dataset_hashes(self.folder)

    def status(self) -> Status:
        """Return the last status."""
        found = read_status(self.folder)
        assert found
        return found

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a process of the cluster."""
        if pid := self.cluster.processes.get(name):
            os.kill(pid, number)

    def freeze(self, name: str, seconds: float) -> None:
        """Stop a process for a while."""
        self.kill(name, signal.SIGSTOP)
        threading.Timer(seconds, self.kill, (name, signal.SIGCONT)).start()

    def kill_cell(self, node: str) -> None:
        """Kill every process of a node's cell."""
        for pid in tagged(CellSpec(folder=f"{nodes_folder(self.folder)}/{node}/drive")):
            os.kill(pid, signal.SIGKILL)

    def _watch(self) -> int:
        status = read_status(self.folder)
        settled = status.settled if status else -1
        for due in [due for due in self._actions if settled >= due[0]]:
            self._actions.remove(due)
            due[1](self)
        return settled
