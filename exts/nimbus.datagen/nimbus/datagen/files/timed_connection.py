"""Connections to foreign servers: HTTP with one time limit for an exchange, however slowly the bytes arrive."""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import ssl
import time
from functools import cache
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.trusted_servers import MOST_ADDRESSES, dial, literal_host


class SteadyAddresses:
    """Addresses of the hosts of several connections: a public name stays public, and another keeps its first address.

    Otherwise the owner of a name could, after an answer that names a path, let it lead to a server that only this
    machine reaches.
    """

    def __init__(self) -> None:
        self._first: dict[str, frozenset[str]] = {}

    def find(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, in the order in which they are tried.

        Raises:
            OSError: The name has none.
            InputError: The name has other addresses than before, or no public one any more.
        """
        found = socket.getaddrinfo(literal_host(host), port, type=socket.SOCK_STREAM)[:MOST_ADDRESSES]
        places = list(dict.fromkeys(str(place[0]) for *_, place in found))
        first = self._first.setdefault(host, frozenset(places))
        is_public = any(map(_is_public, first))
        if kept := [place for place in places if (_is_public(place) if is_public else place in first)]:
            return kept
        what, instead = f"the name leads to another address now, {places[0]}", "run the same command again"
        raise InputError(what, where=host, instead=instead)

    def keep(self, host: str, place: str) -> None:
        """Note an address that has answered."""
        if not _is_public(place):
            self._first[host] = frozenset([place])


def _is_public(place: str) -> bool:
    address = ipaddress.ip_address(place.partition("%")[0])
    return ((isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address).is_global


class TimedConnection(http.client.HTTPConnection):
    """Connection to one server. Call :meth:`limit` before each exchange.

    A timeout of a socket applies to each read, so a server that sends single bytes would never reach it.

    Args:
        host: Name or address of the server.
        port: Its port.
        is_encrypted: True for TLS, with a verified certificate.
        quiet: Longest time without a byte [s].
        has_secret: True if a token or key will be sent; that of a proxy is sent in any case.
        proxy: Host, port and ``Proxy-Authorization`` of a proxy; None for none.
        addresses: Addresses of this host in earlier connections.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        is_encrypted: bool,
        quiet: float,
        has_secret: bool = False,
        proxy: tuple[str, int, str] | None = None,
        addresses: SteadyAddresses | None = None,
    ) -> None:
        self.default_port = http.client.HTTPS_PORT if is_encrypted else http.client.HTTP_PORT
        super().__init__(host, port)
        self._is_encrypted, self._quiet, self._proxy = is_encrypted, quiet, proxy
        # With a proxy, a secret that is not encrypted goes to the proxy.
        self._only_trusted = (has_secret and not is_encrypted) or bool(proxy and proxy[2])
        self._addresses = SteadyAddresses() if proxy or addresses is None else addresses
        self._end = 0.0

    def limit(self, end: float) -> None:
        """Set the time of the monotonic clock by which all following calls must end [s]."""
        self._end = end

    def connect(self) -> None:
        """Connect, including TLS and the way through a proxy.

        Raises:
            OSError: The server cannot be reached in time, or its certificate is not valid.
            InputError: A secret would go to a server of another user of this machine.
        """
        host, port, word = self._proxy or (self.host, self.port, "")
        self.sock = _PatientSocket(self._dial(host, port), self)  # pyright: ignore[reportAttributeAccessIssue]
        if not self._is_encrypted:
            return
        try:
            if self._proxy:
                self._pass_proxy(word)
            plain = self.sock.socket  # pyright: ignore[reportAttributeAccessIssue]
            plain.settimeout(self.patience())
            secured = _context().wrap_socket(plain, server_hostname=self.host)
            self.sock = _PatientSocket(secured, self)  # pyright: ignore[reportAttributeAccessIssue]
        except BaseException:
            self.close()
            raise

    def patience(self) -> float:
        """Return the time for the next call of the socket [s].

        Raises:
            TimeoutError: The time is over.
        """
        if (left := self._end - time.monotonic()) <= 0:
            raise TimeoutError("the time is over")
        return min(left, self._quiet)

    def _dial(self, host: str, port: int) -> socket.socket:
        failure: OSError = OSError("the name has no address")
        for place in self._addresses.find(host, port):
            try:
                dialed = dial(place, port, seconds=self.patience(), only_trusted=self._only_trusted)
            except OSError as error:
                failure = error
                continue
            self._addresses.keep(host, place)
            dialed.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return dialed
        raise failure

    def _pass_proxy(self, word: str) -> None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        lines = [f"CONNECT {host}:{self.port} HTTP/1.1", f"Host: {host}:{self.port}"]
        lines += [f"Proxy-Authorization: {word}"] if word else []
        self.sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        answer = http.client.HTTPResponse(self.sock, method="CONNECT")
        answer.begin()
        if answer.status != http.client.OK:
            raise ConnectionError(f"the proxy answers {answer.status}")


class _PatientSocket:
    """Socket of a connection, whose calls last no longer than the connection's exchange."""

    def __init__(self, wrapped: socket.socket, connection: TimedConnection) -> None:
        self.socket, self._connection = wrapped, connection

    def sendall(self, data: bytes) -> None:
        """Send bytes, each part of them in time; an encrypted socket would apply a timeout to each of its records."""
        left = memoryview(data)
        while left:
            self.socket.settimeout(self._connection.patience())
            left = left[self.socket.send(left) :]

    def makefile(self, _mode: str = "rb") -> io.BufferedReader:
        """Return a file with the bytes that arrive."""
        return io.BufferedReader(_PatientReader(self.socket, self._connection))

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


class _PatientReader(io.RawIOBase):
    def __init__(self, wrapped: socket.socket, connection: TimedConnection) -> None:
        self._socket, self._connection = wrapped, connection
        self._bytes = wrapped.makefile("rb", buffering=0)  # keeps the socket open after the connection's own close

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(self._connection.patience())
        return self._bytes.readinto(buffer)

    def close(self) -> None:
        self._bytes.close()
        super().close()


@cache
def _context() -> ssl.SSLContext:
    """Load the certificates of this machine, once per process."""
    return ssl.create_default_context()
