"""Slots of shared memory that carry plans from planners to renderers, and the table of their owners."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from nimbus.runner.cell.transport.memfd import create_memory, map_memory

HEADER_BYTES = 64
_HEADER = struct.Struct("<8sQQ")
"""Header of a slot: magic, generation, length of the payload."""
_MAGIC = b"NIMBSLOT"
_FRONT = struct.Struct("<8sQQ")
"""Header of the memory: magic, number of slots, bytes of each."""
_FRONT_MAGIC, _FRONT_BYTES = b"NIMBPLAN", 4096


class SlotError(ValueError):
    """Raised for a slot without the announced contents."""


class SharedSlots:
    """Equal slots in sealed shared memory; a slot is a header followed by its payload.

    Every process maps the same memory. Access is granted by messages and recorded in a :class:`SlotTable`. The
    generation number excludes a writer that was given up; the header, which is written last, excludes one that ended
    half-way. The payload contains its own checksum.
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
        """Allocate the memory.

        Args:
            slot_count: Number of slots.
            slot_bytes: Size of each with its header, a multiple of 64.

        Raises:
            StorageError: There is too little free memory.
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
            ValueError: The descriptor belongs to something else.
        """
        return cls(descriptor)

    @property
    def capacity(self) -> int:
        """Largest payload of a slot [bytes]."""
        return self.slot_bytes - HEADER_BYTES

    def view(self, slot: int) -> memoryview:
        """Return a writable view of a slot's payload area."""
        begin = self._begin(slot)
        return self._memory[begin + HEADER_BYTES : begin + self.slot_bytes]

    def write(self, slot: int, generation: int, parts: Iterable[bytes | bytearray | memoryview]) -> int:
        """Write the parts one after another, then the header; return their total number of bytes.

        Raises:
            SlotError: They do not fit; nothing was written.
        """
        parts = [memoryview(part).cast("B") for part in parts]
        length, room = sum(map(len, parts)), self.view(slot)
        if length > len(room):
            raise SlotError(f"slot {slot} holds {len(room)} bytes, not {length}")
        begin = self._begin(slot)
        # Invalidate the header first: a writer that dies during the copy leaves no valid slot behind.
        self._memory[begin : begin + HEADER_BYTES] = bytes(HEADER_BYTES)
        end = 0
        for part in parts:
            room[end : end + len(part)] = part
            end += len(part)
        # The header last: a reader sees either no plan or a complete one.
        _HEADER.pack_into(self._memory, begin, _MAGIC, generation, length)
        return length

    def read(self, slot: int, generation: int) -> memoryview:
        """Return a read-only view of the payload, valid until the slot is freed.

        Raises:
            SlotError: The slot holds nothing complete, or another generation.
        """
        magic, found, length = _HEADER.unpack_from(self._memory, self._begin(slot))
        # The header is checked although the supervisor grants access by message, because the writer can be killed at
        # any instruction.
        if magic != _MAGIC:
            raise SlotError(f"slot {slot} holds no complete plan")
        if found != generation:
            raise SlotError(f"slot {slot} holds generation {found}, not {generation}")
        if length > self.capacity:
            raise SlotError(f"slot {slot} claims {length} bytes, it holds {self.capacity}")
        return self.view(slot)[:length].toreadonly()

    def _begin(self, slot: int) -> int:
        if not 0 <= slot < self.slot_count:
            raise SlotError(f"slot {slot} is outside the {self.slot_count} slots")
        return _FRONT_BYTES + slot * self.slot_bytes


class SlotState(StrEnum):
    """State of a slot, in the order in which it passes through them."""

    FREE = "free"
    GRANTED = "granted"
    """A planner may write into it."""
    READY = "ready"
    """It holds a plan that no renderer has taken yet."""
    TAKEN = "taken"
    """A renderer reads it, or has the order to read it."""


@dataclass(frozen=True)
class Reclaimed:
    """Slots of a worker that ended."""

    freed: tuple[int, ...]
    """Slots without a complete plan."""
    ready: tuple[int, ...]
    """Slots with a complete plan for another renderer."""


class SlotTable:
    """States and owners of slots, changed by the supervisor only; an impossible change raises :class:`SlotError`."""

    def __init__(self, slot_count: int) -> None:
        self._states = [SlotState.FREE] * slot_count
        self._owners: list[int | None] = [None] * slot_count
        self._generations = [0] * slot_count

    def reserve(self, owner: int) -> int | None:
        """Reserve a free slot for a planner and raise its generation; None when no slot is free."""
        slot = next((row for row, state in enumerate(self._states) if state is SlotState.FREE), None)
        if slot is not None:
            # A worker that was given up may still write into its old slot; readers refuse its generation.
            self._generations[slot] += 1
            self._set(slot, SlotState.GRANTED, owner)
        return slot

    def generation(self, slot: int) -> int:
        """Return the number of times the slot was reserved, which its writer and readers must present."""
        return self._generations[slot]

    def mark_ready(self, slot: int) -> None:
        """Mark a slot as written; from now on it outlives its planner."""
        self._expect(slot, SlotState.GRANTED)
        self._set(slot, SlotState.READY, None)

    def take(self, slot: int, owner: int) -> None:
        """Give a slot to a renderer."""
        self._expect(slot, SlotState.READY)
        self._set(slot, SlotState.TAKEN, owner)

    def free(self, slot: int) -> None:
        """Free a slot."""
        self._expect(slot, SlotState.GRANTED, SlotState.READY, SlotState.TAKEN)
        self._set(slot, SlotState.FREE, None)

    def reclaim(self, owner: int) -> Reclaimed:
        """Free or release all slots of a worker that ended."""
        had = [slot for slot, name in enumerate(self._owners) if name == owner]
        freed = tuple(slot for slot in had if self._states[slot] is SlotState.GRANTED)
        # A renderer only reads, so that its plan is intact for the next one.
        ready = tuple(slot for slot in had if self._states[slot] is SlotState.TAKEN)
        for slot in freed:
            self._set(slot, SlotState.FREE, None)
        for slot in ready:
            self._set(slot, SlotState.READY, None)
        return Reclaimed(freed, ready)

    @property
    def free_count(self) -> int:
        """Number of free slots."""
        return self._states.count(SlotState.FREE)

    @property
    def counts(self) -> dict[SlotState, int]:
        """Number of slots by state; none free means back-pressure on the planners."""
        return {state: self._states.count(state) for state in SlotState}

    def _set(self, slot: int, state: SlotState, owner: int | None) -> None:
        self._states[slot], self._owners[slot] = state, owner

    def _expect(self, slot: int, *states: SlotState) -> None:
        if self._states[slot] not in states:
            found, owner = self._states[slot], self._owners[slot]
            raise SlotError(f"slot {slot} is {found} (worker {owner}), expected {' or '.join(states)}")
