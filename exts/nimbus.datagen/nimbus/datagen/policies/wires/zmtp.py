"""Requests over ZeroMQ's protocol ZMTP 3.0 (https://rfc.zeromq.org/spec/23) on a plain socket.

ZeroMQ's own library reads a connection all the time, in a thread of its own, and keeps every part of a message until
the last one, so a server could fill the memory between two calls. This client reads inside of calls only, and counts.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.files.trusted_servers import dial
from nimbus.datagen.policies.policy import PolicyFault
from nimbus.datagen.policies.wires.codec import LARGEST

_MORE, _LONG, _COMMAND = 1, 2, 4
"""Flags of a frame: another one of the message follows, a size of eight bytes, a command."""
_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_ANSWERING = {b"REP", b"ROUTER"}
"""Types of sockets that answer requests."""
_TEXTS = 4096
"""Longest command [bytes]; READY has about a hundred."""
_MOST_COMMANDS = 1000
"""Number of commands that are skipped while an answer is expected."""
_BLOCK = 1 << 20
_NAME, _READY, _PING, _PONG = b"\x0bSocket-Type", b"\x05READY", b"\x04PING", b"\x04PONG"
_FOREIGN = "the server closed the connection, or does not use ZeroMQ"


class Requests:
    """Connection that sends one request at a time, and reads its answer.

    Args:
        address: ``tcp://HOST:PORT``.
        seconds: Time limit for the connection and the greeting [s].

    Raises:
        PolicyFault: There is no server, or it does not use ZeroMQ.
    """

    def __init__(self, address: str, *, seconds: float) -> None:
        place = urlsplit(address)
        self._seconds, self._end = seconds, time.monotonic() + seconds
        try:
            self._socket = dial(place.hostname or "", place.port or 0, seconds=seconds)
        except TimeoutError:
            raise PolicyFault(Reason.POLICY_TIMEOUT, f"no answer in {seconds:.0f} s") from None
        except OSError as error:
            what = (error.strerror or str(error)).lower()
            raise PolicyFault(Reason.POLICY_ERROR, f"no server: {what}") from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._speaking():
                self._greet()
        except BaseException:
            self.close()
            raise

    def call(self, request: bytes, *, seconds: float) -> bytes:
        """Send a request, and return the answer.

        Args:
            request: Content of the request.
            seconds: Time limit for both [s].

        Raises:
            PolicyFault: The server does not answer in time, closes the connection, or sends no answer of a single part.
        """
        self._seconds, self._end = seconds, time.monotonic() + seconds
        with self._speaking():
            self._send(b"\1\0" + b"\2" + len(request).to_bytes(8, "big"), request)
            if self._message_part() != (_MORE, b""):
                raise PolicyFault(Reason.POLICY_ERROR, "the server sent no answer to a request")
            flags, answer = self._message_part()
            if flags & _MORE:
                raise PolicyFault(Reason.POLICY_ERROR, "the server sent an answer of several parts")
            return answer

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _greet(self) -> None:
        """Exchange greetings and the types of the sockets."""
        self._send(_GREETING)
        found = self._read(10)
        if found[0] != _GREETING[0] or not found[9] & 1:
            raise PolicyFault(Reason.POLICY_ERROR, _FOREIGN)
        version, *_ = found = self._read(54)
        if version < _GREETING[10] or found[2:22].rstrip(b"\0") != b"NULL":
            what = "the server's ZeroMQ is older than 4.0, or wants a password"
            raise PolicyFault(Reason.POLICY_ERROR, what)
        self._command(_READY + _NAME + b"\0\0\0\3REQ")
        flags, command = self._frame()
        rest = command.partition(_NAME)[2]
        kind = rest[4 : 4 + int.from_bytes(rest[:4], "big")]
        if not flags & _COMMAND or not command.startswith(_READY) or kind not in _ANSWERING:
            raise PolicyFault(Reason.POLICY_ERROR, "the server's ZeroMQ socket does not answer requests")

    def _message_part(self) -> tuple[int, bytes]:
        """Return flags and content of the next part of a message; answer commands before it."""
        for _ in range(_MOST_COMMANDS):
            flags, content = self._frame()
            if not flags & _COMMAND:
                return flags, content
            if content.startswith(_PING):
                self._command(_PONG + content[len(_PING) + 2 :][:16])  # after two bytes with the time to live
        raise PolicyFault(Reason.POLICY_ERROR, f"the server sent {_MOST_COMMANDS} commands instead of an answer")

    def _frame(self) -> tuple[int, bytes]:
        flags = self._read(1)[0]
        if flags > _MORE | _LONG | _COMMAND:
            raise PolicyFault(Reason.POLICY_ERROR, _FOREIGN)
        size = int.from_bytes(self._read(8 if flags & _LONG else 1), "big")
        if size > (most := _TEXTS if flags & _COMMAND else LARGEST):
            what = f"the server sent a frame of more than {most >> 20} MiB" if most == LARGEST else _FOREIGN
            raise PolicyFault(Reason.POLICY_ERROR, what)
        return flags & (_MORE | _COMMAND), self._read(size)

    def _command(self, content: bytes) -> None:
        self._send(bytes([_COMMAND, len(content)]) + content)

    def _send(self, *parts: bytes) -> None:
        for part in parts:
            left = memoryview(part)
            while left:
                self._wait_at_most()
                left = left[self._socket.send(left[:_BLOCK]) :]

    def _read(self, count: int) -> bytes:
        """Read a number of bytes; memory is taken as they arrive, not as they are declared."""
        found = bytearray()
        while len(found) < count:
            self._wait_at_most()
            if not (block := self._socket.recv(min(_BLOCK, count - len(found)))):
                raise PolicyFault(Reason.POLICY_ERROR, _FOREIGN)
            found += block
        return bytes(found)

    def _wait_at_most(self) -> None:
        """Limit the next call of the socket to what is left of the time."""
        if (left := self._end - time.monotonic()) <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Convert errors of the socket to faults."""
        try:
            yield
        except TimeoutError:
            raise PolicyFault(Reason.POLICY_TIMEOUT, f"no answer in {self._seconds:.0f} s") from None
        except OSError:
            raise PolicyFault(Reason.POLICY_ERROR, _FOREIGN) from None
