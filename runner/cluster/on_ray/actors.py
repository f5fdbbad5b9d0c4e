"""Ray's part: a detached head actor, a relay on each node, and the program that creates and follows them.

Actors take and return bytes: messages of the head's protocol, none over 64 kB. Episodes never travel through Ray. Both
actors only carry lines and keep a program running; head and agents are those of any cluster.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import grpc  # pyright: ignore[reportMissingModuleSource]
import ray  # pyright: ignore[reportMissingImports]
from ray._private.grpc_utils import init_grpc_channel  # pyright: ignore[reportMissingImports]
from ray.autoscaler.sdk import request_resources  # pyright: ignore[reportMissingImports]
from ray.core.generated import ray_client_pb2, ray_client_pb2_grpc  # pyright: ignore[reportMissingImports]
from ray.exceptions import ActorDiedError, RayError  # pyright: ignore[reportMissingImports]
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # pyright: ignore[reportMissingImports]

from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.owned_folder import OwnedFolder, make_owned, remove_stale
from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.line_socket import HeadClient, HeadUnreachableError, LineConnection, LineServer
from nimbus.runner.cluster.machine import platform_name
from nimbus.runner.cluster.node_agent import FAILED
from nimbus.runner.cluster.on_ray.kept_process import KeptProcess
from nimbus.runner.cluster.on_ray.reach import check_token, first_line, own_root, refusal
from nimbus.runner.cluster.on_ray.request import NAMESPACE, RayLine, RayOrder
from nimbus.runner.monitor.status import FILE_NAME as STATUS_NAME
from nimbus.runner.monitor.status import read_status
from nimbus.runner.system.child_module import module_command
from nimbus.runner.system.output import write_json
from nimbus.runner.system.processes import cell_tag, sweep

_PATIENCE = 10.0
"""Time limit for an answer of the head through Ray, after which the agent repeats its request [s]."""
_PLACE = 2.0
"""Interval between checks of the cluster's nodes [s]."""
_LOOK = 0.5
"""Interval between readings of the status [s]."""
_KEPT_END = 600.0
"""Time for which the head actor keeps the result of the run for a returning command [s]."""
_REFUSED = 30.0
"""Time after which a head actor created by a mismatched command ends [s]."""
_CALLS = 128
"""Number of concurrent calls to the head actor: one per node, and the commands that follow the run."""
_AWAY = 60.0
"""Time without an answer of the head actor after which the program gives up, as Ray does [s]."""


class HeadActor:
    """Runs the head's process, and forwards messages to it. Restarted by Ray, it continues from the ledger.

    Args:
        name: Name of the run.
        job: :class:`ClusterJob` as JSON.
        slots: Workers of each node; 0 for the number of CPUs known to Ray.
        version: Version of Nimbus on the machine of the command; :meth:`begin` refuses another one.
        platform: Platform of the machine of the command.
    """

    def __init__(self, name: str, job: str, slots: int, version: str, platform: str) -> None:
        self._name, self._slots = name, slots
        self._job = ClusterJob.from_text(job)
        self._digest = self._job.digest
        self._private = make_owned("nimbus-head-")
        self._socket = self._private.path / "head"
        self._own = threading.local()
        words = module_command(
            "nimbus.runner.cluster.head_process", str(self._socket), str(max(1, slots)), str(os.getpid())
        )
        self._head = KeptProcess(words, self._private.path / "head.log", text=job, is_over=_has_end)
        self._end: HeadEnd | None = None
        self._placed: dict[str, Any] = {}
        self._asked = 0
        """Number of nodes requested from Ray's autoscaler."""

        if (version, platform) == (nimbus_version(), platform_name()):
            self._head.start()  # here, because Ray calls nothing else when it restarts this actor
            threading.Thread(target=self._attend, daemon=True, name="attend").start()
        else:
            threading.Timer(_REFUSED, lambda: ray.kill(ray.get_runtime_context().current_actor)).start()

    def begin(self, version: str, platform: str, digest: str) -> bytes:
        """Check that a command fits this run, which it starts or joins; return an error as JSON if it does not."""
        what = instead = ""
        if version != nimbus_version():
            what, instead = f"the cluster has Nimbus {nimbus_version()}, here is {version}", "install the same one"
        elif platform != platform_name():
            what = f"the cluster's platform is {platform_name()}, here is {platform}: results would differ"
            instead = "start the run on a machine like those of the cluster"
        elif digest != self._digest:
            what, instead = f"another run writes into {self._job.folder}", "wait for its end, or give another --out"
        return to_json(Diagnostic(what=what, instead=instead)).encode() if what else b""

    def say(self, line: bytes) -> bytes:
        """Forward a request to the head, and return its answer; raises without an answer."""
        client: HeadClient | None = getattr(self._own, "client", None)
        if client is None:
            client = self._own.client = HeadClient(self._socket)
        answer = client.exchange(line)
        self._head.note_progress()
        return answer

    def status(self) -> bytes:
        """Return ``status.json`` of the run; empty while there is none."""
        with suppress(OSError):
            return (Path(self._job.folder) / STATUS_NAME).read_bytes()
        return b""

    def end(self) -> bytes:
        """Return the result of the run as JSON; empty while it continues."""
        return to_json(self._end).encode() if self._end else b""

    def pid(self) -> int:
        """Return the process of this actor."""
        return os.getpid()

    def stop(self) -> None:
        """Drain the nodes, and end the run."""
        self._head.stop()

    def _attend(self) -> None:
        """Place relays while the head works, then remove them and finally this actor."""
        while not self._head.over.wait(_PLACE):
            with suppress(RayError, InputError):  # including a damaged status file, which is written again
                self._place()
        end = _end_of(self._head.output)
        failure = self._head.failure  # no file: it was stopped while it loaded
        end = end or (HeadEnd(state="failed", line=f"the head {failure}") if failure else HeadEnd(state="interrupted"))
        if self._job.bounds:
            with suppress(RayError):
                request_resources(bundles=[])
        for relay in self._placed.values():
            with suppress(RayError):
                ray.get(relay.leave.remote(end.state == "done"), timeout=_PATIENCE)
            with suppress(RayError):
                ray.kill(relay)
        self._private.remove()
        self._end = end  # after the relays, because the command that reads it removes this actor
        time.sleep(_KEPT_END)
        ray.kill(ray.get_runtime_context().current_actor)

    def _place(self) -> None:
        """Create a relay on each new node, up to the number that the job requests."""
        most = self._wanted()
        for node in ray.nodes():
            number, cpus = node["NodeID"], int(node["Resources"].get("CPU", 0))
            if not node["Alive"]:
                self._placed.pop(number, None)
            elif number not in self._placed and cpus and len(self._placed) < most:
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
                ).remote(self._name, f"n{number[:8]}", slots, tuple(task.name for task in self._job.tasks))

    def _wanted(self) -> int:
        """Return the number of nodes that the job requests, and pass it to Ray's autoscaler.

        Remove relays that left.
        """
        if (bounds := self._job.bounds) is None:
            return sys.maxsize
        status = read_status(Path(self._job.folder))
        wanted = min(bounds.most, max(bounds.least, status.cluster.wanted_nodes if status and status.cluster else 0))
        for number, relay in list(self._placed.items()):
            with suppress(RayError):
                try:
                    has_left = ray.get(relay.has_left.remote(), timeout=_PATIENCE)
                except ActorDiedError:
                    del self._placed[number]
                    continue
                if has_left:
                    ray.kill(relay)
                    del self._placed[number]
        if wanted != self._asked:
            largest = max((int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]), default=0)
            request_resources(bundles=[{"CPU": max(1, self._slots or largest)}] * wanted)
            self._asked = wanted
        return wanted


class RelayActor:
    """Runs a node's agent, and forwards its messages to the head actor.

    Args:
        name: Name of the run.
        node: Name of the node.
        slots: Number of its workers.
        tasks: Names of the job's tasks.
    """

    def __init__(self, name: str, node: str, slots: int, tasks: tuple[str, ...]) -> None:
        place = Path(os.environ.get("NIMBUS_SPOOL") or tempfile.gettempdir())
        root = own_root(place / f"nimbus-nodes-{os.getuid()}")
        remove_stale(root.glob("*/*"))  # files of killed raylets, whose nodes have other names now
        self._own = OwnedFolder(root / name / node)
        self._folder, self._tasks = self._own.path, tasks
        self._sweep()
        self._head: Any = ray.get_actor(f"head-{name}", namespace=NAMESPACE)
        self._private = make_owned("nimbus-relay-")
        socket = self._private.path / "head"
        self._server = LineServer(socket)
        words = module_command(
            "nimbus.runner.cluster.node_agent",
            str(socket),
            node,
            str(slots),
            str(self._folder),
            str(os.getpid()),
        )
        self._has_left = False
        self._agent = KeptProcess(words, self._folder / "agent.log", is_over=self._is_over)
        threading.Thread(target=self._carry, daemon=True, name="carry").start()
        self._agent.start()

    def pid(self) -> int:
        """Return the process of this actor."""
        return os.getpid()

    def has_left(self) -> bool:
        """Return True if the agent left because fewer nodes are needed, or all work is done."""
        return self._has_left

    def _is_over(self, code: int, output: str) -> bool:
        self._has_left = code == 0
        return code in (0, FAILED)

    def leave(self, is_done: bool) -> None:
        """End the agent and its cells; remove their files if the run is done."""
        self._agent.kill()
        self._agent.over.wait(_PATIENCE)
        self._sweep()
        self._private.remove()
        if is_done:
            self._own.remove()
            with suppress(OSError):
                self._folder.parent.rmdir()

    def _sweep(self) -> None:
        """End the processes of cells left by an earlier agent of this node."""
        for task in self._tasks:
            sweep(cell_tag(self._folder / task))

    def _carry(self) -> None:
        while True:
            self._server.serve(1.0, self._forward)
            if self._agent.over.wait(0 if self._agent.pid else _PLACE):
                self._end_without_head()

    def _end_without_head(self) -> None:
        """End this actor if the head actor has gone without removing it."""
        with suppress(RayError):
            try:
                ray.get(self._head.pid.remote(), timeout=_PATIENCE)
            except ActorDiedError:
                ray.kill(ray.get_runtime_context().current_actor)

    def _forward(self, connection: LineConnection, line: bytes) -> None:
        try:
            answer: bytes = ray.get(self._head.say.remote(line), timeout=_PATIENCE)
        except ActorDiedError:
            os.kill(os.getpid(), signal.SIGKILL)  # for good: nobody restarts it, and there is nothing to carry
        except (RayError, HeadUnreachableError):
            connection.drop()
        else:
            connection.answer(answer)
            self._agent.note_progress()


def _has_end(code: int, output: str) -> bool:
    return _end_of(output) is not None


def _end_of(output: str) -> HeadEnd | None:
    try:
        return from_json(HeadEnd, output.splitlines()[-1])
    except (ValueError, IndexError):
        return None


# The program


class RayFollower:
    """Connects to a cluster, starts or joins a run, and prints its progress as lines.

    Args:
        order: The run.
    """

    def __init__(self, order: RayOrder) -> None:
        self._order = order
        self._is_stopping = False

    def ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        """Drain the run; on the second call, leave it running."""
        if self._is_stopping:
            sys.exit(0)
        self._is_stopping = True

    def run(self) -> None:
        """Follow the run to its end.

        Raises:
            InputError: The cluster does not exist or does not fit.
        """
        connect(self._order.address)
        head = self._head()
        has_asked, heard = False, time.monotonic()
        while True:
            try:
                if self._is_stopping and not has_asked:
                    ray.get(head.stop.remote(), timeout=_PATIENCE)
                    has_asked = True
                status, end = ray.get([head.status.remote(), head.end.remote()], timeout=_PATIENCE)
                heard = time.monotonic()
            except RayError as error:
                if time.monotonic() - heard > _AWAY:
                    instead = "look at the head node; the same command joins the run, or continues it"
                    what = f"the head does not answer: {first_line(error)}"
                    raise InputError(what, where=self._where, instead=instead) from None
                time.sleep(_LOOK)
                continue
            if status:
                _write(RayLine(status=status.decode()))
            if end:
                _write(RayLine(end=from_json(HeadEnd, end.decode())))
                ray.kill(head)
                return
            time.sleep(_LOOK)

    @property
    def _where(self) -> str:
        return f"--cluster {self._order.address}"

    def _head(self) -> Any:
        """Create the head actor, or find that of an earlier command."""
        order = self._order
        if not any(node["Alive"] and node["Resources"].get("CPU", 0) >= 1 for node in ray.nodes()):
            _write(RayLine(note="the cluster has no node with a CPU yet: waiting for one"))
        options = ray.remote(HeadActor).options(
            name=f"head-{order.name}",
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=0,
            resources={"node:__internal_head__": 0.001},
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=_CALLS,
        )
        head = options.remote(order.name, order.job, order.slots, order.version, order.platform)
        try:
            digest = ClusterJob.from_text(order.job).digest
            answer: bytes = ray.get(head.begin.remote(order.version, order.platform, digest), timeout=_AWAY)
        except RayError as error:
            instead = "install the same Nimbus on every node of the cluster, with the extra 'cluster'"
            raise InputError(
                f"the head cannot start: {first_line(error)}", where=self._where, instead=instead
            ) from None
        if answer:
            refused = from_json(Diagnostic, answer.decode())
            raise InputError(refused.what, where=self._where, instead=refused.instead)
        return head


def connect(address: str) -> None:
    """Connect this process to a cluster.

    Raises:
        InputError: The cluster does not exist, the token is wrong, or versions differ.
    """
    where = f"--cluster {address}"
    if address.startswith("ray://"):
        _check_client_server(address.removeprefix("ray://"), where=where)
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # Ray raises various errors, each with a text
        raise refusal(error, where=where) from None
    if address == "auto":
        check_token(ray.get_runtime_context().gcs_address.rpartition(":")[0].strip("[]"), where=where)


def _check_client_server(place: str, *, where: str) -> None:
    """Ping Ray's client server, which answers at once; ``ray.init`` takes half a minute."""
    channel = init_grpc_channel(place, options=(), asynchronous=False)
    messages: Any = ray_client_pb2
    try:
        ping = messages.ClusterInfoRequest(type=messages.ClusterInfoType.PING)
        ray_client_pb2_grpc.RayletDriverStub(channel).ClusterInfo(ping, timeout=_PATIENCE)
    except grpc.RpcError as error:
        raise refusal(error, where=where) from None
    finally:
        channel.close()


def _write(line: RayLine) -> None:
    write_json(line, indent=None)
    sys.stdout.flush()


def main() -> int:
    """Follow the :class:`RayOrder` on standard input; print lines of :class:`RayLine`."""
    follower = RayFollower(from_json(RayOrder, sys.stdin.read()))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, follower.ask_to_stop)
    try:
        follower.run()
    except InputError as error:
        found = error.diagnostic
        _write(RayLine(error=Diagnostic(what=found.what, where=found.where, instead=found.instead)))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
