"""The server of a policy: foreign pages, other users, and more connections than it serves."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import time
from functools import partial
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.server_tokens import known_token
from nimbus.datagen.policies.open_policy import open_policy
from nimbus.datagen.policies.wires import server as server_module
from nimbus.datagen.policies.wires import websocket
from tests.datagen.policies.wires.test_bad_servers import refused
from tests.datagen.policies.wires.test_remote_policy import begun
from tests.support.policy_servers import HOST, raw_server, served


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}])
def test_own_server_refuses_foreign_pages(headers: dict[str, str]):
    """Browsers let any page open a WebSocket to this machine."""
    with served() as address:
        port = int(address.rpartition(":")[2])
        lines = {"Host": f"localhost:{port}", "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode()} | headers
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        text += "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n"
        with socket.create_connection((HOST, port), timeout=60.0) as client:
            client.sendall(f"GET / HTTP/1.1\r\n{text}".encode())
            assert b" 403 " in client.recv(4096).split(b"\r\n")[0]


def test_own_server_refuses_other_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Another user cannot read the token of the server from this user's cache."""
    with served() as address:
        begun(address).close()
        (kept,) = cache_folder("servers").glob(f"*-{address.rpartition(':')[2]}")
        token = json.loads(kept.read_text())["token"]
        assert kept.stat().st_mode & 0o077 == 0 and len(token) == 32
        monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
        with pytest.raises(InputError, match="needs the token of the server; set NIMBUS_POLICY_TOKEN"):
            begun(address)
        monkeypatch.setenv("NIMBUS_POLICY_TOKEN", "x" * 16)
        with pytest.raises(InputError, match="needs the token"):
            begun(address)
        monkeypatch.setenv("NIMBUS_POLICY_TOKEN", token)
        begun(address).close()
    assert not kept.exists()


def test_foreign_port_gets_no_token():
    requests: list[bytes] = []

    def listen(connection: socket.socket) -> None:
        connection.settimeout(60.0)
        requests.append(connection.recv(4096))

    with raw_server(listen) as port:
        refused(f"ws://{HOST}:{port}")
    assert requests and b"authorization" not in requests[0].lower()


def test_token_goes_to_the_own_address_only():
    """Another user can listen on the same port of another loopback address."""
    with served() as address:
        port = int(address.rpartition(":")[2])
        assert websocket._place(f"ws://localhost:{port}") == (HOST, port, known_token(port))
        assert websocket._place(f"ws://[::1]:{port}") == ("::1", port, "")


def test_own_server_limits_connections(monkeypatch: pytest.MonkeyPatch):
    """Each connection has a separate policy in memory."""
    monkeypatch.setattr(server_module, "_MOST_CONNECTIONS", 1)
    with served() as address:
        token = known_token(int(address.rpartition(":")[2]))
        with connect(f"{address}/{token}") as first:
            first.recv()
            headers = {"Authorization": f"Api-Key {token}"}
            with pytest.raises(InvalidStatus, match="503"), connect(address, additional_headers=headers):
                pass


def test_own_server_limits_silent_connections(monkeypatch: pytest.MonkeyPatch):
    """Any user can open connections without a request."""
    monkeypatch.setattr(server_module, "_MOST_CONNECTIONS", 1)
    monkeypatch.setattr(server_module, "_MOST_GREETING", 1)
    with served() as address, contextlib.ExitStack() as stack:
        place = (HOST, int(address.rpartition(":")[2]))
        for _ in range(2):
            stack.enter_context(socket.create_connection(place))
        surplus = stack.enter_context(socket.create_connection(place, timeout=60.0))
        assert surplus.recv(1) == b""
        stack.close()
        begun_later(address)


def begun_later(address: str) -> None:
    """Connect; first wait until the server has noticed that the earlier connections have ended."""
    for _ in range(200):
        with contextlib.suppress(InputError):
            begun(address).close()
            return
        time.sleep(0.05)
    raise AssertionError("no free connection")


def test_own_server_survives_without_descriptors(caplog: pytest.LogCaptureFixture):
    """A flood of connections uses all descriptors of the process; it must not cause a traceback per request."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with served() as address, socket.socket() as client:
        begun(address).close()  # the server accepts
        client.settimeout(60.0)
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
        try:
            client.connect((HOST, int(address.rpartition(":")[2])))
            time.sleep(0.2)  # the server tries to accept
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        client.sendall(b"no request\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            client.recv(1)
        begun(address).close()
    assert not caplog.records


def test_weights_of_a_served_function_are_its_checkpoint(tmp_path: Path):
    path, weights = tmp_path / "mine.py", tmp_path / "weights.npz"
    path.write_text("class Mine:\n    limit = 3\n\n    def act(self, observation):\n        return [[0.0, 0.0, 0.0]]\n")
    opened = partial(open_policy, f"{path}:Mine", options={"checkpoint": str(weights)})
    identities = set[str]()
    for content in ("1", "2"):
        weights.write_text(content)
        with served(opened) as address:
            policy = begun(address, checkpoint="")
            identities.add(policy.identity)
            policy.close()
    assert len(identities) == 2
