"""Channel of small messages and file descriptors between two processes; each message is one datagram."""

from __future__ import annotations

import array
import os
import select
import socket
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

Received: TypeAlias = tuple[bytes, list[int]]
"""A message and the descriptors that came with it, which the receiver closes."""

LONGEST = 128 << 10
"""Longest message [bytes]; it fits into the largest buffer that Linux grants by default (net.core.wmem_max)."""
MOST_DESCRIPTORS = 8

# Plain integers, because arithmetic on the enum takes longer than the call; some constants exist on Linux only.
_AT_ONCE, _NO_SIGNAL, _CLOSED_ON_EXEC, _CUT, _CUT_BESIDE = (
    int(getattr(socket, f"MSG_{name}", 0)) for name in ("DONTWAIT", "NOSIGNAL", "CMSG_CLOEXEC", "TRUNC", "CTRUNC")
)
_TOO_LARGE = f"a message of more than {LONGEST} bytes or {MOST_DESCRIPTORS} descriptors"
_BUFFER = 1 << 20
"""Requested buffer size in each direction [bytes]; the kernel grants less where limits demand it."""


class ChannelError(ValueError):
    """Raised for a message that is empty, too long, or carries too many descriptors."""


class Channel:
    """One end of a pair of connected sockets.

    A worker blocks when it sends and receives. The supervisor must never block: it uses :meth:`post`, :meth:`flush` and
    :meth:`receive_now`. Sending is atomic, so several threads may send; one may receive.
    """

    def __init__(self, end: socket.socket) -> None:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
        self._socket = end
        self._outgoing: deque[bytes] = deque()
        self._buffer = memoryview(bytearray(LONGEST))
        self._ancillary_bytes = socket.CMSG_SPACE(MOST_DESCRIPTORS * 4)
        self.closed_by_peer = False
        """True when the peer has closed its end and all of its messages were received."""

    def send(self, message: bytes, fds: Sequence[int] = ()) -> None:
        """Send a message; blocks while the peer is slow to receive.

        Args:
            message: Not empty, at most :data:`LONGEST` bytes.
            fds: Descriptors that the peer gets copies of, at most :data:`MOST_DESCRIPTORS`.

        Raises:
            ChannelError: The message is too long, or empty.
            BrokenPipeError: The peer has closed its end.
        """
        _check(message, fds)
        self._transmit(message, fds, flags=0)

    def post(self, message: bytes) -> bool:
        """Send a message without blocking; it is queued when the peer has no room for it.

        Messages to a closed peer are dropped.

        Returns:
            True when everything posted is sent; otherwise call :meth:`flush` when the channel is writable.

        Raises:
            ChannelError: As for :meth:`send`.
        """
        _check(message)
        self._outgoing.append(message)
        return self.flush()

    def flush(self) -> bool:
        """Send queued messages as far as there is room; True when none is left."""
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
        """Wait for the next message; None once the peer has closed its end and all its messages were received.

        Raises:
            ChannelError: The message is too long, or carries too many descriptors.
        """
        try:
            size, ancillary, got, _ = self._socket.recvmsg_into([self._buffer], self._ancillary_bytes, _CLOSED_ON_EXEC)
        except ConnectionResetError:
            # The peer closed without reading everything. The kernel reports that once, before the messages that it had
            # sent.
            return self.receive()
        fds = _descriptors(ancillary)
        if got & (_CUT | _CUT_BESIDE):
            for fd in fds:
                os.close(fd)
            raise ChannelError(_TOO_LARGE)
        content = self._content(size)
        return None if content is None else (content, fds)

    def receive_now(self) -> bytes | None:
        """Return the next message without blocking; None when there is none, see :attr:`closed_by_peer`.

        Its descriptors are closed.

        Raises:
            ChannelError: As for :meth:`receive`.
        """
        try:
            # returns the full size, even of a message that is cut off
            size = self._socket.recv_into(self._buffer, 0, _AT_ONCE | _CUT)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            return self.receive_now()
        if size > LONGEST:
            raise ChannelError(_TOO_LARGE)
        return self._content(size)

    def poll(self, timeout: float | None = 0.0) -> bool:
        """Wait up to ``timeout`` [s] for a message or the peer's end; ``None`` waits forever."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1e3))

    def fileno(self) -> int:
        """Return the descriptor of the socket, for ``epoll``."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; repeated calls do nothing."""
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
    """Create two connected ends, for two processes."""
    # SEQPACKET keeps message boundaries, sends each message whole or not at all, and reports the end of the peer; a
    # stream would need framing, and a datagram socket reports no end.
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(first), Channel(second)


def _check(message: bytes, fds: Sequence[int] = ()) -> None:
    if not 0 < len(message) <= LONGEST:
        raise ChannelError(f"a message of {len(message)} bytes; 1 to {LONGEST} bytes can be sent")
    if len(fds) > MOST_DESCRIPTORS:
        raise ChannelError(f"a message with {len(fds)} descriptors; at most {MOST_DESCRIPTORS} can be sent")


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return list(fds)
