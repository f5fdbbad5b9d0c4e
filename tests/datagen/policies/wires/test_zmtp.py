"""Requests over ZeroMQ's protocol: they reach servers that use ZeroMQ's library, and a hostile server gains nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import zmq

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.machine import resident_bytes
from nimbus.datagen.policies.policy import PolicyFault
from nimbus.datagen.policies.wires.zmtp import Requests
from tests.support.policy_servers import HOST, raw_server

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REP"
DELIMITER = b"\x01\x00"
ANSWER = DELIMITER + b"\x00\x02ok"


def server(*answers: bytes, first: bytes = GREETING + READY) -> Callable[[socket.socket], None]:
    """Return a server that greets and sends an answer to each request; the last one again and again."""

    def talk(connection: socket.socket) -> None:
        connection.settimeout(5.0)
        with contextlib.suppress(OSError), connection.makefile("rb") as file:
            connection.sendall(first)
            file.read(len(GREETING + READY))
            for answer in answers:
                file.read(2)
                file.read(int.from_bytes(file.read(9)[1:], "big"))
                connection.sendall(answer)
            while answers:
                connection.sendall(answers[-1])

    return talk


@contextlib.contextmanager
def library_server(**options: int) -> Iterator[str]:
    """Return the address of a server of ZeroMQ's library, which returns what it is sent."""
    context = zmq.Context()
    socket = context.socket(zmq.REP)
    for name, value in {"LINGER": 0, **options}.items():
        socket.setsockopt(getattr(zmq, name), value)
    port, is_over = socket.bind_to_random_port(f"tcp://{HOST}"), threading.Event()

    def talk() -> None:
        while not is_over.is_set():
            if socket.poll(10):
                socket.send(socket.recv())

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield f"tcp://{HOST}:{port}"
    finally:
        is_over.set()
        thread.join()
        socket.close()
        context.term()


def fault(talk: Callable[[socket.socket], None], *, seconds: float = 5.0) -> PolicyFault:
    with raw_server(talk) as port, pytest.raises(PolicyFault) as caught:
        requests = Requests(f"tcp://{HOST}:{port}", seconds=seconds)
        try:
            requests.call(b"x", seconds=seconds)
        finally:
            requests.close()
    return caught.value


def test_the_library_answers():
    with library_server() as address:
        requests = Requests(address, seconds=5.0)
        for content in (b"", b"x", bytes(255), bytes(256), bytes(3 << 20)):
            assert requests.call(content, seconds=5.0) == content
        requests.close()


def test_heartbeats_are_answered():
    """The library closes a connection whose heartbeat is not answered."""
    with library_server(HEARTBEAT_IVL=20, HEARTBEAT_TIMEOUT=2000) as address:
        requests = Requests(address, seconds=5.0)
        for _ in range(3):
            time.sleep(0.05)
            assert requests.call(b"x", seconds=5.0) == b"x"
        requests.close()


def test_parts_without_end_between_calls_take_no_memory():
    part = b"\x03" + (1 << 20).to_bytes(8, "big") + bytes(1 << 20)
    with raw_server(server(ANSWER, DELIMITER + 64 * part)) as port:
        requests, before = Requests(f"tcp://{HOST}:{port}", seconds=5.0), resident_bytes()
        assert requests.call(b"x", seconds=5.0) == b"ok"
        requests._send(DELIMITER + b"\2" + bytes(8))  # the server answers while this process does something else
        time.sleep(0.2)
        assert resident_bytes() - before < 100e6  # 64 MiB of the test's own server
        with pytest.raises(PolicyFault, match="several parts"):
            requests.call(b"x", seconds=5.0)
        requests.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (DELIMITER + b"\x01\x01x", "an answer of several parts"),
        (b"\x00\x01x", "no answer to a request"),
        (DELIMITER + b"\x02" + bytes([255] * 8), "a frame of more than 64 MiB"),
        (b"\x06" + (1 << 20).to_bytes(8, "big"), "does not use ZeroMQ"),
        (b"\xf8", "does not use ZeroMQ"),
        (b"\x04\x07\x04PING\x00\x00", "1000 commands instead of an answer"),
    ],
)
def test_other_answers_are_faults(answer: bytes, said: str):
    assert said in fault(server(answer)).detail


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "does not use ZeroMQ"),
        (b"\xff" + bytes(8) + b"\x7f\x01" + bytes(60), "older than 4.0"),
        (GREETING.replace(b"NULL\0", b"CURVE"), "wants a password"),
        (GREETING + READY.replace(b"REP", b"PUB"), "does not answer requests"),
        (GREETING + b"\x04\x06\x05READY", "does not answer requests"),
        (GREETING + b"\x04\x12\x05READY\x0bSocket-Type", "does not answer requests"),
        (GREETING + b"\x04\x06\x05ERROR", "does not answer requests"),
        (GREETING[:40], "no answer in 0 s"),
    ],
)
def test_other_greetings_are_faults(first: bytes, said: str):
    def talk(connection: socket.socket) -> None:
        server(first=first)(connection)
        with contextlib.suppress(OSError):
            connection.recv(1)

    assert said in fault(talk, seconds=0.3).detail


def test_single_bytes_do_not_extend_the_time():
    def drip(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for byte in GREETING:
                connection.sendall(bytes([byte]))
                time.sleep(0.05)

    begin = time.monotonic()
    assert fault(drip, seconds=0.3).reason is Reason.POLICY_TIMEOUT
    assert time.monotonic() - begin < 5.0
