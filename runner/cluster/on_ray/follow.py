"""Child program of ``nimbus run`` that starts or joins a run on a Ray cluster; the command itself does not load Ray."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
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
from nimbus.datagen.files.trusted_servers import dial
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.on_ray.head_actor import HeadActor
from nimbus.runner.cluster.on_ray.own_head import find_head
from nimbus.runner.cluster.on_ray.reach import check_token, first_line, is_loopback, open_cluster, refusal
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
    try:
        if place.startswith("ray://"):
            _check_server(place.removeprefix("ray://"), _ping_client_server, where=where)
        else:
            _check_server(services.canonicalize_bootstrap_address(place) or place, _ping_head, where=where)
        ray.init(address=place, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except InputError:
        raise
    except Exception as error:  # Ray raises various types of errors
        raise refusal(error, where=where) from None


def _ping_client_server(channel: Any) -> None:
    messages: Any = ray_client_pb2
    ping = messages.ClusterInfoRequest(type=messages.ClusterInfoType.PING)
    ray_client_pb2_grpc.RayletDriverStub(channel).ClusterInfo(ping, timeout=ANSWER_SECONDS)


def _ping_head(channel: Any) -> None:
    messages: Any = gcs_service_pb2
    stub = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel)
    stub.CheckAlive(messages.CheckAliveRequest(), timeout=ANSWER_SECONDS)


def _check_server(place: str, ping: Callable[[Any], None], *, where: str) -> None:
    """Ping a server of Ray, with the token and without it.

    A missing server and a wrong token are reported at once; ``ray.init`` would take a minute, and states no reason.

    Args:
        place: Host and port.
        ping: Request to the server, on a channel.
        where: Location for errors.

    Raises:
        InputError: The server refuses the token, does not answer, belongs to another user of this machine, or answers
            other machines without a token.
    """
    host, _, port = place.rpartition(":")
    host = host.strip("[]")
    check_token(host, where=where)
    with suppress(OSError, ValueError):  # the channel reports it
        dial(host, int(port), seconds=ANSWER_SECONDS, only_trusted=True).close()
    try:
        with contextlib.closing(init_grpc_channel(place, options=(), asynchronous=False)) as channel:
            ping(channel)
    except Exception as error:  # Ray raises various types of errors
        raise refusal(error, where=where) from None
    if is_loopback(host) or os.environ.get("RAY_USE_TLS") == "1":  # with TLS, it asks for a certificate
        return
    try:
        with grpc.insecure_channel(place) as channel:
            ping(channel)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNAUTHENTICATED:  # pyright: ignore[reportAttributeAccessIssue]
            return
        raise refusal(error, where=where) from None
    raise open_cluster(host, where=where)


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
