"""Web server that answers anything, also nothing of HTTP."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from nimbus.datagen.store.remote import web_requests, web_store

Send = Callable[[bytes], None]
Answer = Callable[[str, dict[str, str], Send], None]


@contextmanager
def server(answer: Answer, *, context: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str]]]:
    """Serve connections until the client closes them; yield the address and all request lines.

    Args:
        answer: Called with the request line, the headers and a function that sends bytes.
        context: Certificate for TLS.
    """
    requests: list[str] = []

    def talk(client: socket.socket) -> None:
        with suppress(OSError):
            client = context.wrap_socket(client, server_side=True) if context else client
        with client, client.makefile("rb") as lines, suppress(OSError):
            while line := lines.readline().decode().strip():
                requests.append(line)
                headers: dict[str, str] = {}
                while header := lines.readline().decode().strip():
                    name, _, value = header.partition(": ")
                    headers[name] = value
                answer(line, headers, client.sendall)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"{'https' if context else 'http'}://127.0.0.1:{listening.getsockname()[1]}/data", requests
        listening.shutdown(socket.SHUT_RDWR)


def plain(send: Send, status: int, content: bytes = b"", *headers: str) -> None:
    """Send a whole answer."""
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(content)}", *headers, "", ""]
    send("\r\n".join(lines).encode() + content)


def dripping(part: bytes) -> Answer:
    """Return an answer that starts with ``part`` and goes on without end, a byte every 10 ms."""

    def answer(_: str, __: dict[str, str], send: Send) -> None:
        send(part)
        while True:
            send(b"a")
            time.sleep(0.01)

    return answer


def shorten(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Shorten the time limits of clients for a call and for each MiB of content [s]."""
    for module in (web_requests, web_store):
        monkeypatch.setattr(module, "CALL_SECONDS", seconds)
    monkeypatch.setattr(web_requests, "_LEAST_RATE", 1e7)
