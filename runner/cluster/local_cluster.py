"""Cluster on this machine: a head and N node agents for one run. Their own files are removed at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nimbus.datagen.files.codec import from_json
from nimbus.datagen.files.own_files import make_subfolder, refuse_links, remove_tree
from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.machine import usable_cores
from nimbus.datagen.store.recovery import clear_stage
from nimbus.datagen.store.remote.cache_root import remote_root
from nimbus.datagen.store.remote.working_copy import is_remote
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.messages import FAILED
from nimbus.runner.monitor.status import read_status
from nimbus.runner.system.child_module import last_line, module_command, module_environment
from nimbus.runner.system.processes import Interruption, cell_tag, describe, sweep

_POLL = 0.1
_MOST_ENDS = 6
"""Number of exits without progress after which a process is not restarted."""
_GRACE = 45.0
"""Time for processes to exit after a stop request [s]."""
_NODES = "nodes"


def nodes_folder(dataset: Path) -> Path:
    """Return the folder of the nodes' files.

    It is inside the folder of the dataset, on the same disk, so that files can be linked instead of copied. For a
    dataset in a store, it is next to the spools: the content of a spool belongs to the dataset.
    """
    return remote_root() / _NODES / dataset.name if is_remote(dataset) else dataset / _NODES


@dataclass
class _Child:
    """Process of the cluster, restarted when it dies unexpectedly."""

    words: list[str]
    log: Path
    process: subprocess.Popen[str] | None = None
    ends: int = 0
    """Number of exits without progress."""
    start_at: float = 0.0
    """Earliest time of the next start, on the monotonic clock [s]."""
    is_over: bool = False
    """True if the process is not restarted any more."""
    has_failed: bool = False
    """True if it is over because it cannot work."""
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, text: str = "") -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=module_environment(**self.environment),
                start_new_session=True,
            )
        assert self.process.stdin
        with suppress(BrokenPipeError):
            self.process.stdin.write(text)
            self.process.stdin.close()

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def delay(self, now: float) -> None:
        """Count an exit, and schedule the next start; the delay grows with the number of exits."""
        self.ends += 1
        self.process, self.start_at = None, now + (min(10.0, 0.2 * 2**self.ends) if self.ends > 1 else 0.0)


class LocalCluster:
    """Head and agents of one run, as child processes.

    Args:
        job: Job of the cluster.
        nodes: Number of nodes.
        slots: Number of slots of each node.
        watch: Called several times per second; displays the run, and returns the number of settled episodes.
        environment: For tests: returns additional environment variables of an agent, given its number from 1.
    """

    def __init__(
        self,
        job: ClusterJob,
        *,
        nodes: int,
        slots: int,
        watch: Callable[[], int],
        environment: Callable[[int], dict[str, str]] = lambda number: {},
    ) -> None:
        self._job, self._watch = job, watch
        self._own = make_owned("nimbus-local-")
        self._private = self._own.path
        self._spool = nodes_folder(Path(job.folder))
        socket, parent = self._private / "head", str(os.getpid())
        self._head = _Child(
            module_command("nimbus.runner.cluster.head_process", str(socket), str(usable_cores()), parent),
            self._private / "head.log",
        )
        self._agents = [
            _Child(
                module_command(
                    "nimbus.runner.cluster.node_agent",
                    str(socket),
                    f"n{number}",
                    str(slots),
                    str(self._spool / f"n{number}"),
                    parent,
                ),
                self._private / f"n{number}.log",
                environment=environment(number),
            )
            for number in range(1, nodes + 1)
        ]
        self._socket = socket
        self._active = job.bounds.least if job.bounds else nodes
        """Number of agents in use; with bounds, further ones start when the job requests them."""
        self._settled = -1
        self._failure = self._last_words = ""
        self._has_begun = False
        """True once the head has opened the datasets; from then on, the folder of the nodes belongs to this run."""

    def run(self) -> HeadEnd:
        """Run the job to its end; return its result.

        Raises:
            InputError: The folder of the nodes has links; it may come with a dataset of another user.
        """
        text = self._job.to_text()
        try:
            if self._spool.exists():
                make_subfolder(self._spool)
                refuse_links(self._spool)
            with Interruption() as interruption:
                return self._attend(text, interruption)
        finally:
            self._clean()

    @property
    def processes(self) -> dict[str, int]:
        """Ids of the running processes by name: ``head``, ``n1`` and so on."""
        named = {"head": self._head} | {f"n{number}": agent for number, agent in enumerate(self._agents, 1)}
        return {name: child.process.pid for name, child in named.items() if child.process and not child.has_ended()}

    def _attend(self, text: str, interruption: Interruption) -> HeadEnd:
        self._head.start(text)
        stop_at = 0.0
        while True:
            settled, now = self._watch(), time.monotonic()
            if settled != self._settled:
                self._settled, self._head.ends = settled, 0
                for agent in self._agents:
                    agent.ends = 0
            if self._head.has_ended():
                if end := self._head_end():
                    if end.state == "interrupted" and not interruption.requested:
                        return self._without_head(interruption)
                    return HeadEnd(state="failed", line=self._failure) if self._failure and end.state != "done" else end
                if interruption.requested or stop_at:
                    return self._without_head(interruption)
                code = self._head.process.returncode if self._head.process else 0
                self._head.delay(now)
                if self._head.ends >= _MOST_ENDS:
                    log = self._head.log.read_text()[-2000:]
                    return HeadEnd(state="failed", line=f"the head ended {_MOST_ENDS} times, {describe(code)}\n{log}")
            if self._head.process is None and stop_at:
                return self._without_head(interruption)
            if self._head.process is None and now >= self._head.start_at:
                self._head.start(text)
            if interruption.requested or self._all_are_over():
                if not stop_at:
                    stop_at = now + _GRACE
                    self._stop()
                elif now > stop_at:
                    return self._without_head(interruption)
            elif self._socket.exists():
                self._has_begun = True
                self._attend_agents(now)
            time.sleep(_POLL)

    def _without_head(self, interruption: Interruption) -> HeadEnd:
        """Return the result of a run whose head ended without one."""
        if interruption.requested:
            return HeadEnd(state="interrupted")
        return HeadEnd(state="failed", line=self._failure or self._last_words or "every node ended")

    def _attend_agents(self, now: float) -> None:
        for agent in self._agents[: self._active]:
            if agent.has_ended() and agent.process:
                if agent.process.returncode in (0, FAILED):
                    if not agent.is_over and agent.process.returncode == FAILED:
                        self._last_words, agent.has_failed = last_line(agent.log), True
                    agent.is_over = True
                    continue
                agent.delay(now)
                if agent.ends >= _MOST_ENDS:
                    agent.is_over = agent.has_failed = True
                    self._failure = f"a node's agent ended {_MOST_ENDS} times: {last_line(agent.log)}"
            if agent.process is None and now >= agent.start_at and not agent.is_over:
                agent.start()
        self._count_wanted()

    def _count_wanted(self) -> None:
        """Activate as many agents as the job requests, and a further one for each that has failed."""
        if (bounds := self._job.bounds) is None:
            return
        status = read_status(Path(self._job.folder))
        wanted = min(bounds.most, status.cluster.wanted_nodes) if status and status.cluster else bounds.least
        failed = sum(agent.has_failed for agent in self._agents)
        self._active = min(len(self._agents), max(self._active, wanted + failed))

    def _all_are_over(self) -> bool:
        return all(agent.is_over for agent in self._agents[: self._active])

    def _head_end(self) -> HeadEnd | None:
        """Return the result of the head; None if it was killed."""
        assert self._head.process and self._head.process.stdout
        try:
            return from_json(HeadEnd, self._head.process.stdout.read().splitlines()[-1])
        except (ValueError, IndexError):
            return None

    def _stop(self) -> None:
        for child in (self._head, *self._agents):
            if child.process and not child.has_ended():
                child.process.send_signal(signal.SIGTERM)

    def _clean(self) -> None:
        """End every process, and remove the files of the nodes, including those that they staged and did not report."""
        deadline = time.monotonic() + 5.0
        for child in (*self._agents, self._head):
            if child.process:
                with suppress(subprocess.TimeoutExpired):
                    child.process.wait(max(0.0, deadline - time.monotonic()))
                child.process.kill()
                child.process.wait()
        if self._has_begun:  # otherwise another run may use the dataset and this folder
            for number in range(1, len(self._agents) + 1):
                for task in self._job.tasks:
                    sweep(cell_tag(self._spool / f"n{number}" / task.name))
            with suppress(OSError):
                remove_tree(self._spool)
            for task in self._job.tasks:  # a killed node may have staged episodes that other nodes delivered
                clear_stage(Path(task.spec.folder))
        self._own.remove()
