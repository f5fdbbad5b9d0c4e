"""Cost of the head of a large cluster: CPU at 1,000 nodes, and memory of a job of a million episodes.

``python -m benchmarks.cluster_head`` takes about two minutes. The head is the real one, with its ledger on this disk.
It receives messages of 1,000 nodes as lines: a heartbeat from each node every two seconds, requests for leases, and 110
results per second with rows of 5 kB. Episode files have a few bytes, because no episode passes through the head. CPU
time is measured in the head only, per second of a simulated clock, which advances as fast as the head answers.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections import deque
from contextlib import closing
from pathlib import Path

from benchmarks.replayed_cell import make_light_attempt
from nimbus.datagen.store.info import DatasetInfo
from nimbus.datagen.version import nimbus_version
from nimbus.runner.cell.transport.spec import CellSpec, Origin
from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.dataset_entry import DatasetEntry
from nimbus.runner.cluster.head import Head
from nimbus.runner.cluster.head_status import HeadStatus
from nimbus.runner.cluster.job import ClusterJob, CountDraw, JobTask
from nimbus.runner.cluster.machine import platform_name
from nimbus.runner.cluster.messages import (
    Answer,
    Beat,
    EpisodeReport,
    Join,
    Leased,
    LeaseRequest,
    Report,
    Request,
    request_of,
    to_line,
)
from nimbus.runner.cluster.pending_work import WorkGroup
from nimbus.runner.monitor.progress import Progress

NODES, SLOTS, RATE, BEAT, SECONDS = 1000, 1, 110, 2.0, 20
MILLION = 1_000_000
ROW = {f"objects.{number}": [0.12345] * 12 for number in range(20)}
"""Drawn values that give a row the size of a real one."""


class HeadLoad:
    """Messages of many nodes, answered by one head.

    Args:
        folder: Folder of the dataset.
    """

    def __init__(self, folder: Path) -> None:
        spec = CellSpec(folder=str(folder), task="load", episodes=MILLION)
        task = JobTask(name="load", spec=spec, origin=Origin(task="load", task_hash="0" * 64, seed=0))
        job = ClusterJob(folder=str(folder), tasks=(task,))
        self.entry = DatasetEntry(task)
        self.progress = Progress(folder, task="load", target=MILLION, already=0, already_stored=0, mode="cluster")
        self.entry.progress = (self.progress,)
        balance = Balance([WorkGroup(name="load", count=MILLION)], states={"load": self.entry.states()})
        status = HeadStatus(self.progress)
        self.head = Head(job, {"load": self.entry}, balance, status, epoch=1)
        self.seconds = 0.0
        """CPU time of the head so far [s]."""
        self.held: dict[str, deque[int]] = {f"n{number}": deque() for number in range(NODES)}
        info = DatasetInfo(task="load", task_hash="0" * 64, seed=0, features={}, rate=15)
        self._info = json.dumps(info, default=vars)

    def send(self, request: Request, now: float) -> None:
        """Let the head read a line and answer it."""
        line, answers = to_line(request), list[bytes]()
        begin = time.process_time()
        self.head.take(request_of(line), lambda answer: answers.append(to_line(answer)), now)
        if self.head.commit_due(now):
            self.head.commit(now)
        self.seconds += time.process_time() - begin

    def pull(self, node: str, now: float) -> None:
        """Request a lease."""
        answers = list[Answer]()
        line = to_line(LeaseRequest(node=node, idle=1, ahead=1))
        begin = time.process_time()
        self.head.take(request_of(line), answers.append, now)
        self.seconds += time.process_time() - begin
        if isinstance(answers[0], Leased):
            self.held[node].extend(answers[0].indices)

    def report(self, node: str, now: float) -> None:
        """Report an episode."""
        if not self.held[node]:
            self.pull(node, now)
        index = self.held[node].popleft()
        name = f"load-s0-{index:06d}-v0-00000000"
        staged = self.entry.dataset.stage / f"{name}.{node}.tmp"
        staged.write_bytes(b"episode!")
        attempt = make_light_attempt("load", name, index, times={"plan": 2.5, "render": 5.3, "store": 1.7}, drawn=ROW)
        staged_name = {name: staged.name}
        episode = EpisodeReport(
            group="load", index=index, lease=1, attempts=(attempt,), staged=staged_name, seconds=9.5
        )
        self.send(Report(node=node, episodes=(episode,)), now)

    def run(self, seconds: int) -> float:
        """Simulate ``seconds`` [s] of the cluster; return the CPU time of the head per second."""
        names = list(self.held)
        for node in names:
            join = Join(
                node=node,
                slots=SLOTS,
                version=nimbus_version(),
                platform=platform_name(),
                host="h",
                pid=1,
                clock=time.time(),
            )
            self.send(join, 0.0)
            self.pull(node, 0.0)
        self.seconds, sent, beats, looked = 0.0, 0, 0, 0
        for tick in range(seconds * 100):
            now = tick / 100
            while beats < now * NODES / BEAT:
                node = names[beats % NODES]
                self.send(Beat(node=node, held={"load": tuple(self.held[node])}), now)
                beats += 1
            while sent < now * RATE:
                self.report(names[(sent * 7919) % NODES], now)
                sent += 1
            if looked < 2 * now:
                looked += 1
                begin = time.process_time()
                self.head.look(now)
                self.seconds += time.process_time() - begin
        self.head.commit(float(seconds))
        assert self.progress.status.stored == sent, (self.progress.status.stored, sent)
        return self.seconds / seconds


def million() -> float:
    """Distribute a million episodes with drawn classes over 1,000 nodes; return this process's peak memory [bytes]."""
    draw = CountDraw(address=("physical", "objects", "items", "count"), low=2, high=4)
    spec = CellSpec(folder="", episodes=MILLION)
    task = JobTask(name="t", spec=spec, origin=Origin(task="t", task_hash="", seed=0), count_draws=(draw,))
    group = WorkGroup(name="t", count=MILLION, weights=task.weights)
    balance = Balance([group], cost_classes={"t": task.cost_class})
    names = [f"n{number}" for number in range(NODES)]
    for name in names:
        balance.join(name, 8, 0.0)
    turn = 0
    while not balance.done:
        name, turn = names[turn % NODES], turn + 1
        if lease := balance.pull(name, 8, turn / 1000):
            for index in lease.indices:
                balance.settled(name, lease.number, "t", index, turn / 1000, seconds=9.5)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """Print both figures."""
    with tempfile.TemporaryDirectory(prefix="nimbus-head-") as place:
        load = HeadLoad(Path(place) / "data")
        with closing(load.entry.dataset):
            share = load.run(SECONDS)
    sys.stdout.write(f"head, {NODES} nodes, {RATE} results/s: {share:.1%} of a core\n")
    sys.stdout.flush()
    sys.stdout.write(f"head, {MILLION:,} episodes: {million() / 1e9:.2f} GB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
