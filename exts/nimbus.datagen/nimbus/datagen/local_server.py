"""Base of this project's HTTP servers; limits time, connections and request size, and serves only its own pages."""

from __future__ import annotations

import io
import ipaddress
import secrets
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_SECONDS = 60.0
"""Time limit for one request, counted from the end of the previous one, and for one answer [s]."""
_GREETING = 5.0
"""Time limit for the first request of a connection [s]."""
_MOST_CONNECTIONS = 256
"""Largest number of connections that have sent a request; each has a thread, and further ones are refused."""
_MOST_GREETING = 64
"""Largest number of additional connections without a request; a further one closes the oldest of them, because any user
of the machine can open as many."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Headers of every answer: pages run and load nothing, and other pages may not embed them."""


def fresh_name(host: str) -> str:
    """Return a name of this machine for the address to print, which no page of another server has had.

    For a browser, the origin of a page is its host and port. A page of another user, on the same port at another time,
    can leave a service worker in the browser, which then sees the addresses of all later pages of the origin, with
    their tokens. Browsers resolve all names below ``localhost`` to this machine by themselves.

    Args:
        host: Address on which the server listens; other machines would not resolve the name, so it is then empty.
    """
    return f"nimbus-{secrets.token_hex(8)}.localhost" if is_loopback(host) else ""


def why_foreign(hosts: Sequence[str], origins: Sequence[str], *, listening: str, name: str = "") -> str:
    """Return the reason to reject a request for another host or from a page of another origin; empty if accepted.

    Args:
        hosts: All values of the header ``Host``.
        origins: All values of the header ``Origin``: none for programs and opened pages.
        listening: Address on which the server listens.
        name: Name of :func:`fresh_name`.
    """
    if len(hosts) != 1 or not _is_own(hosts[0], listening, name):
        return "this host is not served here"
    if len(origins) > 1 or any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
        return "pages of other origins are not served here"
    return ""


def without_token(path: str, authorizations: Sequence[str], *, token: str) -> str | None:
    """Return the path of a request without the server's token; None if the request does not contain the token.

    The token is the first component of the path, for pages, or a ``Bearer`` or ``Api-Key``, for programs. A cookie
    would be sent to every other port of the same host, which may belong to another user of the machine.

    Args:
        path: Path of the request line, with the query.
        authorizations: All values of the header ``Authorization``.
        token: The token; an empty one matches no request.
    """
    for header in authorizations:
        scheme, _, word = header.partition(" ")
        if scheme.lower() in ("bearer", "api-key") and _are_equal(word.strip(), token):
            return path
    place, mark, query = path.partition("?")
    first, _, rest = place.removeprefix("/").partition("/")
    return f"/{rest}{mark}{query}" if _are_equal(first, token) else None


def _are_equal(word: str, token: str) -> bool:
    return bool(token) and secrets.compare_digest(word.encode(errors="replace"), token.encode())


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a host's address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _is_own(host: str, listening: str, own: str) -> bool:
    """Return True for the server's own host; if the server listens beyond loopback, also for any literal address.

    A name server can redirect a name to another machine, but not a literal address.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in ("localhost", listening.lower(), own or "localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not is_loopback(listening)


class LocalServer(ThreadingHTTPServer):
    """Server with a thread per connection, up to a limit; connections without a request do not keep others out."""

    daemon_threads = True
    request_queue_size = 128
    any_host = False
    """True for a server whose clients are programs on other machines, which know it by any name; no page asks it."""

    def __init__(self, address: tuple[str, int], handler: type[LocalHandler]) -> None:
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS + 2 * _MOST_GREETING)  # half of these are ending
        self._turn = threading.Lock()
        self._greeting: dict[socket.socket, None] = {}
        self._admitted: set[socket.socket] = set()
        self.name = fresh_name(address[0])
        """Host of the printed address; empty for a server that other machines reach."""
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a connection; close the oldest without a request if there are too many of them."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        with self._turn:
            if len(self._greeting) >= _MOST_GREETING:
                oldest = next(iter(self._greeting))
                del self._greeting[oldest]
                with suppress(OSError):  # the client has disconnected
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread then ends
            self._greeting[request] = None
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system cannot start another thread
            self._forget(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def admit(self, connection: socket.socket) -> bool:
        """Count a connection that has sent a request among those that may wait longer; False if there are too many."""
        with self._turn:
            self._greeting.pop(connection, None)
            if len(self._admitted) < _MOST_CONNECTIONS:
                self._admitted.add(connection)
            return connection in self._admitted

    def _forget(self, connection: socket.socket) -> None:
        with self._turn:
            self._greeting.pop(connection, None)
            self._admitted.discard(connection)
        self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write a traceback for a bug, and nothing for a client that has disconnected."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class LocalHandler(BaseHTTPRequestHandler):
    """Reads requests without a body, each within a time limit, and refuses foreign ones; see :func:`why_foreign`.

    An answer that refuses a request ends the connection, so that the others have shown the token.
    """

    server: LocalServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def setup(self) -> None:
        """Prepare a connection."""
        super().setup()
        self._reader = _TimedReader(self.connection)
        self.rfile = io.BufferedReader(self._reader)
        self._seconds = _GREETING

    def handle_one_request(self) -> None:
        """Read and answer one request."""
        self._reader.end = time.monotonic() + self._seconds
        super().handle_one_request()
        self._seconds = _SECONDS

    def parse_request(self) -> bool:
        """Parse a request; return False for an invalid or foreign one, which is answered here.

        A body ends the connection, because it would be read as the next request.
        """
        is_valid = super().parse_request()
        self.connection.settimeout(_SECONDS)  # time limit for the answer
        if is_valid and ("Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0"):
            self.close_connection = True
        if is_valid and (why := self._why_foreign()):
            self._refuse(HTTPStatus.FORBIDDEN, why)
            return False
        if is_valid and not self.server.admit(self.connection):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
            self.close_connection = True
            return False
        return is_valid

    def send_response(self, code: int, message: str | None = None) -> None:
        """Begin an answer; one that refuses the request ends the connection."""
        super().send_response(code, message)
        if code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            self.send_header("Connection", "close")  # this ends it here, too

    def _why_foreign(self) -> str:
        address, headers = self.server.server_address, self.headers
        hosts, origins = headers.get_all("Host", []), headers.get_all("Origin", [])
        if self.server.any_host:
            return "pages are not served here" if origins else ""
        return why_foreign(hosts, origins, listening=str(address[0]), name=self.server.name)

    def _refuse(self, code: HTTPStatus, why: str) -> None:
        text = f"{why}\n".encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def without_token(self, token: str) -> str | None:
        """Return the path of a request without the token; see :func:`without_token`."""
        return without_token(self.path, self.headers.get_all("Authorization", []), token=token)

    def end_headers(self) -> None:
        """Add the headers of every answer."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


class _TimedReader(io.RawIOBase):
    """Bytes of a socket, read until a deadline; a timeout of the socket would restart with every byte."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.end = 0.0
        """Time of the monotonic clock [s]."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if (left := self.end - time.monotonic()) <= 0:
            raise TimeoutError("no whole request in time")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
