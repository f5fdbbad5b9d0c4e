"""Objects are created and read with signed URLs alone, without keys."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.send import ConflictError, send_attempt
from nimbus.datagen.store.remote.signed_store import SignedStore
from tests.support.odd_web_server import dripping, plain, server, shorten
from tests.support.synthetic import make_rendered, write_dataset


class _Answers(BaseHTTPRequestHandler):
    code, text = 200, ""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(self.text)))
        self.end_headers()
        self.wfile.write(self.text.encode())

    def do_GET(self) -> None:
        """Answer without a size, as an endless answer does."""
        self.send_response(self.code)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving(code: int, text: str) -> Iterator[str]:
    """Run an HTTP server with one answer to every request; return its address."""
    server = HTTPServer(("127.0.0.1", 0), type("Answers", (_Answers,), {"code": code, "text": text}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def signed(address: str) -> SignedStore:
    """Return a store whose URLs another store signs."""
    owner = ObjectStore(parse_address(address))
    return SignedStore(owner.address, lambda name, method: owner.sign(name, method=method, seconds=60))


def test_object_is_created_once(address: str, tmp_path: Path):
    store, path = signed(address), tmp_path / "file"
    path.write_bytes(b"episode" * 1000)
    assert store.create("episodes/a", path) and not store.create("episodes/a", b"other")
    assert store.create("episodes/empty", b"")
    stat = store.download("episodes/a", tmp_path / "read")
    assert (tmp_path / "read").read_bytes() == path.read_bytes() and stat.byte_count == 7000


def test_url_is_for_one_object(address: str):
    """Moto does not check signatures, so the test compares the name of the created object."""
    owner = ObjectStore(parse_address(address))
    store = SignedStore(owner.address, lambda name, method: owner.sign("episodes/mine", method=method, seconds=60))
    store.create("episodes/other", b"x")
    assert owner.stat("episodes/other") is None and owner.stat("episodes/mine")


def test_signature_of_a_put_contains_its_condition(address: str):
    """Without the condition, a signed URL could replace an object, because the store does not require the header with
    the condition.
    """
    owner = ObjectStore(parse_address(address))
    query = parse_qs(urlsplit(owner.sign("episodes/a", method="PUT", seconds=60)).query)
    assert query["X-Amz-SignedHeaders"] == ["host;if-none-match"] and query["X-Amz-Expires"] == ["60"]


def test_equal_object_is_adopted_and_other_content_refused(address: str, tmp_path: Path):
    write_dataset(tmp_path, [make_rendered(0)])
    ledger = Ledger(tmp_path, read_only=True)
    (attempt,) = ledger.stored()
    ledger.close()
    store = signed(address)
    first = dict(send_attempt(store, tmp_path, attempt))
    assert dict(send_attempt(store, tmp_path, attempt)) == first
    owner = ObjectStore(parse_address(address))
    owner.replace(attempt.path, b"other")
    with pytest.raises(ConflictError, match="other content"):
        list(send_attempt(store, tmp_path, attempt))


@pytest.mark.parametrize(
    ("code", "text", "kind", "words"),
    [
        (404, "<Code>NoSuchBucket</Code>", InputError, "there is no bucket"),
        (403, "<Code>AccessDenied</Code>", InputError, "denies access to a signed URL"),
        (403, "<Message>Request has expired</Message>", StoreAwayError, "answers 403"),
        (503, "", StoreAwayError, "answers 503"),
    ],
)
def test_answers_of_the_store_are_one_line(code: int, text: str, kind: type[InputError], words: str):
    with serving(code, text) as url, pytest.raises(kind, match=words) as found:
        SignedStore(parse_address("s3://bucket/x"), lambda name, method: f"{url}/x?secret=1").create("a", b"1")
    assert "secret" not in str(found.value)


def test_store_that_is_away_is_named_without_the_url():
    store = SignedStore(parse_address("s3://bucket/x"), lambda name, method: "http://127.0.0.1:9/x?secret=1")
    with pytest.raises(StoreAwayError, match="does not answer") as found:
        store.create("a", b"1")
    assert "secret" not in str(found.value)


def test_answer_without_a_size_is_refused(tmp_path: Path):
    """An answer without a size could fill the disk."""
    with serving(200, "content") as url, pytest.raises(InputError, match="declares no size"):
        SignedStore(parse_address("s3://bucket/x"), lambda name, method: url).download("a", tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_signed_url_is_never_redirected(tmp_path: Path):
    """A redirect could lead to another server of this network, whose answer would become the object."""
    with server(lambda _, __, send: plain(send, 200, b"private")) as (other, requests):
        move = f"Location: {other}"
        with server(lambda _, __, send: plain(send, 307, b"", move, "Connection: close")) as (url, _):
            store = SignedStore(parse_address("s3://bucket/x"), lambda name, method: url)
            for call in (lambda: store.download("a", tmp_path / "a"), lambda: store.create("a", b"1")):
                with pytest.raises(StoreAwayError, match="answers 307"):
                    call()
    assert not requests and not (tmp_path / "a").exists()


@pytest.mark.parametrize("part", [b"HTTP/1.1 200 x\r\nX: ", b"HTTP/1.1 200 x\r\nContent-Length: 90000000\r\n\r\n"])
def test_dripping_store_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: bytes):
    shorten(monkeypatch, 0.2)

    with server(dripping(part)) as (url, _):
        store, begin = SignedStore(parse_address("s3://bucket/x"), lambda name, method: url), time.monotonic()
        with pytest.raises(StoreAwayError, match="too slow"):
            store.download("a", tmp_path / "a")
    assert time.monotonic() - begin < 5 and not (tmp_path / "a").exists()


def test_store_that_reads_slowly_is_left(monkeypatch: pytest.MonkeyPatch):
    shorten(monkeypatch, 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def sip() -> None:
            client, _ = listening.accept()
            with client, suppress(OSError):
                while client.recv(1):
                    time.sleep(0.01)

        threading.Thread(target=sip, daemon=True).start()
        url, begin = f"http://127.0.0.1:{listening.getsockname()[1]}/x", time.monotonic()
        store = SignedStore(parse_address("s3://bucket/x"), lambda name, method: url)
        with pytest.raises(StoreAwayError, match="too slow"):
            store.create("a", bytes(8 << 20))
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
def test_a_url_of_no_store_is_not_opened(tmp_path: Path, url: str):
    store = SignedStore(parse_address("s3://bucket/x"), lambda name, method: url)
    with pytest.raises(InputError, match="does not lead to a store"):
        store.download("a", tmp_path / "a")
    assert not (tmp_path / "a").exists()
