"""Servers that are absent, silent, broken or of another protocol: they cause one line at the start, and a fault during
an episode."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.open_policy import open_policy
from nimbus.datagen.policies.policy import PolicyFault, check_actions
from nimbus.datagen.policies.wires import remote_policy, websocket
from nimbus.datagen.policies.wires.codec import OPENPI, VLA_EVAL
from nimbus.datagen.policies.wires.server import PolicyServer
from tests.datagen.policies.wires.test_remote_policy import GROOT_MAP, begun, file
from tests.support.policy_servers import (
    HOST,
    TASK,
    Chooser,
    episode,
    free_port,
    groot_server,
    observation,
    openpi_server,
    raw_server,
    served,
    websocket_server,
)

SCHEMES = pytest.mark.parametrize("scheme", ["ws", "groot", "vla-eval"])


def answer_http(connection: socket.socket) -> None:
    connection.settimeout(60.0)
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def stay_silent(connection: socket.socket) -> None:
    connection.settimeout(60.0)
    while connection.recv(4096):
        pass


def greet(connection: socket.socket) -> None:
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", connection.recv(4096))
    assert key
    accept = base64.b64encode(hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


def declare_2_gb(connection: socket.socket) -> None:
    """Greet as a websocket, send metadata, and answer the first observation with the beginning of a frame of 2 GB."""
    greet(connection)
    metadata = OPENPI.pack({"checkpoint": "c"})
    connection.sendall(b"\x82" + bytes([len(metadata)]) + metadata)
    connection.settimeout(60.0)
    connection.recv(4096)
    connection.sendall(b"\x82\x7f" + (2**31).to_bytes(8, "big") + bytes(100))
    stay_silent(connection)


def refused(address: str, *, opening: str = "20") -> str:
    with pytest.raises(InputError) as caught:
        open_policy(address, options={"checkpoint": "c", "opening": opening})
    line = str(caught.value)
    assert line.startswith(f"--policy {address}: ") and "\n" not in line
    assert line.endswith("; start the policy's server first")
    return line


def fault(address: str, seen: Any = None, **options: str) -> PolicyFault:
    policy = begun(address, **options)
    policy.reset(episode())
    with pytest.raises(PolicyFault) as caught:
        answer = policy.act(seen or observation())
        check_actions(answer, task=TASK, posture=np.array([0.0, 0.0, 0.04]), execute=4, first=True)
    policy.close()
    return caught.value


@SCHEMES
def test_absent_server_is_one_line(scheme: str):
    assert "no server: connection refused" in refused(f"{scheme}://{HOST}:{free_port()}")


@SCHEMES
def test_http_server_is_one_line(scheme: str):
    with raw_server(answer_http) as port:
        line = refused(f"{scheme}://{HOST}:{port}")
    assert ("does not use ZeroMQ" if scheme == "groot" else "answers HTTP 404, so it is no websocket") in line


@SCHEMES
def test_silent_server_is_one_line(scheme: str):
    with raw_server(stay_silent) as port:
        assert re.search("no (greeting|answer) in [01] s", refused(f"{scheme}://{HOST}:{port}", opening="0.5"))


@SCHEMES
def test_server_that_hangs_up_is_one_line(scheme: str):
    with raw_server(lambda _: None) as port:
        refused(f"{scheme}://{HOST}:{port}")


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("not msgpack", "the server failed: not msgpack"),
        (b"\xc1", "the server sent invalid msgpack"),
        (msgpack.packb([1]), "the server sent a tuple instead of a map"),
        (b"\x81\xa1a" + b"\x91" * 900 + b"\xc0", "the server sent lists and maps nested more than 32 levels deep"),
    ],
)
def test_metadata_of_another_form_are_one_line(first: str | bytes, said: str):
    with websocket_server(lambda connection: connection.send(first)) as address:
        assert said in refused(address)


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        ("Traceback\n  line 1\nKeyError: 'observation/image'\n", Reason.POLICY_ERROR, "KeyError: 'observation/image'"),
        (b"\xc1\xc1", Reason.POLICY_ERROR, "the server sent invalid msgpack"),
        ([1, 2], Reason.POLICY_ERROR, "the server sent a tuple instead of a map"),
        ({}, Reason.BAD_ACTION, "the answer has no array 'actions'; it has nothing"),
        ({"action": np.zeros((4, 3))}, Reason.BAD_ACTION, "no array 'actions'; it has action"),
        ({"actions": [[0.0] * 3] * 4}, Reason.BAD_ACTION, "no array 'actions'"),
        ({"actions": np.zeros((4, 7))}, Reason.BAD_ACTION, r"shape \(4, 7\), expected \(K, 3\): a, b, gripper"),
        ({"actions": np.zeros((1, 4, 3))}, Reason.BAD_ACTION, r"shape \(1, 4, 3\), expected"),
        ({"actions": np.zeros((0, 3))}, Reason.BAD_ACTION, r"shape \(0, 3\), expected"),
        ({"actions": np.zeros(3)}, Reason.BAD_ACTION, "1 actions, but 4 must be executed: lower --execute"),
        ({"actions": np.zeros((10_001, 3), np.int8)}, Reason.BAD_ACTION, "10001 actions; at most 10000 are allowed"),
        ({"actions": np.full((4, 3), np.nan)}, Reason.BAD_ACTION, "not finite"),
        ({"actions": np.full((4, 3), [30.0, 0, 0.04])}, Reason.BAD_ACTION, "a of 30.00 is far beyond"),
        ({"actions": np.full((4, 3), [0, 0, 1.0])}, Reason.BAD_ACTION, "gripper of 1.00 is far beyond"),
        (
            {"actions": np.array([[0, 0, 0.04]] * 2 + [[0, 0, 0.3]] * 2)},
            Reason.BAD_ACTION,
            "gripper of 0.30 is far beyond 0.00 to 0.04",
        ),
        (
            msgpack.packb({"actions": {b"__ndarray__": True, b"data": b"\0" * 8, b"dtype": "|O", b"shape": [1]}}),
            Reason.POLICY_ERROR,
            "an array of type '|O' is not supported, only arrays of numbers".replace("|", r"\|"),
        ),
    ],
)
def test_answer_that_is_no_action_is_a_fault(answer: object, reason: Reason, said: str):
    with openpi_server(lambda _: answer) as address:
        found = fault(address)
    assert found.reason is reason and re.search(said, found.detail)


def test_frame_of_2_gb_is_a_fault():
    with raw_server(declare_2_gb) as port:
        found = fault(f"ws://{HOST}:{port}")
    assert found.reason is Reason.POLICY_ERROR and "a frame of more than 64 MiB" in found.detail


def test_groot_frame_of_more_than_64_mb_is_a_fault(tmp_path: Path):
    with groot_server(answer=bytes(65 * 2**20)) as address:
        assert "a frame of more than 64 MiB" in fault(address, map=file(tmp_path, GROOT_MAP)).detail


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": "Unknown endpoint"}, "the server failed: Unknown endpoint"),
        (b"ERROR", "the server sent invalid msgpack|an int instead of a map"),
        ([{"arm": np.zeros((1, 4, 2))}, {}], "no array 'hand'; it has arm"),
        (
            [{"arm": np.zeros((1, 4, 2)), "hand": np.zeros((1, 3, 1))}, {}],
            r"'hand' has shape \(3, 1\), expected \(4, 1\)",
        ),
        ([{"arm": np.zeros((2, 4, 2)), "hand": np.zeros((2, 4, 1))}, {}], r"'arm' has shape \(2, 4, 2\)"),
        ([[1], {}], "the answer is not a map of actions"),
    ],
)
def test_groot_answer_that_is_no_action_is_a_fault(answer: object, said: str, tmp_path: Path):
    with groot_server(answer=answer) as address:
        assert re.search(said, fault(address, map=file(tmp_path, GROOT_MAP)).detail)


def test_late_answer_is_a_timeout_and_not_taken_later():
    is_over = threading.Event()

    def answer(held: Any) -> object:
        if held["nimbus"]["step"] == 8:
            is_over.wait(60)
        return {"actions": np.full((4, 3), float(held["nimbus"]["step"]))}

    with openpi_server(answer) as address:
        policy = begun(address, timeout="3")
        policy.reset(episode())
        assert policy.act(observation(0))[0, 0] == 0
        with pytest.raises(PolicyFault, match="no answer in 3 s") as caught:
            policy.act(observation(8))
        is_over.set()
        assert caught.value.reason is Reason.POLICY_TIMEOUT
        policy.reset(episode())
        assert policy.act(observation(4))[0, 0] == 4
        policy.close()


def test_server_that_does_not_read_is_a_fault():
    is_over = threading.Event()

    def talk(connection: Any) -> None:
        connection.send(OPENPI.pack({"checkpoint": "c"}))
        is_over.wait(60)

    big = {"front": (1500, 1500), "wrist": (1500, 1500)}
    with websocket_server(talk) as address:
        assert fault(address, observation(cameras=big), timeout="0.05").reason in (
            Reason.POLICY_ERROR,
            Reason.POLICY_TIMEOUT,
        )
        is_over.set()


def test_observation_of_more_than_64_mb_is_refused():
    with openpi_server(lambda _: None) as address:
        policy = begun(address)
        policy.reset(episode())
        with pytest.raises(InputError, match="an observation 69 MiB, a frame has at most 64; resize in --map FILE"):
            policy.act(observation(cameras={"front": (4000, 3000), "wrist": (4000, 3000)}))


def test_server_that_closes_and_returns_goes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_policy, "_PAUSES", (0.02, 0.05))
    first = PolicyServer(Chooser)
    thread = threading.Thread(target=first.serve_forever)
    thread.start()
    policy = begun(first.address)
    policy.reset(episode())
    policy.act(observation())
    first.close()
    thread.join()
    with pytest.raises(PolicyFault, match="the server closed the connection") as caught:
        policy.act(observation(8))
    assert caught.value.reason is Reason.POLICY_ERROR

    again: list[PolicyServer] = []

    def come_back() -> None:
        time.sleep(0.3)
        again.append(PolicyServer(Chooser, port=first_port))
        again[0].serve_forever()

    first_port = int(policy._where.rpartition(":")[2])
    thread = threading.Thread(target=come_back)
    thread.start()
    policy.reset(episode())
    local = Chooser()
    local.reset(episode())
    np.testing.assert_array_equal(policy.act(observation()), local.act(observation()))
    policy.close()
    again[0].close()
    thread.join()


def test_server_that_stays_away_is_a_timeout(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_policy, "_PAUSES", (0.02, 0.05))
    with openpi_server(lambda _: None) as address:
        policy = begun(address, timeout="0.03")
        policy.close()
    with pytest.raises(PolicyFault, match="no server answered within 0 s: no server: connection refused") as caught:
        policy.reset(episode())
    assert caught.value.reason is Reason.POLICY_TIMEOUT


def test_server_that_returns_as_another_is_refused():
    with openpi_server(lambda _: None) as address:
        policy = begun(address)
        policy.close()
    port = int(address.rpartition(":")[2])
    other = PolicyServer(Chooser, port=port)
    thread = threading.Thread(target=other.serve_forever)
    thread.start()
    with pytest.raises(InputError, match="the server now serves another policy"):
        policy.reset(episode())
    policy.close()
    other.close()
    thread.join()


def test_waiting_is_announced_to_the_watchdog(monkeypatch: pytest.MonkeyPatch):
    from nimbus.datagen import progress

    asked: list[float] = []
    with served() as address:
        policy = begun(address)
        progress.subscribe(lambda _: None, patience=asked.append)
        try:
            policy.reset(episode())
            policy.act(observation())
            policy.act(observation(8))
        finally:
            progress._listeners.clear()
            progress._patience.clear()
        policy.close()
    assert [seconds for seconds in asked if seconds] == [310.0, 310.0, 40.0]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            {"type": "error", "payload": {"error": "observation_failed: KeyError"}},
            "the server failed: observation_failed",
        ),
        ({"type": "action", "payload": {"actions": 1}, "seq": 1}, "the server sent action 1, expected action 3"),
        ({"type": "hello", "payload": {}}, "the server sent hello 3, expected action 3"),
        ({"type": "action", "payload": None}, "the server sent action 3, expected action 3"),
        ({}, "the server sent None 3"),
        ({"type": np.zeros(2), "seq": np.zeros(2)}, "the server sent [0. 0.] [0. 0.], expected action 3"),
    ],
)
def test_vla_eval_message_that_is_no_action_is_a_fault(message: dict[str, object], said: str):
    def talk(connection: Any) -> None:
        for frame in connection:
            sent: Any = VLA_EVAL.unpack(frame)
            number = {"seq": sent["seq"]}
            if sent["type"] == "hello":
                connection.send(VLA_EVAL.pack({"type": "hello", "payload": {}, **number}))
            elif sent["type"] == "observation":
                connection.send(VLA_EVAL.pack(number | message))

    with websocket_server(talk) as address:
        assert said in fault(address.replace("ws:", "vla-eval:")).detail


@pytest.mark.parametrize("waits", [True, False])
def test_pings_without_end_do_not_hang(waits: bool, monkeypatch: pytest.MonkeyPatch):
    """To answer a ping, the library takes a lock that its own ``close`` needs."""
    monkeypatch.setattr(websocket, "_CLOSING", 0.1)
    is_full, is_over = threading.Event(), threading.Event()
    faults: list[PolicyFault] = []

    def flood(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greet(connection)
        connection.settimeout(0.5)
        with contextlib.suppress(OSError):  # the client waits for this side to read its answers
            while True:
                connection.sendall((b"\x89\x7d" + bytes(125)) * 1000)
        is_full.set()
        is_over.wait(60.0)

    def connect_and_close() -> None:
        connection = websocket.Socket(address, seconds=60.0)
        is_full.wait(60.0)
        try:
            if waits:
                connection.receive(seconds=0.1)
        except PolicyFault as fault:
            faults.append(fault)
        connection.close()

    with raw_server(flood) as port:
        address = f"ws://{HOST}:{port}"
        client = threading.Thread(target=connect_and_close, daemon=True)
        client.start()
        client.join(30.0)
        is_over.set()
        assert not client.is_alive()
    assert [fault.reason for fault in faults] == [Reason.POLICY_TIMEOUT] * waits


def test_frame_of_tiny_parts_is_a_fault(monkeypatch: pytest.MonkeyPatch):
    """A message part of one byte takes a hundred bytes of memory."""
    stop = threading.Event()

    def talk(connection: Any) -> None:
        connection.send(OPENPI.pack({"checkpoint": "c"}))
        connection.recv()
        connection.send(iter(lambda: b"" if stop.wait(0.01) else b"x", b""))

    with websocket_server(talk) as address:
        connection = websocket.Socket(address, seconds=60.0)
        connection.send(b"x", seconds=60.0)
        connection.receive(seconds=60.0)
        monkeypatch.setattr(websocket, "_MOST_MEMORY", -1)
        monkeypatch.setattr(websocket, "_LOOK", 0.01)
        with pytest.raises(PolicyFault, match="in parts that take more than"):
            connection.receive(seconds=60.0)
        stop.set()
