from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.runner.cell.channel import LONGEST, MOST_DESCRIPTORS, Channel, ChannelError, pair

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def of_length(count: int) -> dict[str, str]:
    """A message of so many bytes."""
    return {"x": "a" * (count - len('{"x":""}'))}


@given(st.dictionaries(st.text(), PLAIN, max_size=5))
def test_what_is_sent_is_received(message: dict) -> None:
    ours, theirs = pair()
    ours.send(message)
    assert theirs.receive() == (message, [])
    ours.close()
    theirs.close()


def test_descriptors_travel_along_and_lead_to_the_same_file(tmp_path: Path) -> None:
    ours, theirs = pair()
    with (tmp_path / "file").open("w+b") as file:
        ours.send({"n": 1}, [file.fileno()])
        received = theirs.receive()
        assert received is not None
        message, (fd,) = received
        assert message == {"n": 1} and not os.get_inheritable(fd)
        os.write(fd, b"hello")
        os.close(fd)
    assert (tmp_path / "file").read_bytes() == b"hello"


def test_messages_up_to_the_limit_pass_and_longer_ones_are_refused_by_name() -> None:
    ours, theirs = pair()
    ours.send(of_length(LONGEST))
    assert theirs.receive() == (of_length(LONGEST), [])
    with pytest.raises(ChannelError, match=f"a message of {LONGEST + 1} bytes, at most {LONGEST}"):
        ours.send(of_length(LONGEST + 1))
    with pytest.raises(ChannelError, match=f"9 descriptors, at most {MOST_DESCRIPTORS}"):
        ours.send({}, [0] * 9)
    with pytest.raises(ChannelError, match="other than plain values"):
        ours.post({"x": object()})
    assert theirs.receive_now() is None and not theirs.closed_by_peer


def test_a_full_socket_does_not_block_the_poster_and_nothing_is_lost_or_reordered() -> None:
    ours, theirs = pair()
    count = 0
    while ours.post({"count": count, "x": "a" * 10_000}):
        count += 1
    for _ in range(50):
        count += 1
        assert not ours.post({"count": count, "x": "a" * 10_000})
    received = []
    while len(received) <= count:
        found = theirs.receive_now()
        assert found is not None
        received.append(found[0]["count"])
        ours.flush()
    assert received == list(range(count + 1))
    assert ours.flush()


def test_what_was_sent_before_the_end_is_still_received() -> None:
    ours, theirs = pair()
    theirs.send({"unread": True})  # makes the kernel report a reset at first
    ours.send({"last": "words"})
    ours.send({"last": "of all"})
    ours.close()
    assert theirs.poll(0)
    assert theirs.receive_now() == ({"last": "words"}, []) and not theirs.closed_by_peer
    assert theirs.receive() == ({"last": "of all"}, [])
    assert theirs.receive_now() is None and theirs.closed_by_peer
    assert theirs.receive() is None
    with pytest.raises(BrokenPipeError, match="the other side of the channel is gone"):
        theirs.send({})
    assert theirs.post({})


def test_the_death_of_a_process_ends_its_channel() -> None:
    ours, theirs = pair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        theirs.send({"pid": os.getpid()})
        signal.pause()
    theirs.close()
    assert ours.receive() == ({"pid": pid}, [])
    assert not ours.poll(0)
    os.kill(pid, signal.SIGKILL)
    assert ours.receive() is None and ours.closed_by_peer
    os.waitpid(pid, 0)


def test_two_threads_may_send_at_once() -> None:
    ours, theirs = pair()

    def send(name: str) -> None:
        for row in range(200):
            ours.send({"name": name, "row": row, "x": name * 2000})

    threads = [threading.Thread(target=send, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    rows: dict[str, list[int]] = {"a": [], "b": []}
    for _ in range(400):
        received = theirs.receive()
        assert received is not None
        message = received[0]
        assert message["x"] == message["name"] * 2000
        rows[message["name"]].append(message["row"])
    for thread in threads:
        thread.join()
    assert rows == {"a": list(range(200)), "b": list(range(200))}


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"{", "not a message"), (b"[1]", "a list"), (b"\xff", "not a message"), (b"[" * 100_000, "not a message")],
)
def test_what_is_no_message_is_refused_and_the_next_one_passes(content: bytes, what: str) -> None:
    raw, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = Channel(end)
    raw.send(content)
    raw.send(b'{"good":1}')
    with pytest.raises(ChannelError, match=what):
        channel.receive()
    assert channel.receive() == ({"good": 1}, [])


def test_a_strangers_flood_of_descriptors_is_refused_and_none_of_them_stays_open() -> None:
    raw, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    channel = Channel(end)
    before = len(os.listdir("/proc/self/fd"))
    socket.send_fds(raw, [b"{}"], [0] * 20)
    with pytest.raises(ChannelError, match="more than"):
        channel.receive()
    raw.send(b" " * (LONGEST + 1))
    with pytest.raises(ChannelError, match="more than"):
        channel.receive()
    assert len(os.listdir("/proc/self/fd")) == before
