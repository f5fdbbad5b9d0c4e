"""Server of this node's cache for other nodes; it serves only blocks of the datasets that it is started with."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import parse_qs, unquote, urlsplit

from nimbus.datagen.errors import InputError
from nimbus.datagen.local_server import LocalHandler, LocalServer, is_loopback
from nimbus.datagen.store.remote.block_peers import TOKEN
from nimbus.datagen.store.remote.blocks import BLOCK, ObjectBlocks
from nimbus.datagen.store.remote.objects import MissingObjectError
from nimbus.datagen.store.remote.sealed_messages import ForeignMessageError, seal_of

_MOST_NUMBER = 1 << 40
"""Largest accepted block number; its block is at 10¹⁸ bytes."""


class BlockServer(LocalServer):
    """Server of blocks for requests with its token; a missing block is fetched from the store once and cached.

    Args:
        host: Address to listen on.
        port: Port; 0 for any.
        addresses: Datasets.
        token: Token that seals requests and answers. The server reads the store with this user's keys, even for other
            users of the machine.

    Raises:
        InputError: There is no token, or the port is taken.
    """

    def __init__(self, host: str, port: int, addresses: Iterable[str], *, token: str) -> None:
        if not token:
            what = "other users and machines could read the store without a token"
            raise InputError(what, where=f"--serve {host}:{port}", instead=f"give all nodes the same {TOKEN}")
        self.addresses, self.seal, self.any_host = frozenset(addresses), seal_of(token), not is_loopback(host)
        try:
            super().__init__((host, port), _BlockHandler)
        except OSError as error:
            instead = "give another HOST:PORT"
            raise InputError(str(error.strerror or error), where=f"--serve {host}:{port}", instead=instead) from None

    @property
    def url(self) -> str:
        """Address for ``NIMBUS_CACHE_PEERS``."""
        host, port = self.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"


class _BlockHandler(LocalHandler):
    protocol_version = "HTTP/1.1"
    server: BlockServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        """Answer a request whose path is the sealed ``/ADDRESS/NAME/NUMBER?needed=BYTES`` in base 64."""
        try:
            request = base64.b64decode(self.path[1:], altchars=b"-_", validate=True)
            path = self.server.seal.decrypt(request)
        except (binascii.Error, ForeignMessageError, ValueError):
            self._answer(HTTPStatus.UNAUTHORIZED)
            return
        try:
            address, name, number, needed = _parse(path.decode())
        except (ValueError, KeyError):
            self._answer(HTTPStatus.BAD_REQUEST)
            return
        if address not in self.server.addresses:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        try:
            block = ObjectBlocks(address, name, asks_peers=False).read(number, number * BLOCK + needed)
        except MissingObjectError:
            self._answer(HTTPStatus.NOT_FOUND)
        except InputError:
            self._answer(HTTPStatus.BAD_GATEWAY)
        else:
            self._answer(HTTPStatus.OK, self.server.seal.encrypt(block, context=request))

    def _answer(self, status: HTTPStatus, content: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _parse(path: str) -> tuple[str, str, int, int]:
    parts = urlsplit(path)
    _, address, name, number = parts.path.split("/")
    block, needed = int(number), int(parse_qs(parts.query)["needed"][0])
    if not (0 <= block <= _MOST_NUMBER and 0 < needed <= BLOCK):
        raise ValueError("no block")
    plain = unquote(name)
    if not plain or any(part in ("", ".", "..") for part in plain.split("/")) or "\0" in plain or "\\" in plain:
        raise ValueError("no name")
    return unquote(address), plain, block, needed
