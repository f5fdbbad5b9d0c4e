"""Cache shared by several nodes: hashing assigns each block to nodes; a block that they lack is read from the store."""

from __future__ import annotations

import base64
import hashlib
import http.client
import logging
import os
import threading
import time
from contextlib import suppress
from functools import cache
from urllib.parse import quote, urlsplit

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.server_tokens import given_token
from nimbus.datagen.files.timed_connection import TimedConnection
from nimbus.datagen.store.remote.sealed_messages import ForeignMessageError, seal_of

_log = logging.getLogger("nimbus.store")
PEERS = "NIMBUS_CACHE_PEERS"
"""Environment variable with the cache servers of all nodes, ``http://node1:7070,http://node2:7070``."""
TOKEN = "NIMBUS_CACHE_TOKEN"
"""Environment variable with the token that the caches of all nodes share; it encrypts their messages."""
_TRIED = 2
"""Number of nodes that are queried for a block before the store; the second one replaces a lost node."""
_TIMEOUT = 5.0
"""Time without a byte after which a node counts as lost [s]; it is long enough for the node to fetch the block
itself."""
_WHOLE = 15.0
"""Time for a whole answer, after which a node counts as lost [s]."""
_MOST_BYTES = 2 << 20
"""Longest accepted answer; blocks are shorter [bytes]."""
_LOST_FOR = 30.0
"""Time for which a lost node is not queried again [s]."""


class CachePeers:
    """Nodes whose caches hold the blocks of datasets in stores.

    Args:
        urls: URLs of their servers; every process has the same set, in any order.
        token: Token that they share.
    """

    def __init__(self, urls: tuple[str, ...], token: str = "") -> None:
        self._urls, self._token = urls, token
        self._lost: dict[str, float] = {}
        self._refused: set[str] = set()
        self._own = threading.local()

    @property
    def is_pool(self) -> bool:
        """True if there are nodes."""
        return bool(self._urls)

    def order(self, address: str, name: str, number: int) -> list[str]:
        """Order the nodes for a block by rendezvous hashing: when a node is removed, only its own blocks move."""
        block = f"{address}\0{name}\0{number}\0"
        return sorted(self._urls, key=lambda url: hashlib.sha256((block + url).encode()).digest(), reverse=True)

    def read(self, address: str, name: str, number: int, needed: int) -> bytes | None:
        """Read a block from its node; None if no node has it.

        Args:
            address: Address of the dataset.
            name: Name of the object.
            number: Number of the block.
            needed: Smallest size of the block [bytes].
        """
        if not self._urls:
            return None
        now = time.monotonic()
        alive = [url for url in self.order(address, name, number) if self._lost.get(url, 0.0) <= now]
        for url in alive[:_TRIED]:
            try:
                if (block := self._ask(url, address, name, number, needed)) is not None:
                    return block
            except (OSError, http.client.HTTPException):
                self._close(url)
                self._lost[url] = time.monotonic() + _LOST_FOR
        return None

    def _ask(self, url: str, address: str, name: str, number: int, needed: int) -> bytes | None:
        """Request a block from a node; None if the node does not serve the dataset, or the store has no such object."""
        path = f"/{quote(address, safe='')}/{quote(name, safe='')}/{number}?needed={needed}"
        request = seal_of(self._token).encrypt(path.encode())
        answer, sealed = self._exchange(url, f"/{base64.urlsafe_b64encode(request).decode()}")
        if answer.status == http.client.UNAUTHORIZED:
            # Another user on the port of a node that has ended can answer this too, so that reading continues.
            if url not in self._refused:
                self._refused.add(url)
                _log.warning("%s: the cache of a node refuses this token; give all nodes the same %s", url, TOKEN)
            raise ConnectionError("refused")
        if answer.status == http.client.NOT_FOUND:
            return None
        if answer.status != http.client.OK:
            raise ConnectionError(f"{answer.status}")
        try:
            block = seal_of(self._token).decrypt(sealed, context=request)
        except ForeignMessageError:
            raise ConnectionError("the answer is not of a node with this token, or was damaged in transit") from None
        if len(block) < needed:
            raise ConnectionError(f"{len(block)} bytes")
        return block

    def _exchange(self, url: str, path: str) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a request; return the answer and its content.

        A server closes connections that are idle for a minute, so a request on a kept connection is repeated once.
        """
        is_kept = url in self._connections
        connection = self._connections.setdefault(url, _connection(url))
        connection.limit(time.monotonic() + _WHOLE)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer, answer.read(_MOST_BYTES)
        except (ConnectionError, http.client.HTTPException):
            self._close(url)
            if not is_kept:
                raise
            return self._exchange(url, path)

    @property
    def _connections(self) -> dict[str, TimedConnection]:
        """Connections of this thread by node; a forked process has none, because it would read its parent's answers."""
        mine: dict[str, dict[str, TimedConnection]] = self._own.__dict__
        return mine.setdefault(str(os.getpid()), {})

    def _close(self, url: str) -> None:
        if connection := self._connections.pop(url, None):
            with suppress(OSError):
                connection.close()


def _connection(url: str) -> TimedConnection:
    parts = urlsplit(url)
    return TimedConnection(parts.hostname or "", parts.port or 80, is_encrypted=False, quiet=_TIMEOUT)


def peers() -> CachePeers:
    """Return the nodes named by the environment; an empty set if there are none.

    Raises:
        InputError: An entry is not the address of a server, or there is no token for them.
    """
    return _peers(os.environ.get(PEERS, ""), given_token(TOKEN))


def _is_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_place = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False
    return is_place and parts.scheme == "http" and not parts.path


@cache
def _peers(text: str, token: str) -> CachePeers:
    urls = tuple(url.strip().rstrip("/") for url in text.split(",") if url.strip())
    for url in urls:
        if not _is_server(url):
            raise InputError(
                f"'{url}' is not the address of a cache server", where=PEERS, instead="write http://node1:7070,…"
            )
    if urls and not token:
        raise InputError("there is no token for the caches of nodes", where=PEERS, instead=f"set {TOKEN} as they do")
    return CachePeers(urls, token)
