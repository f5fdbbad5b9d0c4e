"""Requests of agents and answers of the head, as lines of JSON over a Unix socket in a private folder."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nimbus.runner.cluster.message_parts import lines_of
from nimbus.runner.cluster.messages import MOST_BYTES, Answer, Done, Request, answer_of

_PATIENCE = 10.0
"""Time limit for an answer [s]; callers then repeat the request on a new connection."""


@dataclass(eq=False)
class LineConnection:
    """Connection of the server to one agent."""

    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)

    @property
    def is_closed(self) -> bool:
        """True if the connection has ended."""
        return self.socket.fileno() < 0

    def lines(self) -> list[bytes] | None:
        """Return the complete lines received; None if the connection has ended."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        self.received += data
        *whole, rest = bytes(self.received).split(b"\n")
        self.received[:] = rest
        return None if len(rest) > MOST_BYTES else whole

    def drop(self) -> None:
        """Shut the connection down; the agent repeats its request on a new one."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def answer(self, line: bytes) -> None:
        """Send a line; errors are ignored, because an agent without an answer repeats its request."""
        with suppress(OSError):
            self.socket.settimeout(1.0)
            self.socket.sendall(line + b"\n")
        with suppress(OSError):
            self.socket.setblocking(False)


class LineServer:
    """Single-threaded server on a Unix socket.

    Args:
        path: Path of the socket; an existing one is replaced.
    """

    def __init__(self, path: Path) -> None:
        self._selector = selectors.DefaultSelector()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = path
        path.unlink(missing_ok=True)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen(4096)
        self._socket.setblocking(False)
        self._selector.register(self._socket, selectors.EVENT_READ)

    def serve(self, seconds: float, take: Callable[[LineConnection, bytes], None]) -> None:
        """Wait for lines, and process those that have arrived.

        Args:
            seconds: Longest time to wait [s].
            take: Called with each line.
        """
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._socket:
                self._accept()
                continue
            connection: LineConnection = key.data
            if (lines := connection.lines()) is None:
                self.drop(connection)
                continue
            for line in lines:
                if not connection.is_closed:
                    take(connection, line)

    def drop(self, connection: LineConnection) -> None:
        """Close a connection and remove it from the server."""
        if not connection.is_closed:
            self._selector.unregister(connection.socket)
            connection.socket.close()

    @property
    def connection_count(self) -> int:
        """Number of open connections."""
        return len(self._selector.get_map()) - 1

    def close(self) -> None:
        """Close all connections, and remove the socket."""
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with suppress(OSError):  # no connection is waiting, or too many files are open; then the agent tries again
            while True:
                accepted, _ = self._socket.accept()
                accepted.setblocking(False)
                self._selector.register(accepted, selectors.EVENT_READ, LineConnection(accepted))


class HeadUnreachableError(OSError):
    """Raised when the head does not answer in time."""


class HeadClient:
    """Connection of an agent to the head; a lost connection is reopened with the next request.

    Args:
        path: The head's socket.
        drop_every: For tests: drop every n-th answer as if it were lost; 0 drops none.
    """

    def __init__(self, path: Path, *, drop_every: int = 0) -> None:
        self._path, self._drop_every = path, drop_every
        self._socket: socket.socket | None = None
        self._count = 0

    def ask(self, request: Request, *, patience: float = _PATIENCE) -> Answer:
        """Send a request and return the answer; a request that is larger than a message is sent in parts.

        Args:
            request: The request.
            patience: Time limit for an answer to each part [s].

        Raises:
            HeadUnreachableError: No answer arrived in time; the head may have processed the request nevertheless.
            InputError: The request is too large.
        """
        answer: Answer = Done()
        for line in lines_of(request):
            answer = self._answer(line, patience)
            if not isinstance(answer, Done):
                break
        self._count += 1
        if self._drop_every and self._count % self._drop_every == 0:
            self.close()
            raise HeadUnreachableError("dropped")
        return answer

    def _answer(self, line: bytes, patience: float) -> Answer:
        try:
            return answer_of(self.exchange(line, patience=patience))
        except ValueError as error:
            self.close()
            raise HeadUnreachableError(f"the answer is not from a head: {error}") from None

    def exchange(self, line: bytes, *, patience: float = _PATIENCE) -> bytes:
        """Send an encoded request and return the encoded answer; raises :class:`HeadUnreachableError`."""
        try:
            return self._exchange(line, time.monotonic() + patience)
        except OSError as error:
            self.close()
            raise HeadUnreachableError(str(error)) from None

    def another(self) -> HeadClient:
        """Return a client with its own connection, for another thread."""
        return HeadClient(self._path)

    def close(self) -> None:
        """Close the connection."""
        if self._socket:
            self._socket.close()
            self._socket = None

    def _exchange(self, line: bytes, deadline: float) -> bytes:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(2.0)
            self._socket.connect(str(self._path))
        self._socket.settimeout(max(0.1, deadline - time.monotonic()))
        self._socket.sendall(line + b"\n")
        received = bytearray()
        while not received.endswith(b"\n"):
            if (left := deadline - time.monotonic()) <= 0:
                raise TimeoutError("no whole answer in time")
            self._socket.settimeout(left)
            if not (data := self._socket.recv(1 << 16)):
                raise ConnectionResetError("closed by the head")
            received += data
            if len(received) > MOST_BYTES + 1:
                raise ConnectionResetError(f"an answer of more than {MOST_BYTES} bytes")
        return bytes(received[:-1])
