from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nimbus.datagen.errors import StorageError
from nimbus.runner.cell.transport import memfd
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.shared_slots import HEADER_BYTES, SharedSlots, SlotError, SlotState, SlotTable

SIZE = 4096


@pytest.fixture
def shared_slots() -> SharedSlots:
    return SharedSlots.create(slot_count=4, slot_bytes=SIZE)


def test_what_one_process_writes_another_reads(shared_slots: SharedSlots) -> None:
    ours, theirs = pair()
    pid = os.fork()
    if pid == 0:
        received = theirs.receive()
        assert received is not None
        SharedSlots.attach(received[1][0]).write(2, 7, [b"abc", memoryview(b"def")])
        theirs.send(b"done")
        os._exit(0)
    ours.send(b"slab", [shared_slots.descriptor])
    assert ours.receive() == (b"done", [])
    assert bytes(shared_slots.read(2, 7)) == b"abcdef"
    os.waitpid(pid, 0)


def test_slots_hold_exactly_their_capacity_and_do_not_touch_each_other(shared_slots: SharedSlots) -> None:
    assert shared_slots.capacity == SIZE - HEADER_BYTES == len(shared_slots.view(0))
    for slot in range(4):
        assert shared_slots.write(slot, 1, [bytes([slot]) * shared_slots.capacity]) == shared_slots.capacity
    assert [bytes(shared_slots.read(slot, 1)) for slot in range(4)] == [
        bytes([slot]) * shared_slots.capacity for slot in range(4)
    ]
    with pytest.raises(SlotError, match=f"slot 1 holds {shared_slots.capacity} bytes, not {shared_slots.capacity + 1}"):
        shared_slots.write(1, 2, [bytes(shared_slots.capacity), b"x"])
    assert bytes(shared_slots.read(1, 1)) == b"\1" * shared_slots.capacity, "nothing was written"
    assert shared_slots.write(1, 3, []) == 0 and bytes(shared_slots.read(1, 3)) == b""


def test_each_thing_that_differs_is_named(shared_slots: SharedSlots) -> None:
    with pytest.raises(SlotError, match="slot 0 holds no complete plan"):
        shared_slots.read(0, 0)
    shared_slots.write(0, 5, [b"content"])
    with pytest.raises(SlotError, match="slot 0 holds generation 5, not 6"):
        shared_slots.read(0, 6)
    header = memoryview(shared_slots._memory)[4096 : 4096 + HEADER_BYTES]
    header[16:24] = (1 << 40).to_bytes(8, "little")
    with pytest.raises(SlotError, match=f"slot 0 claims {1 << 40} bytes, it holds {shared_slots.capacity}"):
        shared_slots.read(0, 5)
    for slot in (-1, 4):
        with pytest.raises(SlotError, match=f"slot {slot} is outside the 4 slots"):
            shared_slots.view(slot)


def test_a_reader_cannot_change_what_it_reads(shared_slots: SharedSlots) -> None:
    shared_slots.write(0, 1, [b"content"])
    with pytest.raises(TypeError, match="read-only"):
        shared_slots.read(0, 1)[0] = 0


def test_a_writer_killed_in_the_middle_leaves_nothing_whole(
    shared_slots: SharedSlots, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_slots.write(0, 1, [b"before"])
    pid = os.fork()
    if pid == 0:

        class Kill:
            pack_into = staticmethod(lambda *_: os.kill(os.getpid(), signal.SIGKILL))

        monkeypatch.setattr("nimbus.runner.cell.transport.shared_slots._HEADER", Kill)  # is written behind the copy
        shared_slots.write(0, 2, [b"half of it"])
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    assert bytes(shared_slots.view(0)[:10]) == b"half of it"
    for generation in (1, 2):
        with pytest.raises(SlotError, match="no complete plan"):
            shared_slots.read(0, generation)


def test_other_memory_is_not_attached(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file:
        file.truncate(1 << 20)
        with pytest.raises(ValueError, match="not a sealed memory"):
            SharedSlots.attach(file.fileno())
    with pytest.raises(SlotError, match="does not hold"):
        SharedSlots.attach(memfd.create_memory("small", 64))
    with pytest.raises(SlotError, match="does not hold"):
        SharedSlots.attach(memfd.create_memory("blank", 1 << 20))
    with pytest.raises(ValueError, match="multiple of 64"):
        SharedSlots.create(slot_count=1, slot_bytes=100)


def test_the_memory_cannot_be_shrunk_under_its_readers(shared_slots: SharedSlots) -> None:
    for size in (0, 1 << 30):
        with pytest.raises(PermissionError):
            os.ftruncate(shared_slots.descriptor, size)


def test_more_memory_than_is_free_is_refused_in_one_line_before_any_is_taken() -> None:
    with pytest.raises(
        StorageError, match=r"memory: \d+ MiB of shared memory are needed, \d+ MiB are free; close"
    ) as e:
        SharedSlots.create(slot_count=1 << 20, slot_bytes=2 << 20)
    assert e.value.exit_code == 1 and "\n" not in str(e.value)


def test_a_limit_on_file_size_is_one_line_too() -> None:
    script = (
        "import resource\n"
        "from nimbus.datagen.errors import StorageError\n"
        "from nimbus.runner.cell.transport.shared_slots import SharedSlots\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try: SharedSlots.create()\n"
        "except StorageError as error: print(error)\n"
    )
    assert re.match("memory: 32 MiB of shared memory are needed, File too large; close other programs", run(script))


@pytest.mark.parametrize("options", ["size=64m", None], ids=["64 MB", "absent"])
def test_the_slab_needs_no_dev_shm(options: str | None, tmp_path: Path) -> None:
    script = (
        "import os\n"
        "from nimbus.runner.cell.transport.shared_slots import SharedSlots\n"
        "shared_slots = SharedSlots.create(slot_count=64)\n"
        "for slot in range(64): shared_slots.write(slot, 1, [bytes([slot]) * shared_slots.capacity])\n"
        "good = all(bytes(shared_slots.read(slot, 1)) == bytes([slot]) * shared_slots.capacity for slot in range(64))\n"
        "found = os.statvfs('/dev/shm') if os.path.isdir('/dev/shm') else None\n"
        "print(good, found.f_blocks * found.f_frsize if found else 'absent')\n"
    )
    mount = f"mount -t tmpfs -o {options} none /dev/shm" if options else "mount -t tmpfs none /dev"
    before = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    tried = subprocess.run([*before, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no mount namespace here: {tried.stderr.strip()}")
    assert run(script, before=before).split() == ["True", str(64 << 20) if options else "absent"]


def run(script: str, before: list[str] | None = None) -> str:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    line = [*(before or []), sys.executable, "-c", script]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_slot_of_a_killed_planner_is_granted_again_and_its_successor_writes_it(shared_slots: SharedSlots) -> None:
    table = SlotTable(shared_slots.slot_count)
    slot = table.reserve(owner=1)
    assert slot is not None
    first = table.generation(slot)
    pid = os.fork()
    if pid == 0:
        shared_slots.write(slot, first, [b"never announced"])
        signal.pause()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert table.reclaim(1).freed == (slot,) and table.counts[SlotState.FREE] == 4
    again = table.reserve(owner=2)
    assert again == slot and table.generation(slot) == first + 1
    with pytest.raises(SlotError):
        shared_slots.read(slot, table.generation(slot))
    shared_slots.write(slot, table.generation(slot), [b"made again"])
    assert bytes(shared_slots.read(slot, first + 1)) == b"made again"


def test_the_slot_of_a_dead_renderer_is_rendered_by_another() -> None:
    table = SlotTable(1)
    assert table.reserve(owner=1) == 0 and table.reserve(owner=1) is None
    table.mark_ready(0)
    assert table.reclaim(1) == table.reclaim(7), "the planner's death does not touch a plan that is whole"
    table.take(0, owner=2)
    assert table.reclaim(2).ready == (0,)
    table.take(0, owner=3)
    assert table.counts == {"free": 0, "granted": 0, "ready": 0, "taken": 1}
    table.free(0)
    with pytest.raises(SlotError, match=r"slot 0 is free \(worker None\), expected granted or ready or taken"):
        table.free(0)
    with pytest.raises(SlotError, match=r"slot 0 is free .* expected ready"):
        table.take(0, owner=3)


class Slots(RuleBasedStateMachine):
    """In any sequence, every slot has one state, only free slots are granted, and no generation occurs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.table = SlotTable(3)
        self.model: dict[int, tuple[str, int | None]] = dict.fromkeys(range(3), ("free", None))
        self.seen: set[tuple[int, int]] = set()

    def those(self, state: str) -> list[int]:
        return [slot for slot, (known, _) in self.model.items() if known == state]

    @rule(owner=st.integers(0, 2))
    def reserve(self, owner: int) -> None:
        slot = self.table.reserve(owner)
        assert (slot is None) == (not self.those("free"))
        if slot is not None:
            assert slot in self.those("free")
            self.model[slot] = ("granted", owner)
            address = (slot, self.table.generation(slot))
            assert address not in self.seen
            self.seen.add(address)

    @precondition(lambda self: self.those("granted"))
    @rule(data=st.data())
    def ready(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(self.those("granted")))
        self.table.mark_ready(slot)
        self.model[slot] = ("ready", None)

    @precondition(lambda self: self.those("ready"))
    @rule(data=st.data(), owner=st.integers(0, 2))
    def take(self, data: st.DataObject, owner: int) -> None:
        slot = data.draw(st.sampled_from(self.those("ready")))
        self.table.take(slot, owner)
        self.model[slot] = ("taken", owner)

    @rule(slot=st.integers(0, 2))
    def free(self, slot: int) -> None:
        if self.model[slot][0] == "free":
            with pytest.raises(SlotError):
                self.table.free(slot)
        else:
            self.table.free(slot)
            self.model[slot] = ("free", None)

    @rule(owner=st.integers(0, 2))
    def die(self, owner: int) -> None:
        reclaimed = self.table.reclaim(owner)
        for slot, (state, known) in list(self.model.items()):
            if known == owner:
                assert slot in (reclaimed.freed if state == "granted" else reclaimed.ready)
                self.model[slot] = ("free" if state == "granted" else "ready", None)

    @invariant()
    def agree(self) -> None:
        assert self.table.counts == {state: len(self.those(state)) for state in SlotState}


TestSlots = Slots.TestCase
