"""Tokens and keys for ``localhost`` go to 127.0.0.1, never to a server of another user on another loopback address."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable

import pytest

from nimbus.datagen.files.trusted_servers import dial, literal_host, literal_url, use_literal_hosts
from nimbus.datagen.language_model.exchange import Address, NoReply, exchange
from nimbus.datagen.policies.policy import PolicyFault
from nimbus.datagen.policies.wires.websocket import Socket
from nimbus.datagen.policies.wires.zmtp import Requests
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.block_peers import _connection
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.runner.cluster.cluster_address import parse_cluster
from tools.sources import modules


def test_localhost_is_one_address() -> None:
    assert [literal_host(name) for name in ("localhost", "LOCALHOST", "localhost.")] == ["127.0.0.1"] * 3
    assert literal_host("::1") == "::1" and literal_host("localhost.example.org") == "localhost.example.org"
    assert str(parse_cluster("ray://localhost:10001")) == "ray://127.0.0.1:10001"


@pytest.mark.parametrize(
    ("url", "literal"),
    [
        ("http://localhost", "http://127.0.0.1"),
        ("HTTP://user:key@LocalHost.:9000/a?b", "HTTP://user:key@127.0.0.1:9000/a?b"),
        ("http://[::1]:9000", "http://[::1]:9000"),
        ("http://localhost.example.org/localhost", "http://localhost.example.org/localhost"),
        ("https://localhost:9000", "https://localhost:9000"),  # its certificate is for this name
        ("localhost:9000", "localhost:9000"),
    ],
)
def test_urls_name_one_address(url: str, literal: str) -> None:
    assert literal_url(url) == literal


def test_only_variables_of_stores_and_proxies_change(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "https_proxy", "MY_SERVER"):
        monkeypatch.setenv(name, "http://localhost:9000")
    monkeypatch.setenv("NO_PROXY", "example.org, localhost")
    use_literal_hosts()
    use_literal_hosts()
    assert os.environ["AWS_ENDPOINT_URL_S3"] == os.environ["https_proxy"] == "http://127.0.0.1:9000"
    assert os.environ["MY_SERVER"] == "http://localhost:9000"
    assert os.environ["NO_PROXY"] == "example.org,localhost,127.0.0.1"  # the address is excluded too


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "HTTP_PROXY"])
def test_libraries_of_stores_resolve_no_localhost(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library for stores has a resolver of its own, and chooses among the addresses of a name."""
    answers = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": "http://store.invalid",
    }
    with socket.create_server(("127.0.0.1", 0)) as server:
        for name, value in (answers | {variable: f"http://localhost:{server.getsockname()[1]}"}).items():
            monkeypatch.setenv(name, value)
        store = ObjectStore(parse_address("s3://bucket/data"))
        assert os.environ[variable].startswith("http://127.0.0.1:")
        thread = threading.Thread(target=store.stat, args=("name",), daemon=True)
        thread.start()
        client, _ = server.accept()
        with client:
            assert b"/bucket/data/name" in client.recv(65_536).split(b"\r\n")[0]
            client.sendall(b"HTTP/1.1 404 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        thread.join(60)


def connect_to_peer(port: int) -> None:
    connection = _connection(f"http://localhost:{port}")
    connection.limit(float("inf"))
    connection.connect()


CLIENTS: dict[str, tuple[Callable[[int], object], type[Exception]]] = {
    "model": (lambda port: exchange(Address(f"http://localhost:{port}/v1", "key"), "/models", seconds=1.0), NoReply),
    "policy": (lambda port: Socket(f"ws://localhost:{port}", seconds=1.0), PolicyFault),
    "policy of ZeroMQ": (lambda port: Requests(f"tcp://localhost:{port}", seconds=1.0), PolicyFault),
    "peer": (connect_to_peer, OSError),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_do_not_resolve_localhost(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual hosts file names ``::1`` first, where another user can have the same port."""
    asked, real = list[str](), socket.getaddrinfo

    def resolve(host: str, *args: object, **options: object) -> object:
        asked.append(host)
        return real(host, *args, **options)  # pyright: ignore[reportArgumentType, reportCallIssue]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    call, refused = CLIENTS[client]
    with pytest.raises(refused):
        call(port)
    assert set(asked) == {"127.0.0.1"}


def test_only_one_module_resolves_names() -> None:
    """The studio connects to itself; the check of a cluster asks if a name leads to this machine."""
    line = re.compile(r"create_connection\(|getaddrinfo\(|HTTPS?Connection\(")
    found = {name for name, path in modules().items() if line.search(path.read_text())}
    others = {"nimbus.datagen.ui.gate", "nimbus.runner.cluster.on_ray.reach"}
    own = {"nimbus.datagen.files.timed_connection", "nimbus.datagen.files.trusted_servers"}
    assert found == own | others


def test_an_address_is_dialed_in_time() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        dial("localhost", server.getsockname()[1], seconds=5.0) as one,
    ):
        assert one.gettimeout() == 5.0
