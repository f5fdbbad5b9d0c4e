from __future__ import annotations

import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from synthetic import open_dataset

from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.queue.deadlines import Deadlines
from nimbus.runner.cell.queue.lease import Role, Settled
from nimbus.runner.cell.queue.poison import Evidence
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import Idle, PlanMade, Written
from nimbus.runner.cell.transport.shared_slots import Slab, SlotTable
from nimbus.runner.cell.transport.spec import CellSpec, Resources
from nimbus.runner.cell.worker_pool import Crew, Member
from nimbus.runner.monitor.progress import Progress


@dataclass
class Cell:
    """A dispatcher whose workers are played by the test."""

    dataset: Dataset
    crew: Crew
    dispatcher: Dispatcher

    def employ(self, role: str = "renderer") -> Member:
        """A new worker, with an order."""
        zygote, _theirs = pair()
        member = self.crew.start(zygote, role=role, seat=self.crew.free_seats()[0])
        self.dispatcher.take(member, Idle(done=0))
        self.dispatcher.give(member)
        return member

    def finish(self, member: Member, *, seconds: float = 1e-3) -> None:
        """Let a worker carry out all that it has: plans are made, and what is rendered is rejected."""
        for lease in self.dispatcher.work.held_by(member.number):
            if lease.role is Role.PLANNER:
                self.dispatcher.take(member, PlanMade(index=lease.index, lease=lease.number))
            else:
                self.dispatcher.places.free(self.dispatcher.work.settled(lease.index, 0, Settled.REJECTED))
        roles = dict.fromkeys([*member.roles, member.ordered_as])
        self.dispatcher.take(member, Idle(done=member.orders, seconds=seconds, roles=tuple(roles)))

    def orders_for(self, member: Member) -> int:
        """How many a free worker gets now."""
        before = member.orders
        self.dispatcher.give(member)
        return member.orders - before

    def trust(self, *, deaths: int = 0) -> None:
        """Let a hundred workers have carried out an order, and some have died at theirs."""
        for role in Role:
            for number in range(100 - deaths):
                self.dispatcher.evidence.record_lease(10**6 + number, role)
            for number in range(deaths):
                self.dispatcher.evidence.record_death(10**7 + number, 1, "plan", role=role, solo=False)

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
    with open_cell(tmp_path, episodes=episodes) as cell:
        yield cell


@contextmanager
def open_cell(
    folder: Path, *, episodes: int, variants: int = 3, slots: int = 0, resources: Resources | None = None
) -> Iterator[Cell]:
    """A cell without workers; one with slots has planners."""
    with open_dataset(folder / "data") as dataset, selectors.DefaultSelector() as selector:
        spec = CellSpec(folder=str(dataset.folder), episodes=episodes, variants=variants)
        spec = replace(spec, resources=resources or spec.resources)
        slab = Slab.create(slot_count=1, slot_bytes=4096)
        crew = Crew(spec, selector, slab=slab, seats=8, on_message=lambda *_: None, on_exit=lambda *_: None)
        dispatcher = Dispatcher(
            spec,
            dataset,
            crew,
            slots=SlotTable(max(1, slots)),
            evidence=Evidence(),
            deadlines=Deadlines(),
            progress=Progress(dataset.folder, task="", target=variants * episodes),
            has_planner=slots > 0,
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


def test_short_orders_are_given_several_at_once_and_colleagues_find_some(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=12, variants=1) as cell:
        cell.trust()
        first, second = cell.employ(), cell.employ()
        assert [first.orders, second.orders] == [1, 1], "nobody knows yet how long they take"
        given = []
        for _ in range(4):
            cell.finish(first)
            given.append(cell.orders_for(first))
        assert given == [1, 1 + 8 // 2, 1 + 3 // 2, 1 + 1 // 2], "the first of its orders told of building, not of work"
        cell.lose(first)
        assert cell.employ().orders == 1, "one that has done nothing yet gets one"


def test_planners_share_the_slots_that_are_free(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1000, variants=1, slots=24) as cell:
        cell.trust()
        planners = [cell.employ("planner") for _ in range(6)]
        cell.dispatcher.pace.took(Role.PLANNER, 1e-3, is_first=False)
        for planner in planners:
            cell.finish(planner)
        assert [cell.orders_for(planner) for planner in planners] == [3, 3, 2, 2, 2, 1]
        assert cell.dispatcher.places.free_count == 24 - 6 - 13 and cell.dispatcher.places.file_count == 0


def test_no_more_files_are_promised_than_there_may_be(tmp_path: Path) -> None:
    fixed = Resources(fixed_roles=True, spill=5)
    with open_cell(tmp_path, episodes=1000, variants=1, slots=2, resources=fixed) as cell:
        cell.trust()
        planners = [cell.employ("planner") for _ in range(3)]
        cell.dispatcher.pace.took(Role.PLANNER, 1e-3, is_first=False)
        for _ in range(3):
            for planner in planners:
                cell.finish(planner)
                cell.orders_for(planner)
        assert cell.dispatcher.places.file_count == 5 and not any(cell.orders_for(each) for each in planners)


@pytest.mark.parametrize(("seconds", "deaths", "count"), [(0.1, 0, 1), (1e-3, 0, 7), (1e-3, 5, 3), (1e-3, 10, 1)])
def test_long_orders_and_those_of_which_many_die_are_given_one_by_one(
    seconds: float, deaths: int, count: int, tmp_path: Path
) -> None:
    with open_cell(tmp_path, episodes=8, variants=1) as cell:
        cell.trust(deaths=deaths)
        member = cell.employ()
        cell.dispatcher.pace.took(Role.RENDERER, seconds, is_first=False)
        cell.finish(member, seconds=seconds)
        assert cell.orders_for(member) == count


def test_the_first_order_in_another_role_comes_alone(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=12, variants=1, slots=6) as cell:
        cell.trust()
        member = cell.employ("planner")
        for role in Role:
            cell.dispatcher.pace.took(role, 1e-3, is_first=False)
        cell.finish(member)
        assert [cell.orders_for(member), member.role] == [5, "planner"]
        cell.finish(member)
        assert [cell.orders_for(member), member.role] == [1, "renderer"], "all slots are full"
        cell.finish(member)
        assert [cell.orders_for(member), member.role] == [5, "renderer"]
        cell.finish(member)
        assert [cell.orders_for(member), member.role] == [6, "planner"], "it has been one before"


def test_a_slot_is_free_for_the_next_plan_once_the_files_of_its_own_are_whole(tmp_path: Path) -> None:
    fixed = Resources(fixed_roles=True, spill=0)
    with open_cell(tmp_path, episodes=2, variants=1, slots=1, resources=fixed) as cell:
        planner = cell.employ("planner")
        cell.finish(planner)
        assert cell.orders_for(planner) == 0, "there is no slot"
        renderer = cell.employ()
        cell.write(renderer, 0)
        assert cell.orders_for(planner) == 1 and not cell.dispatcher.intake.is_empty


def test_a_file_that_is_lost_before_its_commit_is_made_again_from_its_plan_on(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1, variants=1, slots=1) as cell:
        planner = cell.employ("planner")
        cell.finish(planner)
        renderer = cell.employ()
        cell.write(renderer, 0)
        for path in cell.dataset.stage.iterdir():
            path.unlink()
        assert cell.dispatcher.intake.commit() and not cell.dispatcher.is_done
        assert cell.orders_for(planner) == 1
        assert [lease.role for lease in cell.dispatcher.work.held_by(planner.number)] == [Role.PLANNER]
