"""Outgoing messages of a worker: sent at once, or collected while it carries out several short orders."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Raw
from msgspec.structs import replace

from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.info import DatasetInfo, merge
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.transport.channel import LONGEST, Channel
from nimbus.runner.cell.transport.messages import EpisodeWritten, Message, Recorded, pack, to_bytes

_OLD = 0.1
"""Longest time a message is held, as long as the worker makes progress [s]."""
_HEADER = 5
"""Upper bound of a datagram's overhead [bytes]: the header of a MessagePack list."""


class ResultBatch:
    """Sends messages to the supervisor; several threads may use it.

    Args:
        channel: Channel to the supervisor.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel, self._lock = channel, threading.Lock()
        self._kept: list[Raw] = []
        self._since = 0.0
        """Time at which the oldest message was held [s monotonic]."""
        self._keeps_results = False

    def hold_results(self) -> None:
        """Hold results as well, until the next :meth:`send`."""
        with self._lock:
            self._keeps_results = True

    def keep(self, message: Message) -> None:
        """Hold a message until the next one is sent."""
        with self._lock:
            self._keep(message)

    def result(self, message: Message) -> None:
        """Send a result, unless results are held."""
        with self._lock:
            self._keep(message)
            if not self._keeps_results:
                self._send()

    def send(self, message: Message) -> None:
        """Send a message together with all that are held; blocks while the supervisor is slow."""
        with self._lock:
            self._keeps_results = False
            self._keep(message)
            self._send()

    def send_old(self) -> None:
        """Send messages held for too long, in case an order proves not to be short."""
        with self._lock:
            if self._kept and time.monotonic() > self._since + _OLD:
                self._send()

    def _keep(self, message: Message) -> None:
        if not self._kept:
            self._since = time.monotonic()
        # Encoded when it is held, not when it is sent: the size decides which datagram it travels in.
        self._kept += _parts(message) if isinstance(message, Recorded) else [pack(message)]

    def _send(self) -> None:
        """Send the held messages in as few datagrams as possible."""
        kept, self._kept = self._kept, []
        group, size = list[Raw](), _HEADER
        for message in kept:
            if group and size + len(message) > LONGEST:
                self._channel.send(to_bytes(*group))
                group, size = [], _HEADER
            group.append(message)
            size += len(message)
        self._channel.send(to_bytes(*group))


def _parts(message: Recorded) -> list[Raw]:
    """Encode failed attempts, one row for each variant, in as many messages as their length requires."""
    packed, rows = pack(message), message.attempts
    if len(packed) <= LONGEST - _HEADER or len(rows) < 2:
        return [packed]
    half = len(rows) // 2
    return [part for group in (rows[:half], rows[half:]) for part in _parts(replace(message, attempts=group))]


class RemoteSink:
    """:class:`nimbus.datagen.store.episode_sink.EpisodeSink` in another process than the dataset.

    Args:
        folder: The dataset's folder.
        batch: Messages to the supervisor; the I/O thread may commit.
    """

    def __init__(self, folder: Path, batch: ResultBatch) -> None:
        self.folder = folder
        self.stage = folder / "stage"
        self.info = DatasetInfo(task="", task_hash="", seed=0)  # the supervisor knows the names
        self._batch = batch
        self._lease = 0

    def begin(self, lease: int) -> None:
        """Attribute all episodes begun from now on to a lease."""
        self._lease = lease

    def lease_of(self, index: int, variant: int = 0) -> int:
        """Return the lease of the episode that is begun now."""
        return self._lease

    def record(self, attempts: Sequence[Attempt]) -> None:
        """Report failed attempts at one episode."""
        self._batch.result(Recorded(index=attempts[0].idx, lease=self._lease, attempts=tuple(attempts)))

    def commit(self, staged: Sequence[StagedEpisode]) -> list[Attempt]:
        """Report episodes with complete files; the supervisor decides whether they are accepted."""
        for item in staged:
            news = None
            # Sent only when it adds something: most episodes describe the same dataset.
            if item.learned and (known := merge(self.info, item.learned)) != self.info:
                news = self.info = known
            path = item.path.relative_to(self.folder).as_posix()
            written = EpisodeWritten(
                index=item.attempt.idx, lease=item.lease, attempt=item.attempt, path=path, learned=news
            )
            self._batch.result(written)
        return [item.attempt for item in staged]
