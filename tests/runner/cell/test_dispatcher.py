from __future__ import annotations

import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.queue.deadlines import Deadlines
from nimbus.runner.cell.queue.lease import Role, Settled
from nimbus.runner.cell.queue.poison import PoisonDetector
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import EpisodeWritten, Idle, PlanMade
from nimbus.runner.cell.transport.shared_slots import Slab, SlotTable
from nimbus.runner.cell.transport.spec import CellSpec, Resources
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.monitor.progress import Progress
from tests.support.synthetic import open_dataset


@dataclass
class Cell:
    """A dispatcher whose workers are played by the test."""

    dataset: Dataset
    pool: WorkerPool
    dispatcher: Dispatcher

    def employ(self, role: str = "renderer") -> WorkerHandle:
        """A new worker, with an order."""
        fork_server, _theirs = pair()
        handle = self.pool.start(fork_server, role=role, seat=self.pool.free_seats()[0])
        self.dispatcher.take(handle, Idle(done=0))
        self.dispatcher.give(handle)
        return handle

    def finish(self, handle: WorkerHandle, *, seconds: float = 1e-3) -> None:
        """Let a worker carry out all that it has: plans are made, and what is rendered is rejected."""
        for lease in self.dispatcher.work.held_by(handle.number):
            if lease.role is Role.PLANNER:
                self.dispatcher.take(handle, PlanMade(index=lease.index, lease=lease.number))
            else:
                self.dispatcher.places.free(self.dispatcher.work.settled(lease.index, 0, Settled.REJECTED))
        roles = dict.fromkeys([*handle.roles, handle.ordered_as])
        self.dispatcher.take(handle, Idle(done=handle.orders, seconds=seconds, roles=tuple(roles)))

    def orders_for(self, handle: WorkerHandle) -> int:
        """How many a free worker gets now."""
        before = handle.orders
        self.dispatcher.give(handle)
        return handle.orders - before

    def trust(self, *, deaths: int = 0) -> None:
        """Let a hundred workers have carried out an order, and some have died at theirs."""
        for role in Role:
            for number in range(100 - deaths):
                self.dispatcher.evidence.record_lease(10**6 + number, role)
            for number in range(deaths):
                self.dispatcher.evidence.record_death(10**7 + number, 1, "plan", role=role, solo=False)

    def write(self, handle: WorkerHandle, variant: int) -> None:
        """Let a worker say that a file is whole."""
        lease = self.dispatcher.work.held_by(handle.number)[0]
        path = self.dataset.stage / f"{variant}.{handle.number}.tmp"
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
        self.dispatcher.take(handle, EpisodeWritten(index=lease.index, lease=lease.number, attempt=attempt, path=name))

    def lose(self, handle: WorkerHandle) -> None:
        """Let a worker be gone."""
        self.pool.forget(handle)
        self.dispatcher.lost(handle)


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
        pool = WorkerPool(spec, selector, slab=slab, seats=8, on_message=lambda *_: None, on_exit=lambda *_: None)
        dispatcher = Dispatcher(
            spec,
            dataset,
            pool,
            slots=SlotTable(max(1, slots)),
            evidence=PoisonDetector(),
            deadlines=Deadlines(),
            progress=Progress(dataset.folder, task="", target=variants * episodes),
            has_planner=slots > 0,
            missing=episodes,
            load_time=0.0,
            run=1,
        )
        yield Cell(dataset, pool, dispatcher)


def test_variants_that_a_worker_did_not_come_to_go_to_another_also_when_the_disk_was_full(cell: Cell) -> None:
    first = cell.employ()
    cell.write(first, 0)
    away = cell.dataset.episodes.rename(cell.dataset.folder / "away")  # now nothing can be committed
    cell.lose(first)
    away.rename(cell.dataset.episodes)
    assert cell.dispatcher.commits.commit(), "there is room again"
    second = cell.employ()
    assert [lease.variants for lease in cell.dispatcher.work.held_by(second.number)] == [(1, 2)]
    cell.write(second, 1)
    cell.write(second, 2)
    cell.dispatcher.commits.commit()
    assert cell.dispatcher.is_done and len(cell.dataset.ledger.stored()) == 3


def test_what_is_written_is_due_after_a_tenth_of_a_second_and_not_before(cell: Cell) -> None:
    commits, before = cell.dispatcher.commits, time.monotonic()
    assert commits.next_commit is None and not commits.is_due(before + 1000)
    cell.write(cell.employ(), 0)
    assert commits.next_commit is not None and before + 0.1 <= commits.next_commit <= time.monotonic() + 0.1
    assert not commits.is_due(commits.next_commit - 0.01) and commits.is_due(commits.next_commit)
    assert commits.commit() and not commits.is_due(before + 1000)


def test_a_worker_that_is_lost_has_what_it_wrote_committed_first(cell: Cell) -> None:
    handle = cell.employ()
    for variant in range(2):
        cell.write(handle, variant)
    cell.lose(handle)
    assert len(cell.dataset.ledger.stored()) == 2 and not cell.dispatcher.is_done
    assert [lease.variants for lease in cell.dispatcher.work.held_by(cell.employ().number)] == [(2,)]


@pytest.mark.parametrize("episodes", [2])
def test_who_gave_no_result_is_ended_also_while_the_disk_is_full(cell: Cell) -> None:
    written, nothing = cell.employ(), cell.employ()
    for variant in range(3):
        cell.write(written, variant)
    cell.dataset.episodes.rename(cell.dataset.folder / "away")
    for handle in (written, nothing):
        cell.dispatcher.take(handle, Idle(done=1))
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
        handle = cell.employ()
        cell.dispatcher.pace.took(Role.RENDERER, seconds, is_first=False)
        cell.finish(handle, seconds=seconds)
        assert cell.orders_for(handle) == count


def test_the_first_order_in_another_role_comes_alone(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=12, variants=1, slots=6) as cell:
        cell.trust()
        handle = cell.employ("planner")
        for role in Role:
            cell.dispatcher.pace.took(role, 1e-3, is_first=False)
        cell.finish(handle)
        assert [cell.orders_for(handle), handle.role] == [5, "planner"]
        cell.finish(handle)
        assert [cell.orders_for(handle), handle.role] == [1, "renderer"], "all slots are full"
        cell.finish(handle)
        assert [cell.orders_for(handle), handle.role] == [5, "renderer"]
        cell.finish(handle)
        assert [cell.orders_for(handle), handle.role] == [6, "planner"], "it has been one before"


def test_a_slot_is_free_for_the_next_plan_once_the_files_of_its_own_are_whole(tmp_path: Path) -> None:
    fixed = Resources(fixed_roles=True, spill=0)
    with open_cell(tmp_path, episodes=2, variants=1, slots=1, resources=fixed) as cell:
        planner = cell.employ("planner")
        cell.finish(planner)
        assert cell.orders_for(planner) == 0, "there is no slot"
        renderer = cell.employ()
        cell.write(renderer, 0)
        assert cell.orders_for(planner) == 1 and not cell.dispatcher.commits.is_empty


def test_a_file_that_is_lost_before_its_commit_is_made_again_from_its_plan_on(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1, variants=1, slots=1) as cell:
        planner = cell.employ("planner")
        cell.finish(planner)
        renderer = cell.employ()
        cell.write(renderer, 0)
        for path in cell.dataset.stage.iterdir():
            path.unlink()
        assert cell.dispatcher.commits.commit() and not cell.dispatcher.is_done
        assert cell.orders_for(planner) == 1
        assert [lease.role for lease in cell.dispatcher.work.held_by(planner.number)] == [Role.PLANNER]
