"""Access check of a server: requests must have the printed secret, name this host, and come from no foreign page."""

from __future__ import annotations

import inspect
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.local_server import why_foreign, without_token
from nimbus.datagen.ui.page_script import PageScript

_TOKEN_BYTES = 24
"""Number of bytes of a token: 192 bits, which cannot be guessed over a network."""
_CHECK_TIMEOUT = 10.0
"""Time limit for checking the server in this process [s]."""
_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Headers of every page. Other pages may not embed it, and browsers keep its address, which contains the token, from
other servers."""
_patching = threading.Lock()


class Refused(Exception):
    """Raised for a request that does not come from the printed address; its text is sent as the answer."""


@dataclass(frozen=True)
class Gate:
    """Check of each request to one server, plain or WebSocket.

    Args:
        host: Address on which the server listens.
        token: Secret part of the printed address.
    """

    host: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    name: str = field(default="", kw_only=True)
    """Host of the printed address, by :func:`fresh_name`; if it is empty, that on which the server listens."""

    def admit(self, path: str, hosts: Sequence[str], origins: Sequence[str]) -> str:
        """Check a request.

        Args:
            path: Path of the request line, with the query.
            hosts: All values of the header ``Host``.
            origins: All values of the header ``Origin``: none for an opened page, one for its WebSocket.

        Returns:
            The path without the token.

        Raises:
            Refused: The host is not the server's, the origin is another page, or the token is missing.
        """
        if why := why_foreign(hosts, origins, listening=self.host, name=self.name):
            raise Refused(why)
        if (found := without_token(path, (), token=self.token)) is None:
            raise Refused("open the address that was printed at the start; it has a secret part")
        return found


@contextmanager
def guarded_websockets(gate: Gate, script: PageScript | None = None) -> Iterator[None]:
    """Add a gate to every server started with the library ``websockets`` in this process.

    A server accepts one function, ``process_request``, which may answer a request before the server does. viser offers
    no way to set it, so the gate's function is inserted here and calls the caller's own function afterwards.

    Args:
        gate: The gate.
        script: Script to add to the page; requests for it and its reports pass the gate as well.
    """
    from websockets.asyncio import server

    start = server.serve

    def serve(*args: Any, process_request: Callable[..., Any] | None = None, **options: Any) -> Any:
        async def answer(connection: Any, request: Any) -> Any:
            hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
            try:
                request.path = gate.admit(request.path, hosts, origins)
            except Refused as refusal:
                response = connection.respond(403, f"{refusal}\n")
            else:
                response = _scripted(script, connection, request.path) if script else None
                if response is None:
                    response = process_request(connection, request) if process_request else None
                    response = await response if inspect.isawaitable(response) else response
                    if response is not None and script:
                        script.insert(response, gate.token)
            if response is not None:
                response.headers.update(_HEADERS)
            return response

        return start(*args, process_request=answer, **options)

    with _patching:
        setattr(server, "serve", serve)  # noqa: B010 - a module's own name, restored below
        try:
            yield
        finally:
            setattr(server, "serve", start)  # noqa: B010


def _scripted(script: PageScript, connection: Any, path: str) -> Any:
    """Return the response of a script or its report; None for another path."""
    if (found := script.respond(path)) is None:
        return None
    status, media_type, content = found
    response = connection.respond(status, "")
    response.body = content
    for name, value in (("Content-Type", media_type), ("Content-Length", str(len(content)))):
        if name in response.headers:
            del response.headers[name]
        response.headers[name] = value
    return response


def check_guarded(host: str, port: int) -> None:
    """Check that a server refuses requests for a page and for a WebSocket without the token.

    Args:
        host: Address on which it listens.
        port: Port of the server.

    Raises:
        InputError: The server answers, which means that the serving library bypasses the gate.
    """
    for upgrade in ("", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"):
        key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" if upgrade else ""
        request = f"GET / HTTP/1.1\r\nHost: {_bracketed(host)}:{port}\r\n{upgrade}{key}\r\n"
        with socket.create_connection((reachable(host), port), _CHECK_TIMEOUT) as connection:
            connection.sendall(request.encode())
            answer = connection.recv(64).split(b"\r\n")[0]
        if b" 403 " not in answer + b" ":
            what = f"answers a request without the token: {answer.decode(errors='replace')!r}"
            raise InputError(what, where=f"{host}:{port}", instead="install the versions in constraints.txt")


def reachable(host: str) -> str:
    """Return the address at which this machine reaches a server that listens on ``host``."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def address_of(host: str, port: int, gate: Gate) -> str:
    """Return the address to print, the only one that is served."""
    return f"http://{gate.name or _bracketed(reachable(host))}:{port}/{gate.token}"
