"""Base of Nimbus's servers with clients that are foreign, slow, numerous or disconnected."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from nimbus.datagen import local_server
from nimbus.datagen.local_server import LocalHandler, LocalServer, why_foreign

PLAIN = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Handler(LocalHandler):
    """Answers valid requests with ``ok``, and refuses ``HEAD``, as for a request without the token."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        content = b"ok"
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.send_response(401)
        self.end_headers()


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    server = LocalServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield ("127.0.0.1", server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def exchange(address: tuple[str, int], request: bytes) -> bytes:
    """Send bytes, and read until the server closes the connection."""
    with socket.create_connection(address, timeout=60.0) as client:
        client.sendall(request)
        found = b""
        while part := client.recv(4096):
            found += part
    return found


def ask(client: socket.socket) -> None:
    """Send a request over an open connection, and read the answer to its end."""
    client.sendall(PLAIN + b"\r\n")
    found = b""
    while not found.endswith(b"ok"):
        part = client.recv(4096)
        assert part, found
        found += part


def test_body_is_not_read_as_next_request():
    with serving() as address:
        for header in (b"Content-Length: 9", b"Transfer-Encoding: chunked", b"content-length: +0"):
            found = exchange(address, PLAIN + header + b"\r\n\r\n" + PLAIN + b"\r\n")
            assert found.count(b"HTTP/1.1 ") == 1


def test_answers_forbid_scripts_and_frames():
    with serving() as address:
        found = exchange(address, PLAIN + b"Connection: close\r\n\r\n")
    assert b"default-src 'none'" in found and b"frame-ancestors 'none'" in found and found.endswith(b"ok")


@pytest.mark.parametrize("header", ["Host: localhost", "Origin: http://evil.example", "Origin: null"])
def test_foreign_requests_are_known(header: str):
    with serving() as address:
        found = exchange(address, PLAIN + header.encode() + b"\r\nConnection: close\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 403") and found.endswith(b"not served here\n")


def test_servers_of_other_machines_are_asked_by_any_name(monkeypatch: pytest.MonkeyPatch):
    """Nodes know a cache by names that it does not know; no page needs it."""
    monkeypatch.setattr(LocalServer, "any_host", True)
    with serving() as address:
        named = exchange(address, b"GET / HTTP/1.1\r\nHost: node1:7070\r\nConnection: close\r\n\r\n")
        page = exchange(address, PLAIN + b"Origin: http://localhost\r\nConnection: close\r\n\r\n")
    assert named.endswith(b"ok") and page.startswith(b"HTTP/1.1 403")


def test_slow_request_ends(monkeypatch: pytest.MonkeyPatch):
    """Bytes that arrive one after the other do not extend the time limit of a request."""
    monkeypatch.setattr(local_server, "_GREETING", 0.3)
    with serving() as address, socket.create_connection(address, timeout=60.0) as client:
        client.settimeout(0.05)
        for _ in range(1200):
            try:
                client.sendall(b"G")
                if not client.recv(100):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    pytest.fail("the server still reads")


def test_a_connection_stays_open_between_requests(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local_server, "_GREETING", 0.2)
    with serving() as address, socket.create_connection(address, timeout=60.0) as client:
        for _ in range(2):
            ask(client)
            time.sleep(0.4)


def test_surplus_connections_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local_server, "_MOST_CONNECTIONS", 2)
    with serving() as address:
        kept = [socket.create_connection(address, timeout=60.0) for _ in range(2)]
        for client in kept:
            ask(client)
        assert exchange(address, PLAIN + b"\r\n").startswith(b"HTTP/1.1 503")
        for client in kept:
            ask(client)
            client.close()


def test_connections_without_a_request_keep_no_others_out():
    """Any user of the machine can open them, also anew whenever one is closed."""
    with serving() as address, ExitStack() as held:
        user = held.enter_context(socket.create_connection(address, timeout=60.0))
        ask(user)
        for _ in range(400):
            other = held.enter_context(socket.create_connection(address, timeout=60.0))
            other.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert exchange(address, PLAIN + b"Connection: close\r\n\r\n").endswith(b"ok")
        ask(user)
        assert threading.active_count() < 500


def test_a_refused_request_ends_the_connection():
    """Otherwise, connections without the token could be kept open."""
    refused = PLAIN.replace(b"GET", b"HEAD") + b"\r\n"
    with serving() as address:
        assert exchange(address, refused * 2).count(b"HTTP/1.1 401") == 1


def test_gone_client_leaves_no_traceback(capsys: pytest.CaptureFixture[str]):
    server = LocalServer(("127.0.0.1", 0), Handler)
    with server:
        for error in (ConnectionResetError(), BrokenPipeError(), TimeoutError()):
            try:
                raise error
            except OSError:
                server.handle_error(None, ("127.0.0.1", 1))
        assert not capsys.readouterr().err
        try:
            raise KeyError("a bug")
        except KeyError:
            server.handle_error(None, ("127.0.0.1", 1))
        assert "a bug" in capsys.readouterr().err


def test_open_server_takes_literal_addresses():
    assert not why_foreign(["192.168.1.2:80"], [], listening="0.0.0.0")
    assert why_foreign(["192.168.1.2:80"], [], listening="127.0.0.1")
    assert why_foreign(["evil.example"], [], listening="0.0.0.0")
