from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.machine import resident_bytes
from nimbus.datagen.store.remote import library_store, objects, s3_client, watched_calls
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.multipart import create_large
from nimbus.datagen.store.remote.object_store import ObjectStore, check_creates_once
from nimbus.datagen.store.remote.objects import MissingObjectError
from tests.support.odd_web_server import dripping, server


def store_at(address: str) -> ObjectStore:
    return ObjectStore(parse_address(address))


def test_object_is_created_once(address: str, tmp_path: Path):
    store, file = store_at(address), tmp_path / "file"
    file.write_bytes(b"first")
    assert store.create("a/b", file) and not store.create("a/b", b"second")
    assert store.read("a/b") == b"first" and store.read_range("a/b", 1, 3) == b"irs"
    assert [*store.names()] == [("a/b", 5)]
    found = store.stat("a/b")
    assert found and found.byte_count == 5 and store.stat("a/c") is None
    store.replace("a/b", b"third")
    assert store.download("a/b", tmp_path / "copy").byte_count == 5
    assert (tmp_path / "copy").read_bytes() == b"third"


def test_missing_object_bucket_and_store_differ(address: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(MissingObjectError, match="no such object"):
        store_at(address).read("none")
    with pytest.raises(InputError, match="there is no bucket 'nowhere'"):
        store_at("s3://nowhere/x").create("a", b"")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreAwayError, match="does not answer"):
        store_at(address).read("none")


@pytest.mark.parametrize("name", ["notes", "linked/notes", "pipe"])
def test_links_and_pipes_of_a_folder_are_not_followed(name: str, tmp_path: Path):
    """A folder may belong to others; the library reads through links, and waits for the writer of a pipe."""
    private, folder = tmp_path / "private", tmp_path / "data"
    private.mkdir()
    folder.mkdir()
    (private / "notes").write_bytes(b"a private key")
    (folder / "notes").symlink_to(private / "notes")
    (folder / "linked").symlink_to(private)
    os.mkfifo(folder / "pipe")
    store, copy = store_at(f"file://{folder}"), tmp_path / "copy"
    calls = (store.stat, store.read, lambda name: store.read_range(name, 0, 1), lambda name: store.download(name, copy))
    for call in (*calls, lambda name: store.create(name, b"x"), lambda name: store.replace(name, b"x")):
        with pytest.raises(InputError, match="leads out of the dataset|not a regular file"):
            call(name)
    with pytest.raises(InputError, match="leads out of the dataset"):
        list(store.names())
    assert not copy.exists() and (private / "notes").read_bytes() == b"a private key"


def test_store_that_creates_once_is_taken(address: str):
    for _ in range(2):
        check_creates_once(store_at(address))


def test_store_that_overwrites_is_refused(address: str, monkeypatch: pytest.MonkeyPatch):
    import obstore

    put: Any = obstore.put_async

    def ignoring(store: Any, name: str, content: Any, **options: Any) -> Any:
        return put(store, name, content, **options | {"mode": "overwrite"})

    monkeypatch.setattr(obstore, "put_async", ignoring)
    with pytest.raises(InputError, match="overwrites existing objects"):
        check_creates_once(store_at(address))


@pytest.mark.parametrize("variable", ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"])
def test_a_relative_file_of_aws_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
):
    """It would begin in the current folder, which may be of others, and can name a program that is started."""
    (tmp_path / "config").write_text(f"[default]\ncredential_process = /usr/bin/touch {tmp_path / 'started'}\n")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_") and "KEY" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, "config")
    with pytest.raises(InputError, match=f"{variable}: 'config' is a relative path"):
        ObjectStore(parse_address(address)).stat("name")
    monkeypatch.setenv(variable, str(tmp_path / "config"))
    with pytest.raises(InputError, match="no credentials for S3"):  # the user's own program returns none
        ObjectStore(parse_address(address)).stat("name")
    assert (tmp_path / "started").exists()


def test_missing_credentials_are_one_line(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in [name for name in os.environ if name.startswith("AWS_") and "KEY" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(InputError, match="no credentials for S3"):
        store_at(address)


def test_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"type: .*pip install -e \S+\[store\]"):
        store_at("s3://b/x")


def test_web_address_is_for_reading(address: str):
    with pytest.raises(InputError, match="is read-only"):
        store_at("https://host/x")


def test_signed_url_holds_no_secret(address: str):
    signed = store_at(address).sign("episodes/a.hdf5", seconds=60)
    assert "s3cret" not in signed and "X-Amz-Signature" in signed


class EndlessAnswer:
    """Answer of a server that declares ten bytes and never stops."""

    meta: ClassVar = {"size": 10, "e_tag": "a"}

    async def stream(self, *, min_chunk_size: int) -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield bytes(8)
        raise AssertionError("nobody reads as much")


def test_answers_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    obstore = pytest.importorskip("obstore", reason="the extra 'store' brings obstore")
    store = store_at(f"file://{tmp_path}/store")

    async def get(*_: object, **__: object) -> EndlessAnswer:
        return EndlessAnswer()

    monkeypatch.setattr(obstore, "get_async", get)
    for call in (lambda: store.read("a"), lambda: store.read_range("a", 0, 10)):
        with pytest.raises(StoreAwayError, match="returned more than 10 bytes"):
            call()
    with pytest.raises(StoreAwayError, match="returned 16 of 10 bytes"):
        store.download("a", tmp_path / "a")
    with pytest.raises(InputError, match="10 bytes; the limit is 9"):
        store.download("a", tmp_path / "a", limit=9)
    assert not (tmp_path / "a").exists()


class SlowAnswer:
    """Answer of a server that sends a byte of a thousand every 10 ms."""

    meta: ClassVar = {"size": 1000, "e_tag": "a"}

    async def stream(self, *, min_chunk_size: int) -> AsyncIterator[bytes]:
        for _ in range(1000):
            await asyncio.sleep(0.01)
            yield b"a"


def test_slow_downloads_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No single block is slow, but the whole object would take too long."""
    import obstore

    async def get(*_: object, **__: object) -> SlowAnswer:
        return SlowAnswer()

    monkeypatch.setattr(obstore, "get_async", get)
    monkeypatch.setattr(library_store, "OBJECT_SECONDS", 0.1)
    begin = time.monotonic()
    with pytest.raises(StoreAwayError, match="the store is too slow"):
        store_at(f"file://{tmp_path}/store").download("a", tmp_path / "a")
    assert time.monotonic() - begin < 5 and not (tmp_path / "a").exists()


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Serve an endless body after a status line as S3; yield the list of that line."""
    status = [b"404"]

    def talk(client: socket.socket) -> None:
        with client, suppress(OSError):
            while client.recv(65536):
                client.sendall(b"HTTP/1.1 " + status[0] + b" x\r\nTransfer-Encoding: chunked\r\n\r\n")
                while True:
                    client.sendall(b"40000\r\n" + bytes(0x40000) + b"\r\n")

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    monkeypatch.setattr(watched_calls, "_MOST_MEMORY", 40 << 20)
    monkeypatch.setattr(watched_calls, "_TRIES", 1)
    monkeypatch.setattr(watched_calls, "_LOOK", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listening.getsockname()[1]}")
        yield status
        listening.shutdown(socket.SHUT_RDWR)


def test_endless_errors_and_listings_end(address: str, hostile: list[bytes]):
    store, before = store_at(address), resident_bytes()
    for call in (lambda: store.create("a", b"x"), lambda: store.replace("a", b"x")):
        with pytest.raises(StoreAwayError, match="an answer that takes more than 40 MiB"):
            call()
    with pytest.raises(MissingObjectError, match="no such object"):
        store.read("a")
    hostile[0] = b"200"
    with pytest.raises(InputError, match="answers without Content-Length"):
        store.read("a")
    with pytest.raises(StoreAwayError, match="an answer of more than 2 MiB"):
        list(store.names())
    assert resident_bytes() - before < 200e6


def test_listings_have_a_limit(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = store_at(address)
    store.create("a", b"")
    store.create("b", b"")
    (tmp_path / "store").mkdir()
    for name in ("a", "b"):
        (tmp_path / "store" / name).touch()
    monkeypatch.setattr(objects, "MOST_NAMES", 1)
    with pytest.raises(InputError, match="lists more than 1 objects"):
        list(store_at(f"file://{tmp_path}/store").names())
    with pytest.raises(InputError, match="lists more than 1 objects"):
        list(store.names())


def test_endless_answers_to_signed_calls_end(
    address: str, hostile: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """They are sent by boto3, which reads answers whole as well."""
    monkeypatch.setattr(s3_client, "_LONGEST", 1 << 20)
    monkeypatch.setattr(ObjectStore, "stat", lambda *_: None)
    (tmp_path / "large").write_bytes(b"x")
    hostile[0], before = b"200", resident_bytes()
    with pytest.raises(StoreAwayError, match="the store does not answer: an answer of more than 1 MiB"):
        create_large(store_at(address), "large", tmp_path / "large", notes=tmp_path / "notes")
    assert resident_bytes() - before < 100e6


@pytest.mark.parametrize("part", [b"HTTP/1.1 200 x\r\nX: ", b"HTTP/1.1 200 x\r\n\r\n"])
def test_dripping_answers_to_signed_calls_end(monkeypatch: pytest.MonkeyPatch, part: bytes):
    """The library's own HTTP would wait for headers without a limit."""
    from botocore.awsrequest import AWSRequest
    from botocore.exceptions import ConnectionClosedError

    monkeypatch.setattr(s3_client, "_SECONDS", 0.2)
    begin = time.monotonic()
    with server(dripping(part)) as (url, _), pytest.raises(ConnectionClosedError):
        s3_client._send(AWSRequest(method="GET", url=url).prepare())
    assert time.monotonic() - begin < 5


def test_no_thread_is_in_the_library_when_the_interpreter_ends(tmp_path: Path):
    """It would abort the process: the command had printed its result, and ended with a signal."""
    code = """
import atexit, sys, threading
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore

atexit.register(lambda: print(sorted(thread.name for thread in threading.enumerate())))
ObjectStore(parse_address(sys.argv[1])).stat("name")
print([thread.name for thread in threading.enumerate() if thread.name == "store-calls"])
"""
    words = [sys.executable, "-P", "-c", code, f"file://{tmp_path}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "['store-calls']\n['MainThread']\n", done.stderr
