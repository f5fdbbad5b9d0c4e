from __future__ import annotations

import selectors
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from synthetic import open_dataset

from nimbus.datagen.store.attempt import Attempt
from nimbus.datagen.store.dataset import Dataset
from nimbus.runner.cell.channel import pair
from nimbus.runner.cell.crew import Crew, Member
from nimbus.runner.cell.deadlines import Deadlines
from nimbus.runner.cell.dispatch import Dispatcher
from nimbus.runner.cell.evidence import Evidence
from nimbus.runner.cell.lease import Settled
from nimbus.runner.cell.messages import Idle, Written
from nimbus.runner.cell.slab import Slab, SlotTable
from nimbus.runner.cell.spec import CellSpec
from nimbus.runner.progress import Progress


@dataclass
class Cell:
    """A dispatcher whose workers are played by the test."""

    dataset: Dataset
    crew: Crew
    dispatcher: Dispatcher

    def employ(self) -> Member:
        """A new worker, with an order."""
        zygote, _theirs = pair()
        member = self.crew.start(zygote, role="renderer", seat=self.crew.free_seats()[0])
        self.dispatcher.take(member, Idle(done=0))
        self.dispatcher.give(member)
        return member

    def settle(self, member: Member) -> None:
        """Let what a worker has be rejected."""
        for lease in self.dispatcher.work.held_by(member.number):
            for variant in lease.variants:
                self.dispatcher.work.settled(lease.index, variant, Settled.REJECTED)

    def write(self, member: Member, variant: int) -> None:
        """Let a worker say that a file is whole."""
        lease = self.dispatcher.work.held_by(member.number)[0]
        path = self.dataset.stage / f"{variant}.{member.number}.tmp"
        path.write_text("whole")
        attempt = Attempt(
            episode_id=f"{variant}",
            task="",
            seed=0,
            idx=lease.index,
            variant=variant,
            attempt=0,
            final=True,
            success=True,
            path=f"episodes/{variant}.hdf5",
            byte_count=5,
        )
        name = path.relative_to(self.dataset.folder).as_posix()
        self.dispatcher.take(member, Written(index=lease.index, lease=lease.number, attempt=attempt, path=name))

    def lose(self, member: Member) -> None:
        """Let a worker be gone."""
        self.crew.forget(member)
        self.dispatcher.lost(member)


@pytest.fixture
def episodes() -> int:
    return 1


@pytest.fixture
def cell(tmp_path: Path, episodes: int) -> Iterator[Cell]:
    """A few episodes, three variants, no planners."""
    with open_dataset(tmp_path / "data") as dataset, selectors.DefaultSelector() as selector:
        spec = CellSpec(folder=str(dataset.folder), episodes=episodes, variants=3)
        slab = Slab.create(slot_count=1, slot_bytes=4096)
        crew = Crew(spec, selector, slab=slab, seats=2, on_message=lambda *_: None, on_exit=lambda *_: None)
        dispatcher = Dispatcher(
            spec,
            dataset,
            crew,
            slots=SlotTable(1),
            evidence=Evidence(),
            deadlines=Deadlines(),
            progress=Progress(dataset.folder, task="", target=3 * episodes),
            has_planner=False,
            missing=episodes,
            load_time=0.0,
            run=1,
        )
        yield Cell(dataset, crew, dispatcher)


def test_variants_that_a_worker_did_not_come_to_go_to_another_also_when_the_disk_was_full(cell: Cell) -> None:
    first = cell.employ()
    cell.write(first, 0)
    away = cell.dataset.episodes.rename(cell.dataset.folder / "away")  # now nothing can be committed
    cell.lose(first)
    away.rename(cell.dataset.episodes)
    assert cell.dispatcher.intake.commit(), "there is room again"
    second = cell.employ()
    assert [lease.variants for lease in cell.dispatcher.work.held_by(second.number)] == [(1, 2)]
    cell.write(second, 1)
    cell.write(second, 2)
    cell.dispatcher.intake.commit()
    assert cell.dispatcher.is_done and len(cell.dataset.ledger.stored()) == 3


def test_what_is_written_is_due_after_a_tenth_of_a_second_and_not_before(cell: Cell) -> None:
    intake, before = cell.dispatcher.intake, time.monotonic()
    assert intake.next_commit is None and not intake.is_due(before + 1000)
    cell.write(cell.employ(), 0)
    assert intake.next_commit is not None and before + 0.1 <= intake.next_commit <= time.monotonic() + 0.1
    assert not intake.is_due(intake.next_commit - 0.01) and intake.is_due(intake.next_commit)
    assert intake.commit() and not intake.is_due(before + 1000)


def test_a_worker_that_is_lost_has_what_it_wrote_committed_first(cell: Cell) -> None:
    member = cell.employ()
    for variant in range(2):
        cell.write(member, variant)
    cell.lose(member)
    assert len(cell.dataset.ledger.stored()) == 2 and not cell.dispatcher.is_done
    assert [lease.variants for lease in cell.dispatcher.work.held_by(cell.employ().number)] == [(2,)]


@pytest.mark.parametrize("episodes", [2])
def test_who_gave_no_result_is_ended_also_while_the_disk_is_full(cell: Cell) -> None:
    written, nothing = cell.employ(), cell.employ()
    for variant in range(3):
        cell.write(written, variant)
    cell.dataset.episodes.rename(cell.dataset.folder / "away")
    for member in (written, nothing):
        cell.dispatcher.take(member, Idle(done=1))
    assert written.is_idle and not written.ending, "what it wrote waits for room"
    assert not nothing.is_idle and nothing.ending == "episode 1 came to no result"


def test_who_had_nothing_to_do_is_asked_again_once_something_has_changed(cell: Cell) -> None:
    busy, free = cell.employ(), cell.employ()
    assert free.is_idle and not cell.dispatcher.give(free), "the one episode is with the other"
    cell.lose(busy)
    assert cell.dispatcher.give(free)


@pytest.mark.parametrize("episodes", [12])
def test_short_orders_are_given_several_at_once_but_half_of_what_waits_is_left_for_others(cell: Cell) -> None:
    first, second = cell.employ(), cell.employ()
    assert [first.orders, second.orders] == [1, 1], "nobody knows yet how long they take"
    for done, given in ((1, 1), (2, 1 + 8 // 2), (7, 1 + 3 // 2), (9, 1 + 1 // 2)):
        cell.settle(first)
        cell.dispatcher.take(first, Idle(done=done, seconds=1e-3, roles=("renderer",)))
        assert cell.dispatcher.give(first)
        assert [first.orders, len(cell.dispatcher.work.held_by(first.number))] == [done + given, given]
    cell.lose(first)
    third = cell.employ()
    assert third.orders == 1, "one that has done nothing yet gets one"


@pytest.mark.parametrize("episodes", [12])
def test_long_orders_are_given_one_by_one(cell: Cell) -> None:
    member = cell.employ()
    for done in (1, 2, 3):
        cell.settle(member)
        cell.dispatcher.take(member, Idle(done=done, seconds=0.1, roles=("renderer",)))
        assert cell.dispatcher.give(member) and member.orders == done + 1
