"""What a worker says: at once, or, while it carries out several short orders, all that they led to together."""

from __future__ import annotations

import threading
import time

from msgspec import Raw

from nimbus.runner.cell.transport.channel import LONGEST, Channel
from nimbus.runner.cell.transport.messages import Message, pack, to_bytes

_OLD = 0.1
"""[s] that something is kept at most, as long as the worker says that it makes progress."""
_HEADER = 5
"""[bytes] of a datagram beside its messages, at most."""


class ResultBatch:
    """Sends messages to the supervisor; several threads may use it.

    Args:
        channel: To the supervisor.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel, self._lock = channel, threading.Lock()
        self._kept: list[Raw] = []
        self._since = 0.0
        """When the first of them was kept [s monotonic]."""
        self._keeps_results = False

    def hold_results(self) -> None:
        """Keep results, too, until something is said."""
        with self._lock:
            self._keeps_results = True

    def keep(self, message: Message) -> None:
        """Tell of something with what is said next."""
        with self._lock:
            self._keep(message)

    def result(self, message: Message) -> None:
        """Tell of a result, at once unless results are kept."""
        with self._lock:
            self._keep(message)
            if not self._keeps_results:
                self._send()

    def say(self, message: Message) -> None:
        """Send a message, with all that was kept before it; waits while the supervisor is slow."""
        with self._lock:
            self._keeps_results = False
            self._keep(message)
            self._send()

    def send_old(self) -> None:
        """Send what has been kept for long: an order may turn out not to be a short one."""
        with self._lock:
            if self._kept and time.monotonic() > self._since + _OLD:
                self._send()

    def _keep(self, message: Message) -> None:
        if not self._kept:
            self._since = time.monotonic()
        self._kept.append(pack(message))

    def _send(self) -> None:
        """Send what is kept, in as few datagrams as hold it."""
        kept, self._kept = self._kept, []
        group, size = list[Raw](), _HEADER
        for message in kept:
            if group and size + len(message) > LONGEST:
                self._channel.send(to_bytes(*group))
                group, size = [], _HEADER
            group.append(message)
            size += len(message)
        self._channel.send(to_bytes(*group))
