from __future__ import annotations

import os
import selectors
import socket
import subprocess
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import Idle, to_bytes
from nimbus.runner.cell.transport.shared_slots import SharedSlots
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.system import processes


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[WorkerPool]:
    (tmp_path / "stage").mkdir()
    with selectors.DefaultSelector() as selector:
        yield WorkerPool(
            CellSpec(folder=str(tmp_path)),
            selector,
            shared_slots=SharedSlots.create(slot_count=1, slot_bytes=4096),
            rows=2,
            on_message=lambda handle, message: None,
            on_exit=lambda handle, how: None,
        )


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_worker_of_a_dead_fork_server_leaves_nothing(pool: WorkerPool) -> None:
    fork_server, theirs = pair()
    theirs.close()
    before = open_descriptors()
    handle = pool.start(fork_server, role="planner", row=0)
    assert (handle.pid, pool.free_rows()) == (0, [1])
    pool.forget(handle)
    assert open_descriptors() == before and pool.free_rows() == [0, 1] and not handle.log.exists()


def test_a_disk_that_takes_no_log_is_a_disk_that_is_full_and_costs_no_descriptor(
    pool: WorkerPool, tmp_path: Path
) -> None:
    fork_server, theirs = pair()
    (tmp_path / "stage").rmdir()
    before = open_descriptors()
    with pytest.raises(StorageError, match="cannot write"):
        pool.start(fork_server, role="planner", row=0)
    assert open_descriptors() == before and not len(pool) and not theirs.poll()


def test_of_a_long_log_the_end_is_read(pool: WorkerPool) -> None:
    fork_server, _theirs = pair()
    handle = pool.start(fork_server, role="planner", row=0)
    with handle.log.open("wb") as log:
        log.truncate(1 << 30)
        log.seek(0, os.SEEK_END)
        log.write("the end €".encode())
    assert pool.tail(handle).endswith("the end €") and len(pool.tail(handle)) <= 20_000
    pool.forget(handle)
    assert pool.tail(handle) == ""


def test_a_worker_announced_while_orphans_are_looked_for_is_none(pool: WorkerPool) -> None:
    """The worker may become a child of this process before its announcement is read."""
    pid = os.fork()
    if pid == 0:  # a process that has no other children
        try:
            bury_beside_a_birth(pool)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def bury_beside_a_birth(pool: WorkerPool) -> None:
    fork_server, _theirs = pair()
    handle = pool.start(fork_server, role="planner", row=0)
    stray = subprocess.Popen(["sleep", "60"])
    worker: list[subprocess.Popen[bytes]] = []

    def drain() -> None:
        if worker:
            pool.register_process(handle.number, worker[0].pid)
        else:
            worker.append(subprocess.Popen(["sleep", "60"]))

    pool.kill_orphans(spared=(), drain=drain)
    assert handle.pid == worker[0].pid and processes.orphans(set()) == [handle.pid], "it lives, the stray does not"
    assert processes.reap(stray.pid) == "gone"
    pool.close()
    assert not len(pool) and not processes.orphans(set())


def talker(pool: WorkerPool) -> tuple[WorkerHandle, socket.socket]:
    """Return a member, and the other end of its channel."""
    fork_server, theirs = pair()
    handle = pool.start(fork_server, role="planner", row=0)
    received = theirs.receive()
    assert received
    return handle, socket.socket(fileno=received[1][0])


@pytest.mark.parametrize(
    "said",
    [
        b"nothing",
        to_bytes(Idle(done=1))[:-1],
        to_bytes(Idle(done=1)).replace(b"Idle", b"Idol"),
        to_bytes(Idle(done=1)).replace(b"\x01", b"\xc3"),
        b"\x91" * 100_000,
        b"\xff" * 300_000,
    ],
)
def test_a_worker_that_says_what_is_no_message_is_ended_and_what_it_says_further_is_not_heard(
    pool: WorkerPool, said: bytes
) -> None:
    handle, end = talker(pool)
    heard: list[object] = []
    pool._on_message = lambda _, message: heard.append(message)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    for content in (to_bytes(Idle(done=0)), said, to_bytes(Idle(done=1))):
        end.send(content)
    for key, _ in pool._selector.select(0):
        key.data()
    assert len(heard) == 1 and handle.malformed and handle.ending.startswith("sent an invalid message")
    assert not pool._selector.select(0), "its channel is not listened to any more"
    pool.forget(handle)


def test_who_has_nothing_to_do_is_heard_again_later_and_the_last_words_of_the_dead_at_once(pool: WorkerPool):
    handle, end = talker(pool)
    heard: list[int] = []

    def hear(handle: WorkerHandle, message: Any) -> None:
        heard.append(message.done)
        handle.is_idle = True

    pool._on_message = hear
    for number in range(4):
        end.send(to_bytes(Idle(done=number)))
    for known in (1, 2):
        for key, _ in pool._selector.select(0):
            key.data()
        assert heard == list(range(known)), "the selector tells of the rest again"
    pool._receive(handle, has_ended=True)
    assert heard == [0, 1, 2, 3]
    pool.forget(handle)
