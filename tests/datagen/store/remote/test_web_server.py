"""Web servers with datasets: they may answer anything, and are never asked for a listing."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.files.timed_connection import SteadyAddresses
from nimbus.datagen.machine import resident_bytes
from nimbus.datagen.store.remote import web_requests, web_store
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.objects import MissingObjectError
from nimbus.datagen.store.remote.web_store import WebStore
from nimbus.datagen.store.remote.working_copy import open_dataset
from tests.support.odd_web_server import Send, dripping, plain, server, shorten

TEXT = b"0123456789"


def files(line: str, headers: dict[str, str], send: Send) -> None:
    """Serve ``/data/a`` with ranges, and nothing else, as a usual server does."""
    method, path, _ = line.split(" ")
    if path != "/data/a":
        return plain(send, 404, b"no such page")
    if method == "HEAD":
        return send(b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: "v1"\r\n\r\n')
    if "Range" not in headers:
        return plain(send, 200, TEXT, 'ETag: "v1"')
    first, last = map(int, headers["Range"].removeprefix("bytes=").split("-"))
    part = TEXT[first : last + 1]
    return plain(send, 206, part, f"Content-Range: bytes {first}-{first + len(part) - 1}/10")


def store_at(address: str) -> WebStore:
    return WebStore(parse_address(address))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten pauses and limits."""
    monkeypatch.setattr(web_store, "_PAUSES", (0.0,))
    shorten(monkeypatch, 1.0)
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_file_is_read_over_one_connection(tmp_path: Path):
    connections: set[int] = set()

    def answer(line: str, headers: dict[str, str], send: Send) -> None:
        connections.add(threading.get_ident())
        files(line, headers, send)

    with server(answer) as (address, _):
        store = store_at(address)
        assert store.read("a") == TEXT and store.read_range("a", 2, 3) == b"234"
        assert store.read_range("a", 8, 8, least=2) == b"89"
        found = store.stat("a")
        assert found and found.byte_count == 10 and found.etag == '"v1"' and store.stat("b") is None
        with pytest.raises(MissingObjectError, match="no such object"):
            store.read("b")
        assert store.download("a", tmp_path / "a").byte_count == 10
    assert (tmp_path / "a").read_bytes() == TEXT and len(connections) == 1


@pytest.mark.parametrize(
    ("found", "text"), [({"meta/info.json"}, "web servers cannot list their files"), (set[str](), "no dataset here")]
)
def test_no_listing(found: set[str], text: str):
    def answer(line: str, _: dict[str, str], send: Send) -> None:
        plain(send, 200 if line.split(" ")[1].removeprefix("/data/") in found else 404)

    with server(answer) as (address, requests):
        with pytest.raises(InputError, match=text):
            open_dataset(address)
    assert {line.split(" ")[0] for line in requests} == {"HEAD"}


def test_endless_errors_are_not_read(tmp_path: Path):
    def answer(_: str, __: dict[str, str], send: Send) -> None:
        send(b"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            send(b"10000\r\n" + bytes(65536) + b"\r\n")

    with server(answer) as (address, _):
        store, before = store_at(address), resident_bytes()
        for call in (store.read, store.stat, lambda name: store.download(name, tmp_path / name)):
            with pytest.raises(StoreAwayError, match="the web server answers 500"):
                call("a")
    assert resident_bytes() - before < 50e6


REFUSED: dict[str, tuple[bytes, str]] = {
    "no size": (b"HTTP/1.1 200 x\r\n\r\n", "without Content-Length"),
    "chunks": (b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", "without Content-Length"),
    "compressed": (b"HTTP/1.1 200 x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", "compressed"),
    "size": (b"HTTP/1.1 200 x\r\nContent-Length: 99999999999\r\n\r\n", "the limit is"),
    "short": (b"HTTP/1.1 206 x\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/9\r\nConnection: close\r\n\r\nab", "."),
    "no http": (b"SSH-2.0-x\r\n", "does not answer"),
    "denied": (b"HTTP/1.1 403 x\r\nContent-Length: 0\r\n\r\n", "denies access"),
}


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_odd_answers_are_one_line(kind: str):
    content, text = REFUSED[kind]

    def answer(_: str, __: dict[str, str], send: Send) -> None:
        send(content)
        raise OSError  # closes the connection

    with server(answer) as (address, _), pytest.raises(InputError, match=text):
        store_at(address).read("a")


@pytest.mark.parametrize(
    ("status", "place", "text"),
    [
        (200, "", "answers a request for a part of a file with the whole file"),
        (206, "Content-Range: bytes 0-9/20", "another part"),
        (206, "Content-Range: bytes 5-6/20", "another part"),
        (206, "X: y", "another part"),
    ],
)
def test_other_parts_are_refused(status: int, place: str, text: str):
    with server(lambda _, __, send: plain(send, status, TEXT, *([place] if place else []))) as (address, _):
        with pytest.raises(InputError, match=text):
            store_at(address).read_range("a", 5, 10)


@pytest.mark.parametrize(
    "part",
    [
        b"HTTP/1.1 200 x\r\nX: ",
        b"HTTP/1.1 200 x\r\nContent-Length: 1000\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length: 60000000\r\n\r\n",  # a large declared size gives no longer time
        b"",
    ],
)
def test_dripping_servers_are_left(monkeypatch: pytest.MonkeyPatch, part: bytes):
    shorten(monkeypatch, 0.2)

    with server(dripping(part)) as (address, _):
        begin = time.monotonic()
        with pytest.raises(StoreAwayError, match="too slow"):
            store_at(address).read("a")
    assert time.monotonic() - begin < 5


def test_an_object_has_a_time_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each block of this server arrives in time."""
    monkeypatch.setattr(web_requests, "OBJECT_SECONDS", 0.3)
    monkeypatch.setattr(web_requests, "_BLOCK", 1)
    shorten(monkeypatch, 5.0)
    with server(dripping(b"HTTP/1.1 200 x\r\nContent-Length: 60000000\r\n\r\n")) as (address, _):
        begin = time.monotonic()
        with pytest.raises(StoreAwayError, match="too slow"):
            store_at(address).download("a", tmp_path / "a")
    assert time.monotonic() - begin < 4


NAMED = {"public": ["1.1.1.1", "127.0.0.1"], "local": ["127.0.0.1", "127.0.0.2"]}


@pytest.mark.parametrize("kind", NAMED)
def test_a_name_does_not_change_to_a_server_of_this_machine(kind: str, monkeypatch: pytest.MonkeyPatch):
    """After a redirect, its owner could let it lead to a service that nobody else reaches."""
    first, other = NAMED[kind]
    addresses, real = [[first], [other], [first, other]], socket.getaddrinfo

    def resolve(host: str, *args: Any, **options: Any) -> Any:
        return [found for place in addresses.pop(0) for found in real(place, *args, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    steady = SteadyAddresses()
    assert steady.find("evil.example.org", 80) == [first]
    with pytest.raises(InputError, match=f"evil.example.org: the name leads to another address now, {other}"):
        steady.find("evil.example.org", 80)
    assert steady.find("evil.example.org", 80) == [first]


def test_an_address_that_has_answered_is_kept(monkeypatch: pytest.MonkeyPatch):
    """A name with two addresses leads to a service of this machine as soon as its own server does not answer."""
    real = socket.getaddrinfo
    places = ["127.0.0.1", "127.0.0.2"]

    def resolve(host: str, *args: Any, **options: Any) -> Any:
        return [found for place in places for found in real(place, *args, **options)]

    def move(line: str, headers: dict[str, str], send: Send) -> None:
        plain(send, 302, b"", "Location: /private", "Connection: close")

    with server(move) as (address, requests):
        store = store_at(address.replace("127.0.0.1", "evil.example.org"))
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(InputError, match="more than 5 redirects"):
            store.read("a")
        places.remove("127.0.0.1")
        with pytest.raises(InputError, match=r"leads to another address now, 127.0.0.2"):
            store.read("a")
    assert len(requests) == 6


def test_redirects_stay_on_the_host():
    def answer(line: str, headers: dict[str, str], send: Send) -> None:
        method, path, _ = line.split(" ")
        places = {"/data/moved": "/data/a", "/data/loop": "/data/loop", "/data/away": f"http://localhost:{port}/data/a"}
        if path in places:
            return plain(send, 302, b"moved", f"Location: {places[path]}")
        return files(line, headers, send)

    with server(answer) as (address, requests):
        port = address.removesuffix("/data").rpartition(":")[2]
        store = store_at(address)
        assert store.read("moved") == TEXT
        with pytest.raises(InputError, match="more than 5 redirects"):
            store.read("loop")
        requests.clear()
        with pytest.raises(InputError, match="redirects to another host, 'localhost:"):
            store.read("away")
    assert len(requests) == 1


def test_a_server_that_recovers_is_asked_again():
    statuses = [503]

    def answer(line: str, headers: dict[str, str], send: Send) -> None:
        if statuses:
            return plain(send, statuses.pop(), b"busy")
        return files(line, headers, send)

    with server(answer) as (address, requests):
        assert store_at(address).read("a") == TEXT
    assert len(requests) == 2


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch):
    def answer(line: str, headers: dict[str, str], send: Send) -> None:
        files(line.replace("http://dataset.example", ""), headers, send)

    with server(answer) as (address, requests):
        monkeypatch.setenv("http_proxy", address.removesuffix("/data"))
        assert store_at("http://dataset.example/data").read("a") == TEXT
    assert requests == ["GET http://dataset.example/data/a HTTP/1.1"]


def test_unknown_certificates_are_refused(tmp_path: Path):
    certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with server(files, context=context) as (address, requests):
        with pytest.raises(InputError, match="the certificate of the server is not valid: self-signed"):
            store_at(address).read("a")
    assert not requests


def self_signed(folder: Path) -> Path:
    """Write a key with its certificate for this machine."""
    x509 = pytest.importorskip("cryptography.x509", reason="the extra 'dev' brings cryptography with moto")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    begin, end = now - datetime.timedelta(days=1), now + datetime.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end).sign(key, hashes.SHA256())
    plain_key = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain_key)
    (folder / "pem").write_bytes(text + made.public_bytes(serialization.Encoding.PEM))
    return folder / "pem"


def test_missing_server_is_one_line():
    with pytest.raises(StoreAwayError, match="the server does not answer: Connection refused"):
        store_at("http://127.0.0.1:9/x").read("a")
    for host in ("127.0.0.1:0", "127.0.0.1:99999"):
        with pytest.raises(InputError, match="no valid host or port"):
            store_at(f"http://{host}/x")
