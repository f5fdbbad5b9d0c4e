"""Invalid messages: the connection ends, and the head and its other nodes continue."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.line_socket import HeadClient, HeadUnreachableError
from nimbus.runner.cluster.machine import platform_name
from nimbus.runner.cluster.messages import Beat, Beaten, Join, Joined, Leave
from tests.support.cells import make_spec
from tests.support.clusters import job_of

JOIN: dict[str, Any] = {
    "kind": "join",
    "node": "n1",
    "slots": 1,
    "version": nimbus_version(),
    "platform": platform_name(),
    "host": "h",
    "pid": 1,
    "clock": 1.7e9,
}
NAME = "t-s0-000001-v0-00000000"
ROW: dict[str, Any] = {
    "episode_id": NAME,
    "task": "t",
    "seed": 0,
    "idx": 1,
    "variant": 0,
    "attempt": 0,
    "final": True,
    "success": False,
}
FAULT = {"time": 1.0, "run": 1, "worker": "0", "kind": "hang"}
EPISODE = {"group": "drive", "index": 1, "lease": 1, "attempts": [ROW]}


def report(**values: Any) -> dict[str, Any]:
    """Return the report of a row with other values."""
    return {"kind": "report", "node": "n1", "episodes": [EPISODE | {"attempts": [ROW | values]}]}


def nested(depth: int) -> list[Any]:
    """Return nested lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


PATH = f"episodes/{NAME}.hdf5"
HOSTILE: list[dict[str, Any] | bytes] = [
    b"\x00\xff",
    b"[" * 20_000,
    b"x" * 70_000,
    {"kind": "nothing"},
    JOIN | {"node": "../n1"},
    JOIN | {"node": "\u001b[2J"},
    JOIN | {"slots": 0},
    JOIN | {"slots": 2**70},
    JOIN | {"clock": 1e308},
    {"kind": "beat", "node": "n1", "held": {"stolen": [0]}},
    {"kind": "beat", "node": "n1", "held": {"drive": [-1]}},
    {"kind": "faults", "node": "n1", "group": "stolen", "rows": []},
    {"kind": "faults", "node": "n1", "group": "drive", "rows": [FAULT | {"incident": "/elsewhere/mine"}]},
    {"kind": "faults", "node": "n1", "group": "drive", "rows": [FAULT | {"incident": "incidents/../../user"}]},
    {"kind": "report", "node": "n1", "episodes": [EPISODE | {"group": "stolen"}]},
    {"kind": "report", "node": "n1", "episodes": [EPISODE | {"index": -1}]},
    {"kind": "report", "node": "n1", "episodes": [EPISODE | {"index": 2}]},
    {"kind": "report", "node": "n1", "episodes": [EPISODE | {"attempts": [ROW | {"path": "../../x.hdf5"}]}]},
    report(seed=2**63),
    report(seed=-(2**63) - 1),
    report(drawn={"a": nested(900)}),
    report(drawn={"a": nested(40)}),
    report(reason="\u001b[2J", success=True),
    report(episode_id="e"),
    report(episode_id="t" * 300 + NAME),
    report(episode_id=NAME.replace("000001", "000002")),
    report(path=PATH.replace("000001", "000002"), success=True),
    report(path=f"episodes/{'x' * 5000}.hdf5", success=True),
    report(failure={"path": "failures/x.hdf5", "byte_count": 1, "sha256": ""}),
    report(videos=[{"path": "episodes/other.front.mp4", "byte_count": 1, "sha256": ""}]),
    report(videos=[{"path": f"episodes/{NAME}.{'x' * 300}.mp4", "byte_count": 1, "sha256": ""}]),
    {"kind": "report", "node": "n1", "episodes": [EPISODE | {"staged": {NAME: "a\0b"}}]},
    {"kind": "report", "node": "n1", "episodes": [EPISODE | {"staged": {NAME: ".."}}]},
    {"kind": "report", "node": "n1", "episodes": [EPISODE | {"objects": {PATH: 2**70}}]},
    {"kind": "pull", "node": "n1", "idle": -1, "ahead": 0},
    {"kind": "details", "node": "n1", "status": {"task": "drive", "target": 1e300}},
]


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the socket of a head that runs in a thread."""
    place = tmp_path_factory.mktemp("head")
    path = place / "s"
    server = HeadServer(job_of(make_spec(place / "data")), path)
    thread = threading.Thread(target=server.run)
    thread.start()
    yield path
    server.ask_to_stop()
    HeadClient(path).ask(Leave(node="n1", why="done"))
    thread.join(20)
    assert not thread.is_alive()


def sent(path: Path, line: bytes) -> bytes:
    """Send a line; return the answer, empty if the connection was closed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5.0)
        connection.connect(str(path))
        try:
            connection.sendall(line + b"\n")
            return connection.recv(1 << 16)
        except ConnectionError:
            return b""


@pytest.mark.parametrize("message", HOSTILE, ids=lambda message: str(message)[:60])
def test_head_survives_a_hostile_message(head: Path, message: dict[str, Any] | bytes) -> None:
    """The next connection, which gets the same descriptor, is served."""
    client = HeadClient(head)
    assert isinstance(client.ask(Join(**{name: value for name, value in JOIN.items() if name != "kind"})), Joined)
    client.close()
    assert sent(head, message if isinstance(message, bytes) else json.dumps(message).encode()) == b""
    assert isinstance(client.ask(Beat(node="n1", held={})), Beaten)
    client.close()


@contextmanager
def foreign_head(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()

        def talk() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                answer(connection)

        thread = threading.Thread(target=talk)
        thread.start()
        yield
        thread.join(10)


@pytest.mark.parametrize("answer", [b"no JSON\n", b'{"kind":"stolen"}\n', b"x" * 70_000], ids=["text", "kind", "long"])
def test_foreign_answer_is_none(tmp_path: Path, answer: bytes) -> None:
    with foreign_head(tmp_path / "s", lambda connection: connection.sendall(answer)):
        with pytest.raises(HeadUnreachableError):
            HeadClient(tmp_path / "s").ask(Beat(node="n1", held={}), patience=3.0)


def test_trickling_answer_ends_in_time(tmp_path: Path) -> None:
    """One byte every 50 ms once kept each wait of 100 ms alive."""

    def trickle(connection: socket.socket) -> None:
        connection.settimeout(2.0)
        try:
            for _ in range(40):
                connection.sendall(b" ")
                threading.Event().wait(0.05)
        except OSError:
            return

    with foreign_head(tmp_path / "s", trickle):
        with pytest.raises(HeadUnreachableError):
            HeadClient(tmp_path / "s").ask(Beat(node="n1", held={}), patience=0.3)
