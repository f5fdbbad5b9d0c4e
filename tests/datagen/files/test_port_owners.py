"""A secret goes to no server that another user of this machine has started."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.port_owners import VARIABLE, foreign_listener
from nimbus.datagen.files.timed_connection import dial
from nimbus.datagen.language_model.exchange import Address, exchange
from nimbus.runner.cluster.cluster_address import parse_cluster
from nimbus.runner.cluster.on_ray.reach import check_reachable

OTHER = 12_345
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux states the owners of sockets")


@pytest.fixture
def connected() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        yield one


def tables(folder: Path, port: int, *rows: tuple[str, int], state: str = "0A") -> Path:
    """Write the kernel's tables: rows of an address and a user."""
    for name in ("tcp", "tcp6"):
        lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
        for place, uid in rows:
            family = socket.AF_INET6 if ":" in place else socket.AF_INET
            if (family == socket.AF_INET6) != (name == "tcp6"):
                continue
            packed = socket.inet_pton(family, place)
            words = (int.from_bytes(packed[i : i + 4], sys.byteorder) for i in range(0, len(packed), 4))
            shown = "".join(f"{word:08X}" for word in words)
            lines.append(f" 0: {shown}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:0 0 {uid} 0 7 1 0 100")
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("place", ["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_a_server_of_another_user_gets_no_secret(place: str, tmp_path: Path, connected: socket.socket):
    folder = tables(tmp_path, connected.getpeername()[1], (place, OTHER))
    assert foreign_listener(connected, tables=folder) == str(OTHER)


@pytest.mark.parametrize(
    "rows",
    [
        (("127.0.0.1", os.getuid()),),
        (("127.0.0.1", 0),),
        (("127.0.0.1", os.getuid()), ("0.0.0.0", OTHER)),  # the kernel prefers the address itself
        (("127.0.0.2", OTHER), ("::1", OTHER)),
        (),
    ],
)
def test_own_servers_and_the_superusers_get_it(rows: tuple, tmp_path: Path, connected: socket.socket):
    assert not foreign_listener(connected, tables=tables(tmp_path, connected.getpeername()[1], *rows))


def test_other_ports_and_other_states_do_not_count(tmp_path: Path, connected: socket.socket):
    port = connected.getpeername()[1]
    assert not foreign_listener(connected, tables=tables(tmp_path, port ^ 1, ("127.0.0.1", OTHER)))
    assert not foreign_listener(connected, tables=tables(tmp_path, port, ("127.0.0.1", OTHER), state="01"))


def test_a_user_that_is_named_is_trusted(tmp_path: Path, connected: socket.socket, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, f"ray,{OTHER}")
    assert not foreign_listener(connected, tables=tables(tmp_path, connected.getpeername()[1], ("127.0.0.1", OTHER)))


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can start a server of another user")
def test_keys_and_tokens_stay_here(monkeypatch: pytest.MonkeyPatch):
    """A real server of another user: it gets the connection, and nothing on it."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "a-token-of-a-cluster")
    server = socket.create_server(("127.0.0.1", 0))
    os.fchown(server.fileno(), OTHER, OTHER)  # as if this user had started it
    port = server.getsockname()[1]
    with server:
        for call in (
            lambda: exchange(Address(f"http://localhost:{port}/v1", "key"), "/models", seconds=5.0),
            lambda: check_reachable(parse_cluster(f"http://127.0.0.1:{port}")),
        ):
            with pytest.raises(InputError, match="another user, '12345'"):
                call()
            reader, _ = server.accept()
            with reader:
                assert reader.recv(100) == b""
        dial("127.0.0.1", port, seconds=5.0).close()  # without a secret, anyone may serve
