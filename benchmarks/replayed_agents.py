"""Real agents and the real head with replayed stage times: many nodes on one machine, without physics.

``python -m benchmarks.replayed_agents 8 32 128`` runs clusters of 8 to 128 nodes of one slot, 20 episodes a slot, once
with the balance and once with equal parts, and prints a row for each beside the same run in simulated time. Agents,
sockets, head and ledger are those of any cluster; each agent is a process. Only cells are replaced: an episode takes
the time of a measured one (``episode_costs.json``), in which nothing is computed, and its file holds a few bytes.

``--soak 1200 --fault-every 20`` lets 16 nodes run for 20 minutes instead, while nodes and the head are killed and
frozen, and prints memory, open files and duration of commits of the head a minute.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cluster_balance import COSTS, StaticSplit
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import Fault
from nimbus.runner.cell.transport.spec import CellSpec, Origin
from nimbus.runner.cluster import head_process, node_cells
from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.head import Head
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.job import ClusterJob, CountDraw, JobTask
from nimbus.runner.cluster.line_socket import HeadClient
from nimbus.runner.cluster.messages import CellTask
from nimbus.runner.cluster.node_agent import AgentOptions, NodeAgent
from nimbus.runner.cluster.node_record import NodeLease
from nimbus.runner.cluster.outbox import CellResult
from nimbus.runner.cluster.pending_work import WorkGroup
from nimbus.runner.cluster.simulated_run import Conditions, SimulatedPolicy
from nimbus.runner.cluster.simulation import Simulation
from nimbus.runner.monitor.status import Status
from nimbus.runner.system.processes import die_with_parent

GROUP = "replay"
DRAW = CountDraw(address=("physical", "objects", "items", "count"), low=2, high=4)
STARTUP = 120.0
"""Longest time for all agents to join [s]."""


class ReplayedCosts:
    """Times of episodes: those of measured episodes with the same number of objects.

    Args:
        job: The job, whose draws give the number of objects.
        speed: Ratio of the measured to the replayed times.
    """

    def __init__(self, job: ClusterJob, *, speed: float) -> None:
        task = job.tasks[0]
        rows = json.loads(COSTS.read_text())
        random_numbers = np.random.Generator(np.random.Philox(key=7))
        self.classes = [task.cost_class(index) for index in range(task.spec.episodes)]
        by_class = {number: [row[2] for row in rows if row[1] == number + 2] for number in set(self.classes)}
        self.seconds = [float(random_numbers.choice(by_class[number])) / speed for number in self.classes]


class ReplayedCell:
    """Cell without processes, which takes the time of each fed episode, one after the other.

    Args:
        task: The task.
        folder: Folder of the node.
        slots: Number of workers; one.
    """

    costs: ReplayedCosts

    def __init__(self, task: CellTask, folder: Path, *, slots: int) -> None:
        self.task, self.folder, self.slots = task, folder / task.group, slots
        self.failure, self.spool_bytes = "", 0
        self._fed: dict[int, float] = {}
        """Time at which each episode was fed [s]."""
        self._current, self._until = -1, 0.0
        self._made: list[int] = []
        self._is_running = False
        (self.folder / "episodes").mkdir(parents=True, exist_ok=True)

    @property
    def is_running(self) -> bool:
        """True between the first lease and the end."""
        return self._is_running

    def keep_running(self, now: float) -> None:
        """Finish the episodes whose time is over. As a worker has processes of its own, it waits for no agent."""
        self._is_running = True
        while self._current < 0 or now >= self._until:
            if self._current >= 0:
                self._made.append(self._current)
                self._current = -1
            waiting = [index for index in self._fed if index not in self._made]
            if not waiting:
                return
            self._current = waiting[0]
            self._until = max(self._until, self._fed[self._current]) + self.costs.seconds[self._current]

    def feed(self, indices: Iterable[int]) -> None:
        """Take the episodes to make."""
        now = time.monotonic()
        self._fed = {index: self._fed.get(index, now) for index in indices}

    def is_fit(self) -> bool:
        """Nothing is loaded."""
        return self._is_running

    def results(self, indices: Iterable[int]) -> Iterator[CellResult]:
        """Return finished episodes."""
        for index in indices:
            if index in self._made:
                self._made.remove(index)
                del self._fed[index]
                yield CellResult(index=index, attempts=(self._attempt(index),))

    def _attempt(self, index: int) -> Attempt:
        name = f"{GROUP}-s0-{index:06d}-v0-00000000"
        path = f"episodes/{name}.hdf5"
        (self.folder / path).write_bytes(b"episode!")
        seconds = self.costs.seconds[index]
        return Attempt(
            episode_id=name,
            task=GROUP,
            seed=0,
            idx=index,
            variant=0,
            attempt=0,
            final=True,
            success=True,
            path=path,
            byte_count=8,
            sha256="0" * 64,
            times={"plan": 0.26 * seconds, "render": 0.56 * seconds, "store": 0.18 * seconds},
            drawn={f"objects.{number}": [0.12345] * 12 for number in range(20)},
            ended=time.time(),
        )

    def unreported(self) -> list[int]:
        """Return nothing: what an earlier agent made is lost with it."""
        return []

    def faults(self) -> list[Fault]:
        """Return nothing."""
        return []

    def info_text(self) -> str:
        """Return nothing new."""
        return ""

    def forget_info(self) -> None:
        """Do nothing."""

    def has_features(self) -> bool:
        """Return True."""
        return True

    def remove_files(self, attempts: Iterable[Attempt]) -> None:
        """Remove acknowledged files."""
        for attempt in attempts:
            (self.folder / attempt.path).unlink(missing_ok=True)

    def status(self) -> Status | None:
        """Return nothing."""
        return None

    def close_feed(self) -> None:
        """Do nothing."""

    def drain(self) -> None:
        """End at once."""
        self._is_running = False

    def kill(self) -> None:
        """End at once."""
        self._is_running = False


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
    """Share of a core."""
    agent_cpu: float
    """The same, of one agent."""
    leases: int


class ReplayedCluster:
    """Head and agents in forked processes.

    Args:
        folder: For all files.
        nodes: Number of nodes of one slot.
        episodes: Episodes of the job.
        speed: Ratio of the measured to the replayed times.
        is_static: Equal parts instead of the balance.
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
        """Kill what is left."""
        for pid in filter(None, (self.head, *self.agents.values())):  # 0 would be the whole group
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _serve(self) -> int:
        logging.disable()  # files of a few bytes are no HDF5 files, as a restarted head notes
        EqualParts.parts = self.nodes
        if self._is_static:
            head_process.Balance = EqualParts  # type: ignore[misc]
        samples = (self.folder / "samples").open("a", buffering=1)  # a killed head has written its lines
        server = HeadServer(self.job, self.folder / "s", slots=self.nodes)
        _sample(server.head, samples.write)
        pull, leases = server.head.balance.pull, [0]

        def counting(cell: str, idle: int, now: float, *, ahead: int = 0) -> NodeLease | None:
            if not leases[0] and len(server.head.balance.nodes) < self.nodes:
                return None  # the work begins when all nodes have joined: two cores start 128 agents one by one
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
    """Let a head note its memory, its open files, and the mean duration of its commits, twice a minute."""
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
    """Efficiency of the same run in simulated time: agents look and poll as the real ones do."""
    count = cluster.job.tasks[0].spec.episodes
    group = WorkGroup(name="task", count=count, weights=cluster.job.tasks[0].weights)
    policy: SimulatedPolicy = Balance([group], cost_classes={"task": lambda index: cluster.costs.classes[index]})
    if is_static:
        policy = StaticSplit(count, cluster.nodes)
    conditions = Conditions(start=0.0, upload=0.3)
    return (
        Simulation(policy, {"task": cluster.costs.seconds}, [1] * cluster.nodes, conditions=conditions).run().efficiency
    )


def curves(counts: Sequence[int], given: argparse.Namespace) -> None:
    """Print the table."""
    head = "| nodes | episodes | policy | seconds | efficiency | simulated | leases | head, % of a core | agent, % |\n"
    sys.stdout.write(head + "|---|---|---|---|---|---|---|---|---|\n")
    for nodes in counts:
        episodes = given.episodes or given.per_slot * nodes
        for is_static in [policy == "static" for policy in given.policies]:
            folder = Path(tempfile.mkdtemp(prefix="nimbus-replay-"))
            cluster = ReplayedCluster(folder, nodes=nodes, episodes=episodes, speed=given.speed, is_static=is_static)
            try:
                found = cluster.run()
            finally:
                cluster.stop()
                shutil.rmtree(folder, ignore_errors=True)
            cells = [f"{nodes}", f"{episodes:,}", "static" if is_static else "dynamic", f"{found.seconds:.0f}"]
            cells += [f"{100 * found.efficiency:.1f} %", f"{100 * simulate(cluster, is_static=is_static):.1f} %"]
            cells += [f"{found.leases}", f"{100 * found.head_cpu:.1f}", f"{100 * found.agent_cpu:.2f}"]
            sys.stdout.write(f"| {' | '.join(cells)} |\n")
            sys.stdout.flush()


def soak(given: argparse.Namespace) -> int:
    """Run for a time with faults; 1 if an episode is lost or doubled."""
    folder, chance = Path(tempfile.mkdtemp(prefix="nimbus-soak-")), random.Random(0)
    cluster = ReplayedCluster(folder, nodes=given.nodes, episodes=given.episodes or 100_000, speed=given.speed)
    injected: dict[str, int] = {}
    try:
        cluster.start()
        end, next_fault = time.monotonic() + given.soak, time.monotonic() + given.fault_every
        frozen: dict[int, float] = {}
        while time.monotonic() < end:
            time.sleep(0.5)
            for pid in [pid for pid, until in frozen.items() if time.monotonic() > until]:
                os.kill(pid, signal.SIGCONT)
                del frozen[pid]
            _restart(cluster)
            if time.monotonic() < next_fault:
                continue
            next_fault += given.fault_every
            is_early = end - time.monotonic() > given.soak / 2
            kind = chance.choice(["agent", "agent", "freeze"] + (["head", "freeze head"] if is_early else []))
            injected[kind] = injected.get(kind, 0) + 1
            pid = cluster.head if "head" in kind else cluster.agents[chance.choice(sorted(cluster.agents))]
            if "freeze" in kind:
                os.kill(pid, signal.SIGSTOP)
                frozen[pid] = time.monotonic() + chance.choice([2.0, 12.0, 40.0] if kind == "freeze" else [2.0])
            else:
                frozen.pop(pid, None)
                os.kill(pid, signal.SIGKILL)
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        settled_rows = cluster.rows()
        lines = (folder / "samples").read_text().splitlines()
    finally:
        cluster.stop()
        time.sleep(1.0)
        shutil.rmtree(folder, ignore_errors=True)
    doubled = len(settled_rows) - len({row.idx for row in settled_rows})
    sys.stdout.write(f"{given.soak:.0f} s, faults {injected}: {len(settled_rows)} stored, {doubled} doubled\n")
    sys.stdout.write("head's pid, time, MB, open files, ms a commit, settled\n" + "\n".join(lines) + "\n")
    return bool(doubled)


def _restart(cluster: ReplayedCluster) -> None:
    """Start again what was killed, as :class:`LocalCluster` does."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        if pid == cluster.head:
            cluster.start_head()
        for name in [name for name, agent in cluster.agents.items() if agent == pid]:
            cluster.start_agent(name)


def main() -> int:
    """Print the table, or run the soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=int, nargs="*", default=[8, 32, 128])
    parser.add_argument("--episodes", type=int, default=0, help="of each run, instead of --per-slot")
    parser.add_argument("--per-slot", type=int, default=20)
    parser.add_argument("--speed", type=float, default=1.0, help="ratio of measured to replayed times")
    parser.add_argument("--policies", nargs="*", default=["static", "dynamic"], choices=["static", "dynamic"])
    parser.add_argument("--soak", type=float, default=0.0, help="duration with faults [s]")
    parser.add_argument("--fault-every", type=float, default=60.0, help="[s]")
    parser.add_argument("--nodes", type=int, default=16, help="of the soak")
    given = parser.parse_args()
    files = min(65_536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if given.soak:
        return soak(given)
    curves(given.counts, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
