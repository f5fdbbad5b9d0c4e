"""Cluster of real agents and the real head in forked processes, whose cells replay measured times."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster_balance import StaticSplit
from benchmarks.replayed_cell import GROUP, ReplayedCell, ReplayedCosts
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.cell.transport.spec import CellSpec, Origin
from nimbus.runner.cluster import head_process, node_cells
from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.head import Head
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.job import ClusterJob, CountDraw, JobTask
from nimbus.runner.cluster.line_socket import HeadClient
from nimbus.runner.cluster.node_agent import AgentOptions, NodeAgent
from nimbus.runner.cluster.node_record import NodeLease
from nimbus.runner.cluster.pending_work import WorkGroup
from nimbus.runner.cluster.simulated_run import Conditions, SimulatedPolicy
from nimbus.runner.cluster.simulation import Simulation
from nimbus.runner.system.processes import die_with_parent

DRAW = CountDraw(address=("physical", "objects", "items", "count"), low=2, high=4)


class EqualParts(Balance):
    """Equal parts fixed at the start, as ``--part K/N`` makes them."""

    parts = 1

    def pull(self, cell: str, idle: int, now: float, *, ahead: int = 0) -> NodeLease | None:
        """Hand out a node's whole part at once."""
        number = int(cell.removeprefix("n")) - 1
        work, node = self.work[GROUP], self.nodes[cell]
        part = [index for index in range(number, work.group.count, self.parts) if not self.others(GROUP, index)]
        part = [index for index in part if not self.is_settled(GROUP, index)]
        for index in part:
            work.claim(index)
        return self._lease(node, GROUP, part, now) if part else None


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """Outcome of a run."""

    seconds: float
    """Time from the first lease, once all nodes have joined, to the last result."""
    efficiency: float
    head_cpu: float
    """CPU time of the head as a fraction of a core."""
    agent_cpu: float
    """CPU time of one agent as a fraction of a core."""
    leases: int


class ReplayedCluster:
    """Head and agents in forked processes.

    Args:
        folder: Folder for all files.
        nodes: Number of nodes with one slot each.
        episodes: Number of episodes of the job.
        speed: Ratio of the measured to the replayed times.
        is_static: True for equal parts instead of the balance.
    """

    def __init__(self, folder: Path, *, nodes: int, episodes: int, speed: float, is_static: bool = False) -> None:
        spec = CellSpec(folder=str(folder / "data"), task=GROUP, episodes=episodes)
        task = JobTask(
            name=GROUP, spec=spec, origin=Origin(task=GROUP, task_hash="0" * 64, seed=0), count_draws=(DRAW,)
        )
        self.job = ClusterJob(folder=spec.folder, tasks=(task,))
        self.costs = ReplayedCell.costs = ReplayedCosts(self.job, speed=speed)
        self.folder, self.nodes, self._is_static = folder, nodes, is_static
        self.head = 0
        self.agents: dict[str, int] = {}

    def start_head(self) -> None:
        """Start the head, on the same ledger."""
        self.head = _fork(self._serve)

    def start_agent(self, name: str) -> None:
        """Start an agent."""
        self.agents[name] = _fork(lambda: self._work(name))

    def start(self) -> None:
        """Start everything."""
        self.start_head()
        while not (self.folder / "s").exists():
            time.sleep(0.05)
        for number in range(1, self.nodes + 1):
            self.start_agent(f"n{number}")

    def run(self) -> ReplayResult:
        """Run to the end."""
        self.start()
        _, code, used = os.wait4(self.head, 0)
        assert not code, code
        agents = [os.wait4(pid, 0) for pid in self.agents.values()]
        rows = self.rows()
        assert len(rows) == self.job.tasks[0].spec.episodes == len({row.idx for row in rows})
        first = float((self.folder / "first").read_text())
        seconds = max(row.ended for row in rows) - first
        useful = sum(self.costs.seconds)
        return ReplayResult(
            seconds=seconds,
            efficiency=useful / (self.nodes * seconds),
            head_cpu=(used.ru_utime + used.ru_stime) / seconds,
            agent_cpu=sum(found.ru_utime + found.ru_stime for _, _, found in agents) / self.nodes / seconds,
            leases=int((self.folder / "leases").read_text()),
        )

    def rows(self) -> list[Attempt]:
        """Return the rows of the dataset."""
        with closing(Ledger(self.folder / "data", read_only=True)) as ledger:
            return list(ledger.walk_attempts(only_stored=True))

    def stop(self) -> None:
        """Kill the remaining processes."""
        for pid in filter(None, (self.head, *self.agents.values())):  # 0 would be the whole group
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _serve(self) -> int:
        logging.disable()  # a restarted head reports that files of a few bytes are not HDF5 files
        EqualParts.parts = self.nodes
        if self._is_static:
            head_process.Balance = EqualParts  # type: ignore[misc]
        samples = (self.folder / "samples").open("a", buffering=1)  # the output of a killed head exists already
        server = HeadServer(self.job, self.folder / "s")
        _sample(server.head, samples.write)
        pull, leases = server.head.balance.pull, [0]

        def counting(cell: str, idle: int, now: float, *, ahead: int = 0) -> NodeLease | None:
            if not leases[0] and len(server.head.balance.nodes) < self.nodes:
                return None  # two cores start 128 agents slowly: the work begins when all have joined
            if not leases[0]:
                (self.folder / "first").write_text(str(time.time()))
            lease = pull(cell, idle, now, ahead=ahead)
            leases[0] += lease is not None
            return lease

        server.head.balance.pull = counting  # type: ignore[method-assign]
        end = server.run()
        (self.folder / "leases").write_text(str(leases[0]))
        samples.close()
        return 0 if end.state == "done" else 1

    def _work(self, name: str) -> int:
        node_cells.NodeCell = ReplayedCell  # type: ignore[misc, assignment]
        folder = self.folder / "nodes" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return NodeAgent(AgentOptions(node=name, slots=1, folder=folder), HeadClient(self.folder / "s")).run()


def _sample(head: Head, write: Callable[[str], object]) -> None:
    """Let a head record its memory, its open files, and the mean duration of its commits, twice per minute."""
    commit, durations, last = head.commit, list[float](), [time.monotonic()]

    def timed(now: float) -> None:
        begin = time.monotonic()
        commit(now)
        durations.append(time.monotonic() - begin)
        if begin - last[0] > 30.0:
            last[0] = begin
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            files = len(os.listdir("/proc/self/fd"))
            median = sorted(durations)[len(durations) // 2]
            settled = head.status.progress.status.settled
            write(f"{os.getpid()} {time.time():.0f} {pages * 4096 / 1e6:.1f} {files} {1000 * median:.1f} {settled}\n")
            durations.clear()

    head.commit = timed  # type: ignore[method-assign]


def _fork(work: Callable[[], int]) -> int:
    parent = os.getpid()
    if pid := os.fork():
        return pid
    code = 1
    try:
        die_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = work()
    finally:
        sys.stdout.flush()
        os._exit(code)


def simulate(cluster: ReplayedCluster, *, is_static: bool) -> float:
    """Return the efficiency of the same run in simulated time, in which agents poll like real ones."""
    count = cluster.job.tasks[0].spec.episodes
    group = WorkGroup(name="task", count=count, weights=cluster.job.tasks[0].weights)
    policy: SimulatedPolicy = Balance([group], cost_classes={"task": lambda index: cluster.costs.classes[index]})
    if is_static:
        policy = StaticSplit(count, cluster.nodes)
    conditions = Conditions(start=0.0, upload=0.3)
    return (
        Simulation(policy, {"task": cluster.costs.seconds}, [1] * cluster.nodes, conditions=conditions).run().efficiency
    )
