"""Slots of shared memory that hold plans between planners and renderers, and the table of their owners."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from nimbus.runner.cell.transport.memfd import create_memory, map_memory

HEADER_BYTES = 64
_HEADER = struct.Struct("<8sQQ")
"""Magic, generation, length of the payload."""
_MAGIC = b"NIMBSLOT"
_FRONT = struct.Struct("<8sQQ")
"""Of the whole memory: magic, number of slots, bytes of each."""
_FRONT_MAGIC, _FRONT_BYTES = b"NIMBPLAN", 4096


class SlotError(ValueError):
    """A slot does not hold what was announced."""


class SharedSlots:
    """Equal slots in sealed shared memory; a slot is a header and the payload behind it.

    Every process maps the same memory. Who may touch a slot is told by messages and kept by a :class:`SlotTable`; the
    generation makes a writer that was given up harmless, the header, written last, one that ended half-way. What is in
    the payload carries its own checksum.
    """

    def __init__(self, descriptor: int) -> None:
        """Map the memory behind a descriptor; see :meth:`create` and :meth:`attach`."""
        self.descriptor = descriptor
        self._memory = memoryview(map_memory(descriptor))
        if len(self._memory) < _FRONT_BYTES:
            raise SlotError(f"a memory of {len(self._memory)} bytes does not hold slots")
        magic, self.slot_count, self.slot_bytes = _FRONT.unpack_from(self._memory)
        if magic != _FRONT_MAGIC or _FRONT_BYTES + self.slot_count * self.slot_bytes != len(self._memory):
            raise SlotError(f"a memory of {len(self._memory)} bytes does not hold {self.slot_count} slots")

    @classmethod
    def create(cls, *, slot_count: int = 16, slot_bytes: int = 2 << 20) -> SharedSlots:
        """Make the memory.

        Args:
            slot_count: Number of slots.
            slot_bytes: Size of each with its header, a multiple of 64.

        Raises:
            StorageError: So much memory is not free.
        """
        if slot_count < 1 or slot_bytes <= HEADER_BYTES or slot_bytes % HEADER_BYTES:
            raise ValueError(
                f"{slot_count} slots of {slot_bytes} bytes: a slot's bytes are a multiple of {HEADER_BYTES}"
            )
        fd = create_memory("nimbus-plan-slots", _FRONT_BYTES + slot_count * slot_bytes)
        _FRONT.pack_into(map_memory(fd), 0, _FRONT_MAGIC, slot_count, slot_bytes)
        return cls(fd)

    @classmethod
    def attach(cls, descriptor: int) -> SharedSlots:
        """Map the slots of another process, by the descriptor that it sent.

        Raises:
            ValueError: The descriptor is of something else.
        """
        return cls(descriptor)

    @property
    def capacity(self) -> int:
        """Bytes of payload that a slot holds."""
        return self.slot_bytes - HEADER_BYTES

    def view(self, slot: int) -> memoryview:
        """The payload's room in a slot."""
        begin = self._begin(slot)
        return self._memory[begin + HEADER_BYTES : begin + self.slot_bytes]

    def write(self, slot: int, generation: int, parts: Iterable[bytes | bytearray | memoryview]) -> int:
        """Write parts one after another and seal them with a header; returns their bytes.

        Raises:
            SlotError: They do not fit; then nothing was written.
        """
        parts = [memoryview(part).cast("B") for part in parts]
        length, room = sum(map(len, parts)), self.view(slot)
        if length > len(room):
            raise SlotError(f"slot {slot} holds {len(room)} bytes, not {length}")
        begin = self._begin(slot)
        # A writer that ends from here on leaves no valid header behind.
        self._memory[begin : begin + HEADER_BYTES] = bytes(HEADER_BYTES)
        end = 0
        for part in parts:
            room[end : end + len(part)] = part
            end += len(part)
        _HEADER.pack_into(self._memory, begin, _MAGIC, generation, length)
        return length

    def read(self, slot: int, generation: int) -> memoryview:
        """The payload; it is a read-only view of the slot and good only until that is freed.

        Raises:
            SlotError: Nothing whole is in the slot, or something else than announced.
        """
        magic, found, length = _HEADER.unpack_from(self._memory, self._begin(slot))
        if magic != _MAGIC:
            raise SlotError(f"slot {slot} holds nothing whole")
        if found != generation:
            raise SlotError(f"slot {slot} holds generation {found}, not {generation}")
        if length > self.capacity:
            raise SlotError(f"slot {slot} claims {length} bytes, it holds {self.capacity}")
        return self.view(slot)[:length].toreadonly()

    def _begin(self, slot: int) -> int:
        if not 0 <= slot < self.slot_count:
            raise SlotError(f"slot {slot} is none of {self.slot_count}")
        return _FRONT_BYTES + slot * self.slot_bytes


class SlotState(StrEnum):
    """What a slot is used for; this is also the order it passes through."""

    FREE = "free"
    GRANTED = "granted"
    """A planner may write into it."""
    READY = "ready"
    """It holds a plan that nobody renders yet."""
    TAKEN = "taken"
    """A renderer reads it, or has the order to."""


@dataclass(frozen=True)
class Reclaimed:
    """Slots of a worker that ended."""

    freed: tuple[int, ...]
    """Their plans were not finished."""
    ready: tuple[int, ...]
    """Their plans are whole, and wait for another renderer."""


class SlotTable:
    """States and owners of slots. Only the supervisor changes it; an impossible change is a :class:`SlotError`."""

    def __init__(self, slot_count: int) -> None:
        self._states = [SlotState.FREE] * slot_count
        self._owners: list[int | None] = [None] * slot_count
        self._generations = [0] * slot_count

    def reserve(self, owner: int) -> int | None:
        """Let a planner write into a free slot; none is free: ``None``. The slot has a new generation."""
        slot = next((row for row, state in enumerate(self._states) if state is SlotState.FREE), None)
        if slot is not None:
            self._generations[slot] += 1
            self._set(slot, SlotState.GRANTED, owner)
        return slot

    def generation(self, slot: int) -> int:
        """How often the slot was granted: what its writer and its readers must say."""
        return self._generations[slot]

    def mark_ready(self, slot: int) -> None:
        """The planner has written; from now on the slot outlives it."""
        self._expect(slot, SlotState.GRANTED)
        self._set(slot, SlotState.READY, None)

    def take(self, slot: int, owner: int) -> None:
        """A renderer reads the slot."""
        self._expect(slot, SlotState.READY)
        self._set(slot, SlotState.TAKEN, owner)

    def free(self, slot: int) -> None:
        """The slot is needed no more."""
        self._expect(slot, SlotState.GRANTED, SlotState.READY, SlotState.TAKEN)
        self._set(slot, SlotState.FREE, None)

    def reclaim(self, owner: int) -> Reclaimed:
        """Take back all slots of a worker that ended."""
        had = [slot for slot, name in enumerate(self._owners) if name == owner]
        freed = tuple(slot for slot in had if self._states[slot] is SlotState.GRANTED)
        ready = tuple(slot for slot in had if self._states[slot] is SlotState.TAKEN)
        for slot in freed:
            self._set(slot, SlotState.FREE, None)
        for slot in ready:
            self._set(slot, SlotState.READY, None)
        return Reclaimed(freed, ready)

    @property
    def free_count(self) -> int:
        """Slots that a planner may be given."""
        return self._states.count(SlotState.FREE)

    @property
    def counts(self) -> dict[SlotState, int]:
        """Slots by state: no free one is back-pressure on the planners."""
        return {state: self._states.count(state) for state in SlotState}

    def _set(self, slot: int, state: SlotState, owner: int | None) -> None:
        self._states[slot], self._owners[slot] = state, owner

    def _expect(self, slot: int, *states: SlotState) -> None:
        if self._states[slot] not in states:
            found, owner = self._states[slot], self._owners[slot]
            raise SlotError(f"slot {slot} is {found} (worker {owner}), expected {' or '.join(states)}")
