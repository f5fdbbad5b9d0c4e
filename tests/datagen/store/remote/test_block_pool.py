"""Caches of nodes as a common pool, and samples of a dataset in a store."""

from __future__ import annotations

import base64
import http.client
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.training.order import FrameBlock
from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.datasets.training.samples import Samples
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.remote import block_peers, block_server
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.block_memory import MEMORY
from nimbus.datagen.store.remote.block_peers import PEERS, TOKEN, CachePeers
from nimbus.datagen.store.remote.block_server import BlockServer
from nimbus.datagen.store.remote.blocks import BLOCK, ObjectBlocks
from nimbus.datagen.store.remote.cache_root import note_origin
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.sealed_messages import seal_of
from nimbus.datagen.store.remote.working_copy import copy_folder
from tests.support.s3 import upload
from tests.support.synthetic import make_rendered, write_dataset

WORD = "a-token-that-nodes-share"


@pytest.fixture
def stored(address: str, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, str]:
    """Return a dataset in a folder, in the form of ``request.param``, and a copy of it in the store."""
    folder = tmp_path / "data"
    kind = getattr(request, "param", "lossless")
    write_dataset(folder, [make_rendered(index, steps=12) for index in range(3)], images=kind.partition("_")[0])
    if kind.endswith("_shards"):
        export(folder, tmp_path / "shards", to="shards")
        folder = tmp_path / "shards"
    upload(folder, address)
    MEMORY.clear()
    return folder, address


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int]]:
    """Return a list of the ranges read from the store, by object and first byte."""
    found: Counter[tuple[str, int]] = Counter()
    read = ObjectStore.read_range

    def counted(store: ObjectStore, name: str, start: int, *rest: Any, **options: Any) -> bytes:
        found[name, start] += 1
        return read(store, name, start, *rest, **options)

    monkeypatch.setattr(ObjectStore, "read_range", counted)
    return found


@contextmanager
def serving(address: str, *, token: str) -> Iterator[BlockServer]:
    server = BlockServer("127.0.0.1", 0, [address], token=token)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("stored", ["lossless", "video_shards"], indirect=True)
def test_samples_from_a_store_are_the_folders(stored: tuple[Path, str], reads: Counter[tuple[str, int]]):
    """Each block is read from the store once; a second epoch reads nothing from the store."""
    samples = Samples(Reader(stored[1]), seed=3, block=6, pool=2)
    for epoch in (0, 1):
        mine = list(samples)
        other = Samples(Reader(stored[0]), seed=3, block=6, pool=2)
        other.set_epoch(epoch)
        for one, two in zip(mine, other, strict=True):
            assert one["index"] == two["index"]
            assert np.array_equal(one["observation.images.front"], two["observation.images.front"])
        assert set(reads.values()) == {1}
        MEMORY.clear()


def test_fetch_leaves_nothing_to_read(stored: tuple[Path, str], reads: Counter[tuple[str, int]]):
    with Reader(stored[1], features=("observation.images.front",)) as reader:
        reader.fetch([FrameBlock(episode=1, start=4, stop=9)])
        before = reads.total()
        reader.frames.images(1, "front", 4, 9)
        assert before and reads.total() == before


def test_interrupted_epoch_resumes_from_a_store(stored: tuple[Path, str]):
    samples = Samples(Reader(stored[1]), seed=1, block=4, pool=2)
    iterator = iter(samples)
    given = [next(iterator)["index"] for _ in range(7)]
    state = samples.state_dict()
    iterator.close()  # pyright: ignore[reportAttributeAccessIssue]
    rest = Samples(Reader(stored[1]))
    rest.load_state_dict(state)
    assert sorted(given + [sample["index"] for sample in rest]) == list(range(len(rest.reader)))


def test_pool_reads_each_block_once(address: str, monkeypatch: pytest.MonkeyPatch, reads: Counter[tuple[str, int]]):
    """The readers share only the pool: each block is read from the store once, and none when a node is gone."""
    content = np.random.default_rng(0).bytes(5 * BLOCK + 100)
    ObjectStore(parse_address(address)).create("a/big", content)
    note_origin(copy_folder(parse_address(address)), address)
    with serving(address, token=WORD) as one, serving(address, token=WORD) as two:
        monkeypatch.setenv(PEERS, f"{one.url},{two.url}")
        monkeypatch.setenv(TOKEN, WORD)
        for _ in range(3):
            MEMORY.clear()
            assert read_all(address) == content
        assert len(reads) == 6 and set(reads.values()) == {1}
        two.shutdown()
        two.server_close()
        block_peers._peers.cache_clear()
        MEMORY.clear()
        assert read_all(address) == content
    MEMORY.clear()
    block_peers._peers.cache_clear()
    assert read_all(address) == content


def test_lost_node_moves_only_its_blocks():
    urls = tuple(f"http://n{number}:1" for number in range(4))
    before, after = CachePeers(urls), CachePeers(urls[:3])
    owners = [(before.order("s3://b/x", "o", n)[0], after.order("s3://b/x", "o", n)[0]) for n in range(400)]
    assert all(old == new for old, new in owners if old != urls[3])
    counts = Counter(old for old, _ in owners)
    assert min(counts.values()) > 60 and len(counts) == 4


def test_closed_idle_connection_loses_no_node(address: str, monkeypatch: pytest.MonkeyPatch):
    """The server closes a connection after each answer, as it does after a minute without a request."""
    put_small(address)
    monkeypatch.setattr(block_server._BlockHandler, "handle", lambda handler: handler.handle_one_request())
    with serving(address, token=WORD) as server:
        mine = CachePeers((server.url,), WORD)
        assert [mine.read(address, "a/big", 0, 100) for _ in range(3)] == [bytes(100)] * 3


def test_missing_object_loses_no_node(address: str):
    put_small(address)
    with serving(address, token=WORD) as server:
        mine = CachePeers((server.url,), WORD)
        assert mine.read(address, "a/none", 0, 100) is None
        assert mine.read(address, "a/big", 0, 100) == bytes(100)


def test_forked_reader_has_its_own_connections(address: str):
    """On a shared connection, one of the processes would read the block that the other has requested."""
    put_small(address)
    with serving(address, token=WORD) as server:
        mine = CachePeers((server.url,), WORD)
        mine.read(address, "a/big", 0, 100)
        before = set(mine._connections.values())
        with patch("os.getpid", return_value=-1):
            mine.read(address, "a/big", 0, 100)
            assert before.isdisjoint(mine._connections.values())


def test_forked_process_is_refused_by_the_library(address: str, tmp_path: Path):
    """A forked process has none of the library's threads, so every call would wait forever; it can read from S3."""
    store, folder = put_small(address), ObjectStore(parse_address(f"file://{tmp_path}/bucket"))
    folder.create("a", b"content")
    with patch("os.getpid", return_value=-1):
        assert len(store.read_range("a/big", 0, 100)) == 100
        for call in (lambda: store.create("b", b""), lambda: folder.read("a")):
            with pytest.raises(InputError, match="multiprocessing_context='spawn'"):
                call()


def test_a_node_that_refuses_the_token_is_lost(address: str, caplog: pytest.LogCaptureFixture):
    """Another user on the port of a node that has ended can answer this, and must not stop the readers."""
    put_small(address)
    with serving(address, token="another-token-of-nodes") as other, serving(address, token=WORD) as server:
        mine = CachePeers((other.url, server.url), WORD)
        numbers = [mine.read(address, "a/big", 0, 100) for _ in range(3)]
        assert numbers == [bytes(100)] * 3
        alone = CachePeers((other.url,), WORD)
        assert [alone.read(address, "a/big", 0, 100) for _ in range(3)] == [None] * 3
        alone._lost.clear()
        assert alone.read(address, "a/big", 0, 100) is None
    assert caplog.text.count(f"{other.url}: the cache of a node refuses this token") in (1, 2)  # once for each reader


def test_server_gives_named_datasets_only(address: str):
    with serving(address, token=WORD) as server:
        mine = CachePeers((server.url,), WORD)
        assert mine.read(f"{address}y", "dataset.json", 0, 10) is None
        assert CachePeers((server.url,), WORD).read(address, "../x", 0, 10) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_server_needs_a_token(host: str):
    with pytest.raises(InputError, match="without a token"):
        BlockServer(host, 0, [], token="")


@pytest.mark.parametrize("text", ["node1:7070", "https://n:1", "http://user@n:1", "http://n:1/path", "http://n:x"])
def test_peers_that_are_none_are_one_line(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(PEERS, text)
    with pytest.raises(InputError, match="is not the address of a cache server"):
        block_peers.peers()


def put_small(address: str) -> ObjectStore:
    store = ObjectStore(parse_address(address))
    store.create("a/big", bytes(100))
    note_origin(copy_folder(store.address), address)
    return store


def read_all(address: str) -> bytes:
    blocks = ObjectBlocks(address, "a/big")
    end = 5 * BLOCK + 100
    return b"".join(blocks.read(number, end) for number in range(6))


OF_PAGES = {"Host": "evil.example"}, {"Origin": "http://evil.example"}


def sealed_path(token: str) -> str:
    return f"/{base64.urlsafe_b64encode(seal_of(token).encrypt(b'/x/y/0?needed=1')).decode()}"


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        *((path, {}, 401) for path in ("/", "/x/y/0?needed=1", "/AAAA", sealed_path("another-token-of-nodes"))),
        ("/x/y/0?needed=1", {"Authorization": f"Bearer {WORD}"}, 401),
        (sealed_path(WORD), {}, 404),
        *((sealed_path(WORD), headers, 403) for headers in OF_PAGES),
    ],
    ids=["root", "plain", "short", "other word", "bearer", "sealed", "host", "origin"],  # the paths are random
)
def test_other_users_and_pages_read_no_block(path: str, headers: dict[str, str], code: int, tmp_path: Path):
    with serving(f"file://{tmp_path}", token=WORD) as server:
        client = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        client.request("GET", path, headers=headers)
        assert client.getresponse().status == code


def test_a_listener_without_the_token_reads_and_gives_nothing(address: str):
    """Another user can listen on the port of a node that has ended, and relay requests to other nodes."""
    store = put_small(address)
    store.create("a/other", b"private words of the other object" * 10)
    seen: list[bytes] = []
    with serving(address, token=WORD) as server, socket.create_server(("127.0.0.1", 0)) as listening:

        def relay(answer: bytes) -> bytes | None:
            """Let a reader ask the listener, which answers with bytes, or else with what the node answers."""

            def serve() -> None:
                client, _ = listening.accept()
                with client, socket.create_connection(("127.0.0.1", server.server_port)) as node:
                    seen.append(client.recv(65_536))
                    node.sendall(seen[-1])
                    seen.append(_whole(node))
                    client.sendall(answer or seen[-1])

            thread = threading.Thread(target=serve)
            thread.start()
            found = CachePeers((f"http://127.0.0.1:{listening.getsockname()[1]}",), WORD).read(
                address, "a/other", 0, 330
            )
            thread.join()
            return found

        assert relay(b"") == b"private words of the other object" * 10  # what a node has sealed is true
        kept = seen[-1]
        assert relay(kept) is None  # also an answer to an earlier request
        assert relay(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n" + bytes(400)) is None
    everything = b"".join(seen)
    assert not any(word in everything for word in (b"private", b"other", WORD.encode()))


def _whole(node: socket.socket) -> bytes:
    """Read the answer of a node to its end."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += node.recv(65_536)
    head, _, content = found.partition(b"\r\n\r\n")
    size = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(content) < size:
        content += node.recv(65_536)
    return head + b"\r\n\r\n" + content


def test_a_short_token_is_refused(monkeypatch: pytest.MonkeyPatch):
    """Requests and answers could be opened by trying words."""
    monkeypatch.setenv(PEERS, "http://node1:7070")
    for token, line in (("word", "is not a token"), ("", "no token for the caches")):
        monkeypatch.setenv(TOKEN, token)
        with pytest.raises(InputError, match=line):
            block_peers.peers()


def test_a_node_that_drips_is_lost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(block_peers, "_WHOLE", 0.2)

    def drip() -> None:
        client, _ = listening.accept()
        with client, suppress(OSError):
            client.sendall(b"HTTP/1.1 200 x\r\nContent-Length: 100\r\n\r\n")
            while True:
                client.sendall(b"a")
                time.sleep(0.01)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=drip, daemon=True).start()
        begin = time.monotonic()
        node = CachePeers((f"http://127.0.0.1:{listening.getsockname()[1]}",), WORD)
        assert node.read("s3://b/x", "a", 0, 100) is None
    assert time.monotonic() - begin < 5 and node._lost
