"""Child program of ``nimbus run`` that starts or joins a run on a Ray cluster; the command itself does not load Ray."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import grpc  # pyright: ignore[reportMissingModuleSource]
import ray  # pyright: ignore[reportMissingImports]
from ray._private import services  # pyright: ignore[reportMissingImports]
from ray._private.grpc_utils import init_grpc_channel  # pyright: ignore[reportMissingImports]
from ray.core.generated import (  # pyright: ignore[reportMissingImports]
    gcs_service_pb2,
    gcs_service_pb2_grpc,
    ray_client_pb2,
    ray_client_pb2_grpc,
)
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayError  # pyright: ignore[reportMissingImports]

from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.files.codec import from_json
from nimbus.datagen.files.timed_connection import dial
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.on_ray.head_actor import HeadActor
from nimbus.runner.cluster.on_ray.own_head import find_head
from nimbus.runner.cluster.on_ray.reach import check_token, first_line, refusal
from nimbus.runner.cluster.on_ray.request import ANSWER_SECONDS, NAMESPACE, RayLine, RayOrder
from nimbus.runner.system.output import write_json

_LOOK = 0.5
"""Interval between readings of the status [s]."""
_CALLS = 128
"""Largest number of concurrent calls to the head actor, by nodes and by commands that follow the run."""
_AWAY = 60.0
"""Time without an answer from the head actor after which the program gives up; Ray uses the same [s]."""

_START = 300.0
"""Time limit for the head actor to start, or to start again; a busy head node loads its libraries for minutes [s]."""


class RayFollower:
    """Connects to a cluster, starts or joins a run, and prints its progress as JSON lines.

    Args:
        order: Description of the run.
    """

    def __init__(self, order: RayOrder) -> None:
        self._order = order
        self._is_stopping = False

    def handle_signals(self) -> None:
        """Stop the run at SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.ask_to_stop)

    def ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: the first one drains the run, the second one ends only this program."""
        if self._is_stopping:
            sys.exit(0)
        self._is_stopping = True

    def run(self) -> None:
        """Follow the run to its end.

        Raises:
            InputError: The cluster cannot be reached, or its version, platform or current run does not fit.
        """
        connect(self._order.address)
        self.handle_signals()  # again, because a driver of Ray aborts at SIGTERM
        head = self._head()
        has_asked, heard = False, time.monotonic()
        while True:
            try:
                if self._is_stopping and not has_asked:
                    ray.get(head.stop.remote(), timeout=ANSWER_SECONDS)
                    has_asked = True
                status, end = ray.get([head.status.remote(), head.end.remote()], timeout=ANSWER_SECONDS)
                heard = time.monotonic()
            except RayError as error:
                is_starting = isinstance(error, ActorUnavailableError)  # Ray restarts it
                if time.monotonic() - heard > (_START if is_starting else _AWAY):
                    instead = "check the head node; the same command joins the run, or continues it"
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
        """Create the head actor, or find the one that an earlier command created."""
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
            answer: bytes = ray.get(head.begin.remote(order.version, order.platform, digest), timeout=_START)
        except GetTimeoutError:
            what = f"the head has not started within {_START:.0f} s"
            instead = "check the head node; the same command joins the run"
            raise InputError(what, where=self._where, instead=instead) from None
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
        InputError: The cluster cannot be reached, the token is wrong, or versions differ.
    """
    where = f"--cluster {address}"
    place = find_head(where=where) if address == "auto" else address
    if place.startswith("ray://"):
        _check_client_server(place.removeprefix("ray://"), where=where)
    try:
        if not place.startswith("ray://"):
            _check_head(services.canonicalize_bootstrap_address(place) or place, where=where)
        ray.init(address=place, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except InputError:
        raise
    except Exception as error:  # Ray raises various types of errors
        raise refusal(error, where=where) from None
    if address == "auto":
        check_token(ray.get_runtime_context().gcs_address.rpartition(":")[0].strip("[]"), where=where)


def _check_client_server(place: str, *, where: str) -> None:
    """Ping Ray's client server. This fails at once if there is none; ``ray.init`` would take half a minute."""
    messages: Any = ray_client_pb2
    ping = messages.ClusterInfoRequest(type=messages.ClusterInfoType.PING)
    with _refusing(place, where) as channel:
        ray_client_pb2_grpc.RayletDriverStub(channel).ClusterInfo(ping, timeout=ANSWER_SECONDS)


def _check_head(place: str, *, where: str) -> None:
    """Ping Ray's head process, which reports a wrong token; ``ray.init`` fails after a minute without the reason."""
    messages: Any = gcs_service_pb2
    with _refusing(place, where) as channel:
        stub = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel)
        stub.CheckAlive(messages.CheckAliveRequest(), timeout=ANSWER_SECONDS)


@contextmanager
def _refusing(place: str, where: str) -> Iterator[Any]:
    """Open a channel to a server; errors become those of :func:`refusal`.

    Raises:
        InputError: The server refuses, does not answer, or belongs to another user of this machine.
    """
    host, _, port = place.rpartition(":")
    with suppress(OSError, ValueError):  # the channel reports it
        dial(host.strip("[]"), int(port), seconds=ANSWER_SECONDS, only_trusted=True).close()
    try:
        channel = init_grpc_channel(place, options=(), asynchronous=False)
    except Exception as error:  # Ray raises various types of errors
        raise refusal(error, where=where) from None
    try:
        yield channel
    except (grpc.RpcError, RayError) as error:
        raise refusal(error, where=where) from None
    finally:
        channel.close()


def _write(line: RayLine) -> None:
    write_json(line, indent=None)
    sys.stdout.flush()


def main() -> int:
    """Read a :class:`RayOrder` from standard input, follow its run, and print :class:`RayLine` objects as lines."""
    follower = RayFollower(from_json(RayOrder, sys.stdin.read()))
    follower.handle_signals()
    try:
        follower.run()
    except InputError as error:
        found = error.diagnostic
        _write(RayLine(error=Diagnostic(what=found.what, where=found.where, instead=found.instead)))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
