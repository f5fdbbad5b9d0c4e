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
from nimbus.runner.cell.transport.shared_slots import Slab
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker_pool import Crew, Member
from nimbus.runner.system import processes


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    (tmp_path / "stage").mkdir()
    with selectors.DefaultSelector() as selector:
        yield Crew(
            CellSpec(folder=str(tmp_path)),
            selector,
            slab=Slab.create(slot_count=1, slot_bytes=4096),
            seats=2,
            on_message=lambda member, message: None,
            on_exit=lambda member, how: None,
        )


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_worker_asked_of_a_zygote_that_has_just_died_can_be_forgotten_and_leaves_nothing(crew: Crew) -> None:
    zygote, theirs = pair()
    theirs.close()
    before = open_descriptors()
    member = crew.start(zygote, role="planner", seat=0)
    assert (member.pid, crew.free_seats()) == (0, [1])
    crew.forget(member)
    assert open_descriptors() == before and crew.free_seats() == [0, 1] and not member.log.exists()


def test_a_disk_that_takes_no_log_is_a_disk_that_is_full_and_costs_no_descriptor(crew: Crew, tmp_path: Path) -> None:
    zygote, theirs = pair()
    (tmp_path / "stage").rmdir()
    before = open_descriptors()
    with pytest.raises(StorageError, match="cannot write"):
        crew.start(zygote, role="planner", seat=0)
    assert open_descriptors() == before and not len(crew) and not theirs.poll()


def test_of_a_long_log_the_end_is_read(crew: Crew) -> None:
    zygote, _theirs = pair()
    member = crew.start(zygote, role="planner", seat=0)
    with member.log.open("wb") as log:
        log.truncate(1 << 30)
        log.seek(0, os.SEEK_END)
        log.write("the end €".encode())
    assert crew.tail(member).endswith("the end €") and len(crew.tail(member)) <= 20_000
    crew.forget(member)
    assert crew.tail(member) == ""


def test_a_worker_announced_while_orphans_are_looked_for_is_none(crew: Crew) -> None:
    """It may become a child of this process after the zygote was listened to; its announcement is still to come."""
    pid = os.fork()
    if pid == 0:  # a process that has no other children
        try:
            bury_beside_a_birth(crew)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def bury_beside_a_birth(crew: Crew) -> None:
    zygote, _theirs = pair()
    member = crew.start(zygote, role="planner", seat=0)
    stray = subprocess.Popen(["sleep", "60"])
    worker: list[subprocess.Popen[bytes]] = []

    def drain() -> None:
        if worker:
            crew.born(member.number, worker[0].pid)
        else:
            worker.append(subprocess.Popen(["sleep", "60"]))

    crew.bury_orphans(zygote=0, drain=drain)
    assert member.pid == worker[0].pid and processes.orphans(set()) == [member.pid], "it lives, the stray does not"
    assert processes.reap(stray.pid) == "gone"
    crew.close()
    assert not len(crew) and not processes.orphans(set())


def talker(crew: Crew) -> tuple[Member, socket.socket]:
    """A member, and the other end of its channel."""
    zygote, theirs = pair()
    member = crew.start(zygote, role="planner", seat=0)
    received = theirs.receive()
    assert received
    return member, socket.socket(fileno=received[1][0])


@pytest.mark.parametrize(
    "said",
    [
        b"nothing",
        b"[1]",
        b"Nonsense {}",
        b"Idle",
        b"Idle {",
        b'Idle {"done": "one"}',
        b"Idle " + b"[" * 100_000,
        b"\xff" * 300_000,
    ],
)
def test_a_worker_that_says_what_is_no_message_is_ended_and_what_it_says_further_is_not_heard(
    crew: Crew, said: bytes
) -> None:
    member, end = talker(crew)
    heard: list[object] = []
    crew._on_message = lambda _, message: heard.append(message)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    for content in (b'Idle {"done": 0}', said, b'Idle {"done": 1}'):
        end.send(content)
    for key, _ in crew._selector.select(0):
        key.data()
    assert len(heard) == 1 and member.garbled and member.ending.startswith("said what is no message")
    assert not crew._selector.select(0), "its channel is not listened to any more"
    crew.forget(member)


def test_who_has_nothing_to_do_is_heard_again_later_and_the_last_words_of_the_dead_at_once(crew: Crew):
    member, end = talker(crew)
    heard: list[int] = []

    def hear(member: Member, message: Any) -> None:
        heard.append(message.done)
        member.is_idle = True

    crew._on_message = hear
    for number in range(4):
        end.send(b'Idle {"done": %d}' % number)
    for known in (1, 2):
        for key, _ in crew._selector.select(0):
            key.data()
        assert heard == list(range(known)), "the selector tells of the rest again"
    crew._hear(member, is_gone=True)
    assert heard == [0, 1, 2, 3]
    crew.forget(member)
