"""Plan slots: storage of plans between planner and renderer, in shared memory or in spill files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nimbus.datagen.files.own_files import remove_file
from nimbus.runner.cell.queue.lease import Lease, Place, Role
from nimbus.runner.cell.transport.shared_slots import SlotState, SlotTable


class PlanSlots:
    """Allocates and frees the slots and spill files that hold plans.

    Args:
        folder: The dataset's folder.
        slots: Allocation table of the shared slots.
    """

    def __init__(self, folder: Path, slots: SlotTable) -> None:
        self._folder, self._slots = folder, slots
        self.slot_count = sum(slots.counts.values())
        self._reserved: dict[tuple[int, int], int | None] = {}
        """Slot, or None for a spill file, by planning worker and index; a worker may hold several planning orders."""
        self._spilled: set[str] = set()

    @property
    def counts(self) -> dict[SlotState, int]:
        """Number of slots by state."""
        return self._slots.counts

    @property
    def free_count(self) -> int:
        """Number of slots without an owner."""
        return self._slots.free_count

    @property
    def spilled_count(self) -> int:
        """Number of plans that wait in spill files."""
        return len(self._spilled)

    @property
    def file_count(self) -> int:
        """Number of spill files that hold a plan or are reserved for one."""
        return len(self._spilled) + sum(slot is None for slot in self._reserved.values())

    def reserve(self, planner: int, index: int) -> tuple[int, int]:
        """Reserve a slot for a plan; returns its number and generation, or -1 and 0 when none is free."""
        slot = self._reserved[planner, index] = self._slots.reserve(planner)
        if slot is None:
            return -1, 0
        return slot, self._slots.generation(slot)

    def is_reserved(self, planner: int, index: int) -> bool:
        """Return True when a planner has a place for the plan of an index."""
        return (planner, index) in self._reserved

    def mark_ready(self, planner: int, index: int, lease: int, *, in_file: bool) -> Place:
        """Mark a plan as written into its slot or spill file; returns its location."""
        slot = self._reserved.pop((planner, index), None)
        if slot is not None and not in_file:
            self._slots.mark_ready(slot)
            return slot
        # The plan was too large for its slot, or had none: it is in the spill file, and the slot is free again.
        self.free(slot)
        file = spill_path(index, lease)
        self._spilled.add(file)
        return file

    def take(self, slot: int, renderer: int) -> int:
        """Give a slot to a renderer for reading; returns its generation."""
        self._slots.take(slot, renderer)
        return self._slots.generation(slot)

    def free(self, place: Place | None) -> None:
        """Free a slot, or remove a spill file."""
        if isinstance(place, str):
            self._spilled.discard(place)
            remove_file(self._folder / place)
        elif place is not None:
            self._slots.free(place)

    def withdraw(self, planner: int, index: int) -> None:
        """Free the slot reserved for an index that has no plan."""
        self.free(self._reserved.pop((planner, index), None))

    def reclaim(self, worker: int, leases: Iterable[Lease]) -> None:
        """Free the slots of a worker that ended, and remove spill files that it may have left unfinished."""
        self._slots.reclaim(worker)
        self._reserved = {key: slot for key, slot in self._reserved.items() if key[0] != worker}
        for lease in leases:
            # A renderer's spill file is complete and serves the next lease; a planner's may be cut short.
            if lease.role is Role.PLANNER:
                remove_file(self._folder / spill_path(lease.index, lease.number))


def spill_path(index: int, lease: int) -> str:
    """Return the path of a plan's spill file, relative to the dataset."""
    return f"stage/{index}.{lease}.plan"
