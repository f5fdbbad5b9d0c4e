"""Server that serves any policy over openpi's wire, on this machine and to clients of this user only.

Clients send the server's token. Those of Nimbus find it in the user's cache; others send it as ``Api-Key``, or as the
path of the address.
"""

from __future__ import annotations

import http
import logging
import selectors
import socket
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from nimbus.datagen.episode.layout import EpisodeKey
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_plain
from nimbus.datagen.files.server_tokens import keep_token, new_token
from nimbus.datagen.local_server import why_foreign, without_token
from nimbus.datagen.policies.policy import Policy, PolicyEpisode, PolicyObservation, PolicyTask
from nimbus.datagen.policies.wires.codec import LARGEST, OPENPI
from nimbus.datagen.policies.wires.frame_structure import FrameError
from nimbus.datagen.policies.wires.openpi import EPISODE, IMAGES, SCENE, STATE, VELOCITY

T = TypeVar("T")
HOST = "127.0.0.1"
_MOST_CONNECTIONS = 64
"""Largest number of connections; each has its own policy in memory."""
_MOST_GREETING = 64
"""Largest number of additional connections that have not yet sent a request with the token."""
_GREETING = 5.0
"""Time for a request [s]."""
_PAUSE = 0.1
"""Pause after a connection that could not be accepted, because the process has no free descriptor [s]."""
_SILENT = logging.Logger(__name__, logging.CRITICAL + 1)
"""Logger of the library: any user of the machine can send a damaged request, so the library logs nothing."""


def _bound(port: int) -> socket.socket:
    """Return a socket at a port of this machine that does not listen yet.

    Raises:
        InputError: The port is taken.
    """
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
    except OSError as error:
        bound.close()
        what = (error.strerror or str(error)).lower()
        raise InputError(f"{port}: {what}", where="--port", instead="give another port") from None
    return bound


class PolicyServer:
    """Server that answers observations; each connection has its own policy.

    Args:
        make_policy: Opens the policy.
        port: Port of this machine; 0 for any free one.
        metadata: Further entries of the metadata.

    Raises:
        InputError: The policy cannot be opened, or the port is taken.
    """

    def __init__(
        self, make_policy: Callable[[], Policy], *, port: int = 0, metadata: Mapping[str, object] | None = None
    ) -> None:
        self._make_policy = make_policy
        self._connections: set[ServerConnection] = set()
        policy = make_policy()
        cameras = policy.needs.cameras
        own = {
            "checkpoint": policy.identity,
            "limit": policy.limit,
            "action_horizon": policy.horizon,
            "environment_state": policy.needs.environment_state,
            "units": "rad",
            "control_mode": "joint",
        }
        wanted = {} if cameras is None else {"cameras": {IMAGES + name: None for name in cameras}}
        policy.close()
        self._metadata = own | wanted | dict(metadata or {})
        bound = _bound(port)
        self.token = new_token()
        self._kept = keep_token(bound.getsockname()[1], self.token)  # before a client can connect
        bound.listen()
        server = serve(
            self._talk,
            sock=bound,
            compression=None,
            max_size=LARGEST,
            max_queue=1,
            ping_interval=None,
            open_timeout=_GREETING,
            process_request=self._admit,
            logger=_SILENT,
        )
        self._server = _BoundedServer(server.socket, server.handler)

    @property
    def port(self) -> int:
        """Port of this machine."""
        return self._server.socket.getsockname()[1]

    @property
    def address(self) -> str:
        """Address in the form of ``--policy``."""
        return f"ws://{HOST}:{self.port}"

    def serve_forever(self) -> None:
        """Answer until :meth:`close`."""
        self._server.serve_forever()

    def close(self) -> None:
        """End all connections, and accept no new ones."""
        self._kept.unlink(missing_ok=True)
        self._server.shutdown()
        for connection in tuple(self._connections):
            connection.close(1001)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse web pages, because browsers let any page open a WebSocket to this machine; answer health checks."""
        headers = request.headers
        if why := why_foreign(headers.get_all("Host"), headers.get_all("Origin"), listening=HOST):
            return connection.respond(http.HTTPStatus.FORBIDDEN, f"{why}\n")
        path = without_token(request.path, headers.get_all("Authorization"), token=self.token)
        if path is None:
            told = "connect as the user of the server, or send the token that it printed\n"
            return connection.respond(http.HTTPStatus.UNAUTHORIZED, told)
        if path == "/healthz":
            return connection.respond(http.HTTPStatus.OK, "OK\n")
        if len(self._connections) >= _MOST_CONNECTIONS:
            return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "too many connections\n")
        return None

    def _talk(self, connection: ServerConnection) -> None:
        policy: Policy | None = None
        self._connections.add(connection)
        try:
            policy = self._make_policy()
            session = _PolicySession(policy)
            connection.send(OPENPI.pack(self._metadata))
            for frame in connection:
                if isinstance(frame, str):
                    raise FrameError("a text; observations are msgpack")
                connection.send(OPENPI.pack({"actions": session.answer(OPENPI.unpack(frame))}))
        except ConnectionClosed:
            return
        except Exception:  # any error of the policy is sent to the client, as in openpi's server
            connection.send(traceback.format_exc())
            connection.close(1011, "the traceback is in the previous frame")
        finally:
            self._connections.discard(connection)
            if policy is not None:
                policy.close()


class _BoundedServer:
    """Server that accepts connections up to a limit, because each has two threads and a descriptor from its start.

    The library's own loop starts them without a limit, and ends when the process has no free descriptor.

    Args:
        listening: Socket that listens.
        handle: Serves a connection, and closes it.
    """

    def __init__(self, listening: socket.socket, handle: Callable[[socket.socket, Any], None]) -> None:
        self.socket, self._handle = listening, handle
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS + _MOST_GREETING)
        self._is_over = threading.Event()
        self._wake, self._woken = socket.socketpair()
        listening.setblocking(False)  # a client may have disconnected between the wait and the call

    def serve_forever(self) -> None:
        """Accept connections until :meth:`shutdown`."""
        with selectors.DefaultSelector() as waiting, self._woken:
            waiting.register(self._woken, selectors.EVENT_READ)
            with suppress(ValueError):  # the server is closed already
                waiting.register(self.socket, selectors.EVENT_READ)
            while not self._is_over.is_set():
                waiting.select()
                if not self._is_over.is_set():
                    self._accept()

    def shutdown(self) -> None:
        """Accept no further connections."""
        self._is_over.set()
        self._wake.close()
        self.socket.close()

    def _accept(self) -> None:
        try:
            connection, address = self.socket.accept()
        except OSError:
            self._is_over.wait(_PAUSE)
            return
        connection.setblocking(True)
        if not self._free.acquire(blocking=False):
            connection.close()
            return
        try:
            threading.Thread(target=self._serve, args=(connection, address)).start()
        except RuntimeError:  # the system starts no further thread
            self._free.release()
            connection.close()

    def _serve(self, connection: socket.socket, address: object) -> None:
        try:
            self._handle(connection, address)
        finally:
            connection.close()
            self._free.release()


class _PolicySession:
    """Policy of one client, with its current episode."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._task: PolicyTask | None = None

    def answer(self, held: object) -> np.ndarray[Any, Any]:
        if not isinstance(held, dict) or not isinstance(own := held.get(EPISODE), dict):
            raise FrameError(f"an observation without '{EPISODE}': evaluate with nimbus")
        episode, step = own.get("episode"), own.get("step")
        if not isinstance(episode, dict) or not isinstance(step, int):
            raise FrameError(f"an observation without an episode in '{EPISODE}'")
        if step == 0:
            self._begin(own, episode, instruction=_entry(held, "prompt", str))
        empty = np.zeros(0)
        observation = PolicyObservation(
            step=step,
            state=_entry(held, STATE, np.ndarray),
            velocity=_entry(held, VELOCITY, np.ndarray),
            images={name.removeprefix(IMAGES): value for name, value in held.items() if name.startswith(IMAGES)},
            environment_state=held.get(SCENE, empty),
            instruction=_entry(held, "prompt", str),
        )
        return np.asarray(self._policy.act(observation))

    def _begin(self, own: dict[str, Any], episode: dict[str, Any], *, instruction: str) -> None:
        task = own.get("task")
        if self._task is None and isinstance(task, dict):
            arrays = {name: task.pop(name) for name in ("action_low", "action_high")}
            self._task = PolicyTask(**task, **arrays)
            self._policy.begin_task(self._task)
        key = from_plain(EpisodeKey, episode.get("key"))
        self._policy.reset(PolicyEpisode(key=key, instruction=instruction, seed=int(episode["seed"])))


def _entry(held: Mapping[str, object], name: str, kind: type[T]) -> T:
    if not isinstance(value := held.get(name), kind):
        raise FrameError(f"an observation without '{name}'")
    return value
