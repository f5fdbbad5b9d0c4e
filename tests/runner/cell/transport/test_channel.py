from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.runner.cell.transport.channel import LONGEST, MOST_DESCRIPTORS, Channel, ChannelError, pair


@given(st.binary(min_size=1))
def test_what_is_sent_is_received(message: bytes) -> None:
    ours, theirs = pair()
    ours.send(message)
    assert theirs.receive() == (message, [])
    assert ours.post(message)
    assert theirs.receive_now() == message
    ours.close()
    theirs.close()


def test_descriptors_travel_along_and_lead_to_the_same_file(tmp_path: Path) -> None:
    ours, theirs = pair()
    with (tmp_path / "file").open("w+b") as file:
        ours.send(b"one", [file.fileno()])
        received = theirs.receive()
        assert received is not None
        message, (fd,) = received
        assert message == b"one" and not os.get_inheritable(fd)
        os.write(fd, b"hello")
        os.close(fd)
    assert (tmp_path / "file").read_bytes() == b"hello"


def test_messages_up_to_the_limit_pass_and_longer_ones_are_refused_by_name() -> None:
    ours, theirs = pair()
    longest = b"a" * LONGEST
    ours.send(longest)
    assert theirs.receive() == (longest, [])
    with pytest.raises(ChannelError, match=f"a message of {LONGEST + 1} bytes; 1 to {LONGEST} bytes"):
        ours.send(longest + b"a")
    with pytest.raises(ChannelError, match="a message of 0 bytes"):
        ours.post(b"")  # it would look as if the other side had closed
    with pytest.raises(ChannelError, match=f"9 descriptors; at most {MOST_DESCRIPTORS}"):
        ours.send(b"{}", [0] * 9)
    assert theirs.receive_now() is None and not theirs.closed_by_peer


def test_a_full_socket_does_not_block_the_poster_and_nothing_is_lost_or_reordered() -> None:
    ours, theirs = pair()
    count = 0
    while ours.post(b"%d %s" % (count, b"a" * 10_000)):
        count += 1
    for _ in range(50):
        count += 1
        assert not ours.post(b"%d %s" % (count, b"a" * 10_000))
    received = []
    while len(received) <= count:
        found = theirs.receive_now()
        assert found is not None
        received.append(int(found.split()[0]))
        ours.flush()
    assert received == list(range(count + 1))
    assert ours.flush()


def test_what_was_sent_before_the_end_is_still_received() -> None:
    ours, theirs = pair()
    theirs.send(b"unread")  # makes the kernel report a reset at first
    ours.send(b"last words")
    ours.send(b"last of all")
    ours.close()
    assert theirs.poll(0)
    assert theirs.receive_now() == b"last words" and not theirs.closed_by_peer
    assert theirs.receive() == (b"last of all", [])
    assert theirs.receive_now() is None and theirs.closed_by_peer
    assert theirs.receive() is None
    with pytest.raises(BrokenPipeError, match="the other side of the channel is gone"):
        theirs.send(b"?")
    assert theirs.post(b"?")


def test_the_death_of_a_process_ends_its_channel() -> None:
    ours, theirs = pair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        theirs.send(b"%d" % os.getpid())
        signal.pause()
    theirs.close()
    assert ours.receive() == (b"%d" % pid, [])
    assert not ours.poll(0)
    os.kill(pid, signal.SIGKILL)
    assert ours.receive() is None and ours.closed_by_peer
    os.waitpid(pid, 0)


def test_two_threads_may_send_at_once() -> None:
    ours, theirs = pair()

    def send(name: str) -> None:
        for row in range(200):
            ours.send(f"{name} {row} {name * 2000}".encode())

    threads = [threading.Thread(target=send, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    rows: dict[str, list[int]] = {"a": [], "b": []}
    for _ in range(400):
        received = theirs.receive()
        assert received is not None
        name, row, content = received[0].decode().split(" ")
        assert content == name * 2000
        rows[name].append(int(row))
    for thread in threads:
        thread.join()
    assert rows == {"a": list(range(200)), "b": list(range(200))}


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
    raw.send(b" " * (LONGEST + 1))
    with pytest.raises(ChannelError, match="more than"):
        channel.receive_now()
    socket.send_fds(raw, [b"{}"], [0] * 20)
    assert channel.receive_now() == b"{}", "who looks without waiting takes no descriptors"
    assert len(os.listdir("/proc/self/fd")) == before
