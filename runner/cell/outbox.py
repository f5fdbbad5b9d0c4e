"""What a worker says: at once, or, while it carries out several short orders, all that they led to together."""

from __future__ import annotations

import threading
from typing import Any

from nimbus.runner.cell.channel import LONGEST, Channel
from nimbus.runner.cell.messages import to_bytes


class Outbox:
    """Sends messages to the supervisor; several threads may use it.

    Args:
        channel: To the supervisor.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel, self._lock = channel, threading.Lock()
        self._kept: list[bytes] = []
        self._keeps = False

    def keep_results(self) -> None:
        """Keep results until the next :meth:`say`."""
        self._keeps = True

    def result(self, message: Any) -> None:
        """Tell of a result, now or with what is said next."""
        with self._lock:
            self._kept.append(to_bytes(message))
            if not self._keeps:
                self._send()

    def say(self, message: Any) -> None:
        """Send a message, with all results that were kept before it; waits while the supervisor is slow."""
        with self._lock:
            self._keeps = False
            self._kept.append(to_bytes(message))
            self._send()

    def _send(self) -> None:
        """Send what is kept, in as few datagrams as hold it."""
        together, *others = self._kept
        self._kept = []
        for content in others:
            if len(together) + 1 + len(content) > LONGEST:
                self._channel.send(together)
                together = content
            else:
                together += b"\n" + content
        self._channel.send(together)
