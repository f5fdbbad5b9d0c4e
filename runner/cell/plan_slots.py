"""Plan slots: places of plans between planner and renderer, in shared memory or in spill files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nimbus.datagen.files.own_files import remove_file
from nimbus.runner.cell.queue.lease import Lease, Place, Role
from nimbus.runner.cell.transport.shared_slots import SlotState, SlotTable


class PlanSlots:
    """Gives out slots and files for plans, and takes them back.

    Args:
        folder: The dataset's folder.
        slots: Allocation table of the shared slots.
    """

    def __init__(self, folder: Path, slots: SlotTable) -> None:
        self._folder, self._slots = folder, slots
        self.slot_count = sum(slots.counts.values())
        self._reserved: dict[tuple[int, int], int | None] = {}
        """Slot, or None for a file, by planning worker and index: a worker may have several orders to plan."""
        self._spilled: set[str] = set()

    @property
    def counts(self) -> dict[SlotState, int]:
        """Slots by state."""
        return self._slots.counts

    @property
    def free_count(self) -> int:
        """Slots without an owner."""
        return self._slots.free_count

    @property
    def spilled_count(self) -> int:
        """Plans that wait in files."""
        return len(self._spilled)

    @property
    def file_count(self) -> int:
        """Files in which plans wait or will be put, for want of a slot."""
        return len(self._spilled) + sum(slot is None for slot in self._reserved.values())

    def reserve(self, planner: int, index: int) -> tuple[int, int]:
        """Reserve a slot for a plan; its number and generation, -1 and 0 where none is free."""
        slot = self._reserved[planner, index] = self._slots.reserve(planner)
        if slot is None:
            return -1, 0
        return slot, self._slots.generation(slot)

    def mark_ready(self, planner: int, index: int, lease: int, *, in_file: bool) -> Place:
        """Note that a planner has written its plan into its slot or spill file; the place of the plan."""
        slot = self._reserved.pop((planner, index), None)
        if slot is not None and not in_file:
            self._slots.mark_ready(slot)
            return slot
        self.free(slot)
        file = spill_path(index, lease)
        self._spilled.add(file)
        return file

    def take(self, slot: int, renderer: int) -> int:
        """Let a worker read a slot; its generation."""
        self._slots.take(slot, renderer)
        return self._slots.generation(slot)

    def free(self, place: Place | None) -> None:
        """What lies there is needed no more."""
        if isinstance(place, str):
            self._spilled.discard(place)
            remove_file(self._folder / place)
        elif place is not None:
            self._slots.free(place)

    def withdraw(self, planner: int, index: int) -> None:
        """Nothing comes into the slot that a worker was given for an index."""
        self.free(self._reserved.pop((planner, index), None))

    def reclaim(self, worker: int, leases: Iterable[Lease]) -> None:
        """Take back the slots of a worker that ended, with the files that it may have begun."""
        self._slots.reclaim(worker)
        self._reserved = {key: slot for key, slot in self._reserved.items() if key[0] != worker}
        for lease in leases:
            if lease.role is Role.PLANNER:
                remove_file(self._folder / spill_path(lease.index, lease.number))


def spill_path(index: int, lease: int) -> str:
    """Path of the spill file of a plan, relative to the dataset."""
    return f"stage/{index}.{lease}.plan"
