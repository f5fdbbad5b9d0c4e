"""Ray's head actor: keeps the head's process running, creates a relay on each node, and forwards their messages.

Arguments and results of actors are bytes: messages of the head's protocol, at most 64 kB each. No episode is sent
through Ray.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray  # pyright: ignore[reportMissingImports]
from ray.autoscaler.sdk import request_resources  # pyright: ignore[reportMissingImports]
from ray.exceptions import ActorDiedError, RayError  # pyright: ignore[reportMissingImports]
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # pyright: ignore[reportMissingImports]

from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.store.recovery import clear_stage
from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.line_socket import HeadClient, HeadUnreachableError
from nimbus.runner.cluster.machine import platform_name
from nimbus.runner.cluster.messages import MOST_LETTERS, Leave, to_line
from nimbus.runner.cluster.on_ray.head_end import await_end, parse_end
from nimbus.runner.cluster.on_ray.kept_process import KeptProcess
from nimbus.runner.cluster.on_ray.reach import first_line
from nimbus.runner.cluster.on_ray.relay_actor import UNFIT, WORKING, RelayActor
from nimbus.runner.cluster.on_ray.request import ANSWER_SECONDS, NAMESPACE
from nimbus.runner.monitor.status import FILE_NAME as STATUS_NAME
from nimbus.runner.monitor.status import read_status
from nimbus.runner.system.child_module import module_command

_PLACE = 2.0
"""Interval between checks of the cluster's nodes [s]."""
_CHECK = 10.0
"""Interval between checks whether the relays could be created [s]."""
_MOST_DEATHS = 4
"""Number of relays of a node that Ray could not create, after which the node gets no further one."""
_KEPT_END = 600.0
"""Time for which the head actor keeps the result of the run, for a command that returns after an interruption [s]."""
_REFUSED = 30.0
"""Time after which a head actor ends if the version or platform of its command differs [s]."""


class HeadActor:
    """Runs the head's process, and forwards messages to it. If Ray restarts the actor, it continues from the ledger.

    Args:
        name: Name of the run.
        job: :class:`ClusterJob` as JSON.
        slots: Number of workers of each node; 0 for its number of CPUs in Ray.
        version: Version of Nimbus on the machine of the command. If it differs from the actor's, no run starts.
        platform: Platform of the machine of the command. If it differs from the actor's, no run starts either.
    """

    def __init__(self, name: str, job: str, slots: int, version: str, platform: str) -> None:
        self._name, self._slots = name, slots
        self._job = ClusterJob.from_text(job)
        self._digest = self._job.digest
        self._private = make_owned("nimbus-head-")
        self._socket = self._private.path / "head"
        self._own = threading.local()
        words = module_command("nimbus.runner.cluster.head_process", str(self._socket), "0", str(os.getpid()))
        self._head = KeptProcess(words, self._private.path / "head.log", text=job, is_over=_has_end)
        self._end: HeadEnd | None = None
        self._placed: dict[str, Any] = {}
        self._unfit: set[str] = set()
        """Ids of the nodes whose agents cannot work; they get no further relay."""
        self._deaths: Counter[str] = Counter()
        """Numbers of relays that Ray could not create, by id of the node."""
        self._check_at = time.monotonic() + _CHECK
        """Time of the next check of the relays, on the monotonic clock [s]."""
        self._asked = 0
        """Number of nodes requested from Ray's autoscaler."""

        if (version, platform) == (nimbus_version(), platform_name()):
            self._head.start()  # here, because Ray calls only the constructor when it restarts this actor
            threading.Thread(target=self._attend, daemon=True, name="attend").start()
        else:
            threading.Timer(_REFUSED, lambda: ray.kill(ray.get_runtime_context().current_actor)).start()

    def begin(self, version: str, platform: str, digest: str) -> bytes:
        """Check that a command fits this run.

        Args:
            version: Version of Nimbus on the machine of the command.
            platform: Platform of the machine of the command.
            digest: Digest of the command's job.

        Returns:
            A :class:`Diagnostic` as JSON if the command does not fit; empty if it does.
        """
        what = instead = ""
        if version != nimbus_version():
            what, instead = f"the cluster has version {nimbus_version()}, not {version}", "install the same version"
        elif platform != platform_name():
            what = f"the cluster's platform is {platform_name()}, not {platform}: results would differ"
            instead = "start the run on a machine like those of the cluster"
        elif digest != self._digest:
            what, instead = f"another run writes into {self._job.folder}", "wait for its end, or give another --out"
        return to_json(Diagnostic(what=what, instead=instead)).encode() if what else b""

    def say(self, line: bytes) -> bytes:
        """Forward a request to the head, and return its answer; raises :class:`HeadUnreachableError`."""
        client: HeadClient | None = getattr(self._own, "client", None)
        if client is None:
            client = self._own.client = HeadClient(self._socket)
        answer = client.exchange(line)
        self._head.note_progress()
        return answer

    def status(self) -> bytes:
        """Return the content of the run's ``status.json``; empty while it does not exist."""
        with suppress(OSError):
            return (Path(self._job.folder) / STATUS_NAME).read_bytes()
        return b""

    def end(self) -> bytes:
        """Return the result of the run, a :class:`HeadEnd` as JSON; empty while the run continues."""
        return to_json(self._end).encode() if self._end else b""

    def pid(self) -> int:
        """Return the process id of this actor."""
        return os.getpid()

    def stop(self) -> None:
        """Request that the nodes drain and the run ends."""
        self._head.stop()

    def _attend(self) -> None:
        """Create relays while the head works; after its end, remove them, and later this actor."""
        end = await_end(self._head, self._try_placing, interval=_PLACE)
        try:
            self._clean(is_done=end.state == "done")
        finally:
            self._end = end  # last, because the command that reads the result removes this actor
        time.sleep(_KEPT_END)
        ray.kill(ray.get_runtime_context().current_actor)

    def _clean(self, *, is_done: bool) -> None:
        """Remove the relays and the files of the head's process."""
        if self._job.bounds:
            with suppress(RayError):
                request_resources(bundles=[])
        for relay in self._placed.values():
            with suppress(RayError):
                ray.get(relay.leave.remote(is_done), timeout=ANSWER_SECONDS)
            with suppress(RayError):
                ray.kill(relay)
        for task in self._job.tasks:  # a killed node may have staged episodes that other nodes delivered
            clear_stage(Path(task.spec.folder))
        self._private.remove()

    def _try_placing(self) -> None:
        with suppress(RayError, InputError):  # a damaged status file is written again
            self._place()

    def _place(self) -> None:
        """Create a relay on each new node, up to the number of nodes that the job requests."""
        if time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + _CHECK
            self._forget_dead()
        most = self._wanted()
        for node in ray.nodes():
            number, cpus = node["NodeID"], int(node["Resources"].get("CPU", 0))
            if not node["Alive"]:
                self._placed.pop(number, None)
                self._unfit.discard(number)
            elif number not in {*self._placed, *self._unfit} and cpus and len(self._placed) < most:
                slots = min(self._slots, cpus) or cpus
                kind: Any = ray.remote(RelayActor)
                self._placed[number] = kind.options(
                    name=f"relay-{self._name}-{number[:12]}",
                    namespace=NAMESPACE,
                    get_if_exists=True,
                    lifetime="detached",
                    num_cpus=slots,
                    max_restarts=-1,
                    max_task_retries=0,
                    max_concurrency=4,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(number, soft=False),
                ).remote(self._name, _node_name(number), slots, tuple(task.name for task in self._job.tasks))

    def _forget_dead(self) -> None:
        """Forget relays that Ray could not create, so that it tries again; after some tries, report the node."""
        asked = {relay.state.remote(): number for number, relay in self._placed.items()}
        if not asked:
            return
        answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_SECONDS)
        for reference in answered:
            number = asked[reference]
            try:
                ray.get(reference)
            except ActorDiedError as error:
                self._deaths[number] += 1
                del self._placed[number]
                if self._deaths[number] == _MOST_DEATHS:
                    self._unfit.add(number)
                    self._report_unfit(_node_name(number), f"Ray cannot run its relay: {first_line(error)}")
            except RayError:
                continue  # the relay is being started again

    def _report_unfit(self, node: str, why: str) -> None:
        """Report to the head that a node cannot work, on behalf of an agent that does not run."""
        with suppress(HeadUnreachableError):
            self.say(to_line(Leave(node=node, why=why[:MOST_LETTERS], has_failed=True)))

    def _wanted(self) -> int:
        """Return the number of nodes that the job requests, after passing it to Ray's autoscaler.

        Relays whose agents have left are removed. For each node that cannot work, a further one is requested.
        """
        if (bounds := self._job.bounds) is None:
            return sys.maxsize
        status = read_status(Path(self._job.folder))
        wanted = min(bounds.most, max(bounds.least, status.cluster.wanted_nodes if status and status.cluster else 0))
        for number, relay in list(self._placed.items()):
            with suppress(RayError):
                try:
                    state: str = ray.get(relay.state.remote(), timeout=ANSWER_SECONDS)
                except ActorDiedError:
                    del self._placed[number]
                    continue
                if state != WORKING:
                    ray.kill(relay)
                    del self._placed[number]
                if state == UNFIT:
                    self._unfit.add(number)
        if (asked := wanted + len(self._unfit)) != self._asked:
            largest = max((int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]), default=0)
            request_resources(bundles=[{"CPU": max(1, self._slots or largest)}] * asked)
            self._asked = asked
        return wanted


def _has_end(code: int, output: str) -> bool:
    return parse_end(output) is not None


def _node_name(number: str) -> str:
    return f"n{number[:8]}"
