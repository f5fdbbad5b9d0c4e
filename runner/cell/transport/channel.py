"""Small messages, with descriptors, between two processes: each is one datagram, whole or not at all."""

from __future__ import annotations

import array
import os
import select
import socket
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

Received: TypeAlias = tuple[bytes, list[int]]
"""A message and the descriptors that came with it; they are the receiver's to close."""

LONGEST = 128 << 10
"""[bytes] of a message; what any Linux lets through with its default limits."""
MOST_DESCRIPTORS = 8

# Plain numbers, for the enum's arithmetic takes longer than the call; some are of Linux alone.
_AT_ONCE, _NO_SIGNAL, _CLOSED_ON_EXEC, _CUT, _CUT_BESIDE = (
    int(getattr(socket, f"MSG_{name}", 0)) for name in ("DONTWAIT", "NOSIGNAL", "CMSG_CLOEXEC", "TRUNC", "CTRUNC")
)
_TOO_LARGE = f"a message of more than {LONGEST} bytes or {MOST_DESCRIPTORS} descriptors"
_BUFFER = 1 << 20
"""[bytes] asked for in each direction; the kernel gives what it allows."""


class ChannelError(ValueError):
    """A message that is empty or too long, or comes with too many descriptors."""


class Channel:
    """One end of a pair of connected sockets.

    A worker sends and receives and waits where it must. The supervisor must never wait: it uses :meth:`post`,
    :meth:`flush` and :meth:`receive_now`. Sending is atomic, so that several threads may send; one may receive.
    """

    def __init__(self, end: socket.socket) -> None:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
        self._socket = end
        self._outgoing: deque[bytes] = deque()
        self._buffer = memoryview(bytearray(LONGEST))
        self._ancillary_bytes = socket.CMSG_SPACE(MOST_DESCRIPTORS * 4)
        self.closed_by_peer = False
        """The other side is gone, and everything it sent was received."""

    def send(self, message: bytes, fds: Sequence[int] = ()) -> None:
        """Send a message; waits while the other side is slow to receive.

        Args:
            message: Not empty, at most :data:`LONGEST` bytes.
            fds: Descriptors that the other side gets copies of, at most :data:`MOST_DESCRIPTORS`.

        Raises:
            ChannelError: It is too long, or empty.
            BrokenPipeError: The other side is gone.
        """
        _check(message, fds)
        self._transmit(message, fds, flags=0)

    def post(self, message: bytes) -> bool:
        """Send a message when the other side has room for it; never waits.

        What is posted to a side that is gone is dropped.

        Returns:
            Whether all that was posted is sent; if not, call :meth:`flush` when the channel is writable.

        Raises:
            ChannelError: As :meth:`send`.
        """
        _check(message)
        self._outgoing.append(message)
        return self.flush()

    def flush(self) -> bool:
        """Send what was posted as far as there is room; returns whether nothing is left."""
        while self._outgoing:
            try:
                self._transmit(self._outgoing[0], flags=_AT_ONCE)
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
            ChannelError: It is too long, or brings too many descriptors.
        """
        try:
            size, ancillary, got, _ = self._socket.recvmsg_into([self._buffer], self._ancillary_bytes, _CLOSED_ON_EXEC)
        except ConnectionResetError:
            # The other side left without reading everything. The kernel says so once, before what it had sent.
            return self.receive()
        fds = _descriptors(ancillary)
        if got & (_CUT | _CUT_BESIDE):
            for fd in fds:
                os.close(fd)
            raise ChannelError(_TOO_LARGE)
        content = self._content(size)
        return None if content is None else (content, fds)

    def receive_now(self) -> bytes | None:
        """The next message if one is here, without waiting; see :attr:`closed_by_peer` when there is none.

        Descriptors that come with it are dropped.

        Raises:
            ChannelError: As :meth:`receive`.
        """
        try:
            size = self._socket.recv_into(self._buffer, 0, _AT_ONCE | _CUT)  # its size, also when it is cut
        except BlockingIOError:
            return None
        except ConnectionResetError:
            return self.receive_now()
        if size > LONGEST:
            raise ChannelError(_TOO_LARGE)
        return self._content(size)

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

    def _content(self, size: int) -> bytes | None:
        self.closed_by_peer = not size
        return bytes(self._buffer[:size]) if size else None

    def _transmit(self, content: bytes, fds: Sequence[int] = (), *, flags: int) -> None:
        flags |= _NO_SIGNAL
        try:
            if fds:
                self._socket.sendmsg([content], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))], flags)
            else:
                self._socket.send(content, flags)
        except ConnectionError:
            raise BrokenPipeError("the other side of the channel is gone") from None


def pair() -> tuple[Channel, Channel]:
    """Two connected ends, for two processes."""
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(first), Channel(second)


def _check(message: bytes, fds: Sequence[int] = ()) -> None:
    if not 0 < len(message) <= LONGEST:
        raise ChannelError(f"a message of {len(message)} bytes, 1 to {LONGEST} can be sent")
    if len(fds) > MOST_DESCRIPTORS:
        raise ChannelError(f"a message with {len(fds)} descriptors, at most {MOST_DESCRIPTORS} can be sent")


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return list(fds)
