from __future__ import annotations

from pathlib import Path

from nimbus.runner.cell.plan_slots import PlanSlots, spill_path
from nimbus.runner.cell.transport.shared_slots import SlotState, SlotTable


def test_news_of_the_last_plan_may_come_after_the_next_order(tmp_path: Path) -> None:
    """A rejection waits for free disk space while its planner continues."""
    places = PlanSlots(tmp_path, SlotTable(2))
    places.reserve(7, 31)
    slot, _ = places.reserve(7, 32)
    places.withdraw(7, 31)
    assert places.mark_ready(7, 32, 1, in_file=False) == slot
    assert (places.counts[SlotState.READY], places.counts[SlotState.FREE]) == (1, 1)


def test_a_plan_in_a_file_frees_the_slot_that_was_kept_for_it(tmp_path: Path) -> None:
    places = PlanSlots(tmp_path, SlotTable(1))
    places.reserve(7, 3)
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage" / "3.1.plan").write_text("a plan")
    place = places.mark_ready(7, 3, 1, in_file=True)
    assert place == spill_path(3, 1) and places.counts[SlotState.FREE] == 1 and places.spilled_count == 1
    places.free(place)
    assert places.spilled_count == 0 and not list((tmp_path / "stage").iterdir())


def test_who_finds_no_slot_is_to_write_a_file_and_that_is_counted_from_then_on(tmp_path: Path) -> None:
    places = PlanSlots(tmp_path, SlotTable(1))
    assert [places.reserve(7, index)[0] for index in (1, 2, 3)] == [0, -1, -1] and places.file_count == 2
    assert places.mark_ready(7, 2, 1, in_file=True) == spill_path(2, 1)
    assert (places.file_count, places.spilled_count) == (2, 1)
    places.withdraw(7, 3)
    assert (places.file_count, places.counts[SlotState.FREE]) == (1, 0)


def test_all_that_was_granted_to_a_dead_worker_is_free_again(tmp_path: Path) -> None:
    places = PlanSlots(tmp_path, SlotTable(3))
    for index in (1, 2):
        places.reserve(7, index)
    kept, _ = places.reserve(8, 3)
    places.reclaim(7, ())
    assert places.counts[SlotState.FREE] == 2 and places.mark_ready(8, 3, 1, in_file=False) == kept
