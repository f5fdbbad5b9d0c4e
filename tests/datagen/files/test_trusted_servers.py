"""A secret goes to no server that another user of this machine has started."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.timed_connection import TimedConnection
from nimbus.datagen.files.trusted_servers import UNKNOWN, VARIABLE, dial, foreign_server
from nimbus.datagen.language_model.exchange import Address, exchange
from nimbus.runner.cluster.cluster_address import parse_cluster
from nimbus.runner.cluster.on_ray.reach import check_reachable

OTHER = 12_345
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux states the owners of sockets")


@pytest.fixture
def connected() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        yield one


def tables(folder: Path, *rows: tuple[Any, ...]) -> Path:
    """Write the kernel's tables: rows of two ends, a state, a user and the number of the owned socket."""
    for name in ("tcp", "tcp6"):
        lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
        for own, port, other, other_port, state, user, inode in rows:
            if (":" in own) == (name == "tcp6"):
                ends = f"{_shown(own)}:{port:04X} {_shown(other)}:{other_port:04X}"
                lines.append(f" 0: {ends} {state} 00000000:00000000 00:0 0 {user} 0 {inode} 1 0 100")
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def _shown(place: str) -> str:
    packed = socket.inet_pton(socket.AF_INET6 if ":" in place else socket.AF_INET, place)
    words = (int.from_bytes(packed[i : i + 4], sys.byteorder) for i in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words)


def listens(connected: socket.socket, place: str, user: int, *, shift: int = 0) -> tuple[Any, ...]:
    return place, connected.getpeername()[1] ^ shift, "::" if ":" in place else "0.0.0.0", 0, "0A", user, 7


def accepted(connected: socket.socket, user: int, *, inode: int = 8, state: str = "01") -> tuple[Any, ...]:
    """Return the row of the server's end of a connection; it has no owner before a process accepts it."""
    return *connected.getpeername(), *connected.getsockname(), state, user, inode


@pytest.mark.parametrize("place", ["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_a_server_of_another_user_is_not_trusted(place: str, tmp_path: Path, connected: socket.socket):
    folder = tables(tmp_path, listens(connected, place, OTHER), accepted(connected, 0, inode=0))
    assert foreign_server(connected, tables=folder) == str(OTHER)


@pytest.mark.parametrize("state", ["01", "08"])
def test_a_listener_that_has_closed_again_is_not_trusted(state: str, tmp_path: Path, connected: socket.socket):
    """It could do so between the connection and the check."""
    taken = accepted(connected, OTHER, state=state)
    assert foreign_server(connected, tables=tables(tmp_path, taken)) == str(OTHER)
    mine = listens(connected, "::", os.getuid())
    assert foreign_server(connected, tables=tables(tmp_path, mine, taken)) == str(OTHER)


@pytest.mark.parametrize("user", [os.getuid(), 0])
def test_own_servers_and_the_superusers_are_trusted(user: int, tmp_path: Path, connected: socket.socket):
    for place in ("127.0.0.1", "0.0.0.0", "::"):
        rows = listens(connected, place, user), accepted(connected, user)
        assert not foreign_server(connected, tables=tables(tmp_path, *rows))
    # The kernel prefers the socket that is bound to the address itself.
    rows = listens(connected, "127.0.0.1", user), listens(connected, "0.0.0.0", OTHER)
    assert not foreign_server(connected, tables=tables(tmp_path, *rows))


def test_a_port_on_which_nobody_listens_is_not_trusted(
    tmp_path: Path, connected: socket.socket, monkeypatch: pytest.MonkeyPatch
):
    """Other ports, other addresses and connections without an owner do not count."""
    rows = [listens(connected, "127.0.0.1", os.getuid(), shift=1), listens(connected, "127.0.0.2", os.getuid())]
    folder = tables(tmp_path, *rows, accepted(connected, 0, inode=0))
    assert foreign_server(connected, tables=folder) == UNKNOWN
    monkeypatch.setenv(VARIABLE, UNKNOWN)  # the kernel forwards the port, as the user knows
    assert not foreign_server(connected, tables=folder)


def test_a_user_that_is_named_is_trusted(tmp_path: Path, connected: socket.socket, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, f"ray,{OTHER}")
    assert not foreign_server(connected, tables=tables(tmp_path, listens(connected, "127.0.0.1", OTHER)))


def test_the_kernel_states_the_owner_of_a_real_server(connected: socket.socket):
    assert not foreign_server(connected)


def test_systems_without_tables_trust_all(tmp_path: Path, connected: socket.socket):
    assert not foreign_server(connected, tables=tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can start a server of another user")
def test_keys_and_tokens_stay_here():
    """A real server of another user: it gets the connection, and nothing on it."""
    server = socket.create_server(("127.0.0.1", 0))
    os.fchown(server.fileno(), OTHER, OTHER)  # as if this user had started it
    port = server.getsockname()[1]
    with server:
        proxy = ("127.0.0.1", port, "Basic dXNlcjpwYXNzd29yZA==")
        behind = TimedConnection("data.example.org", 443, is_encrypted=True, quiet=5.0, proxy=proxy)
        behind.limit(time.monotonic() + 5.0)
        for call in (
            behind.connect,
            lambda: exchange(Address(f"http://localhost:{port}/v1", "key"), "/models", seconds=5.0),
            lambda: check_reachable(parse_cluster(f"http://127.0.0.1:{port}")),
        ):
            with pytest.raises(InputError, match="another user, '12345'"):
                call()
            reader, _ = server.accept()
            with reader:
                assert reader.recv(100) == b""
        dial("127.0.0.1", port, seconds=5.0).close()  # without a secret, anyone may serve
