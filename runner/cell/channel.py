"""Small JSON messages, with descriptors, between two processes: each is one datagram, whole or not at all."""

from __future__ import annotations

import array
import os
import select
import socket
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

from pydantic_core import from_json
from pydantic_core import to_json as json_bytes

Received: TypeAlias = tuple[dict[str, Any], list[int]]
"""A message and the descriptors that came with it; they are the receiver's to close."""

LONGEST = 128 << 10
"""[bytes] of a message's JSON; what any Linux lets through with its default limits."""
MOST_DESCRIPTORS = 8

# Plain numbers, for the enum's arithmetic takes longer than the call; some are of Linux alone.
_AT_ONCE, _NO_SIGNAL, _CLOSED_ON_EXEC, _CUT, _CUT_BESIDE = (
    int(getattr(socket, f"MSG_{name}", 0)) for name in ("DONTWAIT", "NOSIGNAL", "CMSG_CLOEXEC", "TRUNC", "CTRUNC")
)
_BUFFER = 1 << 20
"""[bytes] asked for in each direction; the kernel gives what it allows."""


class ChannelError(ValueError):
    """A message that cannot be sent, or one that no :class:`Channel` sent."""


class Channel:
    """One end of a pair of connected sockets.

    A worker sends and receives and waits where it must. The supervisor must never wait: it uses :meth:`post`,
    :meth:`flush` and :meth:`receive_now`. Sending is atomic, so that several threads may send; one may receive.
    """

    def __init__(self, end: socket.socket) -> None:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
        self._socket = end
        self._outgoing: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._buffer = memoryview(bytearray(LONGEST))
        self._ancillary_bytes = socket.CMSG_SPACE(MOST_DESCRIPTORS * 4)
        self.closed_by_peer = False
        """The other side is gone, and everything it sent was received."""

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send a message; waits while the other side is slow to receive.

        Args:
            message: Plain JSON values and dataclasses, at most :data:`LONGEST` bytes as JSON; a path arrives as text.
            fds: Descriptors that the other side gets copies of, at most :data:`MOST_DESCRIPTORS`.

        Raises:
            ChannelError: It is too long, or no JSON.
            BrokenPipeError: The other side is gone.
        """
        self._transmit(_encode(message, fds), tuple(fds), flags=0)

    def post(self, message: dict[str, Any], fds: Sequence[int] = ()) -> bool:
        """Send a message when the other side has room for it; never waits.

        Descriptors stay open here until it is sent. What is posted to a side that is gone is dropped.

        Returns:
            Whether all that was posted is sent; if not, call :meth:`flush` when the channel is writable.

        Raises:
            ChannelError: As :meth:`send`.
        """
        self._outgoing.append((_encode(message, fds), tuple(fds)))
        return self.flush()

    def flush(self) -> bool:
        """Send what was posted as far as there is room; returns whether nothing is left."""
        while self._outgoing:
            try:
                self._transmit(*self._outgoing[0], flags=_AT_ONCE)
            except BlockingIOError:
                return False
            except BrokenPipeError:
                self._outgoing.clear()
                return True
            self._outgoing.popleft()
        return True

    def receive(self) -> Received | None:
        """The next message, waited for; ``None`` once the other side is gone and all it sent was received.

        Raises:
            ChannelError: It is no message of a :class:`Channel`.
        """
        return self._take(flags=0)

    def receive_now(self) -> Received | None:
        """The next message if one is here, without waiting; see :attr:`closed_by_peer` when there is none.

        Raises:
            ChannelError: As :meth:`receive`.
        """
        try:
            return self._take(flags=_AT_ONCE)
        except BlockingIOError:
            return None

    def poll(self, timeout: float | None = 0.0) -> bool:
        """Wait until something is here or the other side is gone, at most ``timeout`` [s]; ``None`` waits for ever."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1e3))

    def fileno(self) -> int:
        """Its descriptor, for ``epoll``."""
        return self._socket.fileno()

    def close(self) -> None:
        """Hang up; a second time does nothing."""
        self._socket.close()

    def _transmit(self, content: bytes, fds: tuple[int, ...], *, flags: int) -> None:
        flags |= _NO_SIGNAL
        try:
            if fds:
                self._socket.sendmsg([content], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))], flags)
            else:
                self._socket.send(content, flags)
        except ConnectionError:
            raise BrokenPipeError("the other side of the channel is gone") from None

    def _take(self, *, flags: int) -> Received | None:
        flags |= _CLOSED_ON_EXEC
        try:
            size, ancillary, got, _ = self._socket.recvmsg_into([self._buffer], self._ancillary_bytes, flags)
        except ConnectionResetError:
            # The other side left without reading everything. The kernel says so once, before what it had sent.
            return self._take(flags=flags)
        fds = _descriptors(ancillary)
        if not size:
            self.closed_by_peer = True
            return None
        try:
            return _decode(self._buffer[:size], whole=not got & (_CUT | _CUT_BESIDE)), fds
        except ChannelError:
            for fd in fds:
                os.close(fd)
            raise


def pair() -> tuple[Channel, Channel]:
    """Two connected ends, for two processes."""
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(first), Channel(second)


def _encode(message: dict[str, Any], fds: Sequence[int]) -> bytes:
    try:
        content = json_bytes(message)
    except (ValueError, RecursionError) as error:
        raise ChannelError(f"a message of other than plain values: {error}") from None
    if len(content) > LONGEST:
        raise ChannelError(f"a message of {len(content)} bytes, at most {LONGEST} can be sent")
    if len(fds) > MOST_DESCRIPTORS:
        raise ChannelError(f"a message with {len(fds)} descriptors, at most {MOST_DESCRIPTORS} can be sent")
    return content


def _decode(content: memoryview, *, whole: bool) -> dict[str, Any]:
    if not whole:
        raise ChannelError(f"a message of more than {LONGEST} bytes or {MOST_DESCRIPTORS} descriptors")
    try:
        message = from_json(bytes(content), cache_strings="keys")
    except ValueError as error:
        raise ChannelError(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise ChannelError(f"not a message: a {type(message).__name__}")
    return message


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return list(fds)
