from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nimbus.runner.cell.queue.lease import Lease, Missing, Role, Settled
from nimbus.runner.cell.queue.work_queue import WorkQueue


def queue(count: int, **options: bool) -> WorkQueue:
    return WorkQueue((Missing(index=index, variants=(0,)) for index in range(count)), total=count, **options)


def plan(work: WorkQueue, place: int | str, *, worker: int = 1) -> Lease:
    lease = work.next_plan(worker)
    assert lease and work.planned(lease.index, place, lease=lease.number)
    return lease


def test_plans_are_handed_out_lowest_first_and_rendered_oldest_first():
    work = queue(3)
    first, second = work.next_plan(1), work.next_plan(2)
    assert first and second and (first.index, second.index) == (0, 1)
    assert work.planned(1, "stage/1.plan", lease=second.number)
    assert work.planned(0, 7, lease=first.number)
    renders = [work.next_render(3), work.next_render(3), work.next_render(3)]
    assert [(lease.index, lease.place) for lease in renders if lease] == [(1, "stage/1.plan"), (0, 7)]
    assert [lease.index for lease in work.held_by(3)] == [0, 1]


def test_a_dead_worker_loses_its_planning_but_not_the_place_of_its_plan():
    work = queue(3)
    plan(work, 5)
    work.next_plan(1)
    rendering = work.next_render(1)
    assert rendering and rendering.place == 5
    assert [(lease.index, lease.role) for lease in work.lost(1)] == [(0, Role.RENDERER), (1, Role.PLANNER)]
    assert work.lost(1) == ()
    again = work.next_render(2)
    assert again and (again.index, again.place, again.number) == (0, 5, rendering.number + 1)


def test_what_was_lost_comes_behind_what_was_not():
    work = queue(3)
    work.next_plan(1)
    work.lost(1)
    assert [lease.index for lease in iter(lambda: work.next_plan(1), None) if lease] == [1, 2, 0]


def test_a_plan_under_an_old_lease_is_refused():
    work = queue(1)
    old = work.next_plan(1)
    work.lost(1)
    new = work.next_plan(2)
    assert old and new
    assert not work.planned(0, 3, lease=old.number)
    assert work.planned(0, 4, lease=new.number)
    assert not work.planned(0, 5, lease=new.number)
    rendering = work.next_render(1)
    assert rendering and rendering.place == 4


def test_requests_that_follow_later_keep_the_queue_open():
    closed, waiting = -1, [4]

    def requests() -> Iterator[Missing | None]:
        while waiting != [closed]:
            yield Missing(index=waiting.pop(), variants=(0,)) if waiting else None

    work = WorkQueue(requests(), total=1, is_ordered=False)
    first = work.next_plan(1)
    assert first and first.index == 4 and work.next_plan(1) is None
    assert not work.finished and work.counts.pending == 0
    waiting.append(1)
    work.expect(2)
    assert work.counts.pending == 1
    assert (second := work.next_plan(1)) and second.index == 1
    for index in (4, 1):
        work.settled(index, 0, Settled.STORED)
        assert work.is_complete(index)
    assert not work.finished
    waiting.append(closed)
    assert work.finished


def test_unordered_requests_may_all_wait_from_the_start():
    work = WorkQueue([Missing(index=index, variants=(0,)) for index in (5, 0, 3)], is_ordered=False)
    assert [lease and lease.index for lease in map(work.next_plan, (1, 2, 3))] == [5, 0, 3]


def test_an_index_is_complete_when_its_last_missing_variant_is_settled():
    work = WorkQueue([Missing(index=4, variants=(1, 3), stored_plan="episodes/a.hdf5", leases=6)])
    lease = work.next_plan(1)
    assert lease and (lease.variants, lease.stored_plan, lease.number) == ((1, 3), "episodes/a.hdf5", 7)
    work.planned(4, 0, lease=7)
    work.next_render(2)
    assert work.settled(4, 1, Settled.STORED) is None
    assert work.settled(4, 1, Settled.STORED) is None
    assert not work.is_complete(4) and not work.finished
    work.lost(2)
    again = work.next_render(2)
    assert again and again.variants == (3,)
    assert work.settled(4, 3, Settled.REJECTED) == 0
    assert work.is_complete(4) and work.finished
    assert (work.counts.stored, work.counts.rejected, work.counts.settled) == (1, 1, 1)


def test_a_pipeline_in_one_role_hands_out_what_is_pending_to_renderers():
    work = queue(2, has_planner=False)
    assert work.next_plan(1) is None
    lease = work.next_render(1)
    assert lease and (lease.index, lease.place, lease.role) == (0, None, Role.RENDERER)
    work.lost(1)
    work.isolate(0)
    lease = work.next_isolated(2)
    assert lease and lease.is_isolated and lease.role is Role.RENDERER


def test_what_is_isolated_waits_for_a_fresh_worker():
    work = queue(1)
    plan(work, 2)
    work.next_render(1)
    with pytest.raises(ValueError, match="episode 0 is leased to worker 1"):
        work.isolate(0)
    work.lost(1)
    work.isolate(0)
    assert (work.next_plan(2), work.next_render(2)) == (None, None)
    assert (work.counts.planned, work.counts.isolated) == (0, 1)
    lease = work.next_isolated(3)
    assert lease and lease.is_isolated and lease.place == 2
    assert work.next_isolated(4) is None


def test_what_was_isolated_may_still_be_settled_or_dropped():
    work = queue(2)
    for index in range(2):
        plan(work, index)
        work.next_render(1)
        work.lost(1)
        work.isolate(index)
    assert work.settled(0, 0, Settled.STORED) == 0
    assert work.drop(1) == 1
    assert work.next_isolated(2) is None
    assert work.counts.isolated == 0 and work.finished


def test_a_plan_that_cannot_be_read_is_made_again():
    work = queue(1)
    plan(work, 2)
    work.next_render(1)
    assert work.replan(0) == 2
    assert work.held_by(1) == () and work.next_render(1) is None
    assert work.next_plan(1)


def test_a_plan_whose_files_are_whole_gives_its_place_back_and_is_made_again_if_one_is_lost():
    work = WorkQueue([Missing(index=0, variants=(0, 1))])
    plan(work, 2)
    lease = work.next_render(1)
    assert lease and work.rendered(0, 0, lease=lease.number - 1) is None, "of an older lease"
    for _ in range(2):
        assert work.rendered(0, 1, lease=lease.number) is None, "another variant is to come"
    assert work.rendered(0, 0, lease=lease.number) == 2
    assert work.settled(0, 0, Settled.STORED) is None
    assert [lease.index for lease in work.lost(1)] == [0] and work.next_render(1) is None
    again = work.next_plan(1)
    assert again and again.variants == (1,) and again.place is None


def test_a_dropped_episode_gives_its_place_back_and_is_told_apart():
    work = queue(1)
    plan(work, 2)
    assert work.drop(0) == 2 and work.drop(0) is None
    assert work.finished and (work.counts.quarantined, work.counts.settled) == (1, 0)
    assert work.settled(0, 0, Settled.STORED) is None


def test_requests_are_read_as_they_are_needed():
    read = 0

    def endless() -> Iterator[Missing]:
        nonlocal read
        for read in itertools.count(1):
            yield Missing(index=read, variants=(0,))

    work = WorkQueue(endless(), total=10_000_000)
    for number in range(1, 1001):
        lease = work.next_plan(1)
        assert lease and lease.index == number
        work.settled(number, 0, Settled.REJECTED)
    assert read <= 1001 and work.counts.pending == 10_000_000 - 1000
    assert work.is_complete(1000) and not work.is_complete(1001)


def test_indices_that_do_not_grow_are_refused():
    work = WorkQueue([Missing(index=1, variants=(0,)), Missing(index=1, variants=(1,))])
    work.next_plan(1)
    with pytest.raises(ValueError, match="index 1 after 1"):
        work.next_plan(1)


WORKERS = st.integers(0, 4)
INDICES = st.integers(0, 11)


class Queue(RuleBasedStateMachine):
    """Whatever workers do, no episode is lost or leased twice at once, and the queue ends when all are settled."""

    def __init__(self) -> None:
        super().__init__()
        requests = [Missing(index=index, variants=tuple(range(index % 4))) for index in range(12)]  # some miss nothing
        self.open = {request.index: set(request.variants) for request in requests if request.variants}
        self.work = WorkQueue(iter(requests), total=len(self.open))
        self.leases: dict[int, Lease] = {}
        self.places: dict[int, int] = {}
        self.unwritten: dict[int, set[int]] = {}
        self.numbers: dict[int, int] = {}
        self.next_place = itertools.count()

    def take(self, lease: Lease | None) -> None:
        if lease is None:
            return
        assert lease.index in self.open and lease.index not in self.leases
        assert lease.number > self.numbers.get(lease.index, 0)
        assert set(lease.variants) == self.open[lease.index]
        assert lease.place == self.places.get(lease.index)
        self.leases[lease.index], self.numbers[lease.index] = lease, lease.number
        self.unwritten[lease.index] = set(lease.variants)

    def close(self, index: int, freed: object) -> None:
        assert freed == self.places.pop(index, None)
        del self.open[index]
        self.leases.pop(index, None)

    @rule(worker=WORKERS)
    def plans(self, worker: int) -> None:
        self.take(self.work.next_plan(worker))

    @rule(worker=WORKERS)
    def renders(self, worker: int) -> None:
        self.take(self.work.next_render(worker))

    @rule(worker=WORKERS)
    def works_alone(self, worker: int) -> None:
        self.take(self.work.next_isolated(worker))

    @rule(index=INDICES, age=st.integers(0, 1))
    def has_planned(self, index: int, age: int) -> None:
        lease = self.leases.get(index)
        number, place = self.numbers.get(index, 1) - age, next(self.next_place)
        expected = lease is not None and lease.role is Role.PLANNER and lease.number == number
        assert self.work.planned(index, place, lease=number) == expected
        if expected:
            self.places[index] = place
            del self.leases[index]

    @rule(index=INDICES, variant=st.integers(0, 3), age=st.integers(0, 1))
    def has_rendered(self, index: int, variant: int, age: int) -> None:
        lease, number = self.leases.get(index), self.numbers.get(index, 1) - age
        freed = self.work.rendered(index, variant, lease=number)
        if lease is None or lease.number != number:
            assert freed is None
            return
        self.unwritten[index].discard(variant)
        assert freed == (None if self.unwritten[index] else self.places.pop(index, None))

    @rule(index=INDICES, variant=st.integers(0, 3), kind=st.sampled_from(Settled))
    def settles(self, index: int, variant: int, kind: Settled) -> None:
        if index not in self.numbers:  # no worker had it yet
            return
        freed = self.work.settled(index, variant, kind)
        left = self.open.get(index)
        if left is None or variant not in left:
            assert freed is None
            return
        left.remove(variant)
        if not left:
            self.close(index, freed)

    @rule(worker=WORKERS)
    def dies(self, worker: int) -> None:
        lost = self.work.lost(worker)
        mine = [lease for lease in self.leases.values() if lease.worker == worker]
        assert sorted(lease.index for lease in lost) == sorted(lease.index for lease in mine)
        for lease in mine:
            del self.leases[lease.index]

    @rule(index=INDICES)
    def is_quarantined(self, index: int) -> None:
        if index in self.open and index in self.numbers:
            self.close(index, self.work.drop(index))
        elif index not in self.open:
            assert self.work.drop(index) is None

    @rule(index=INDICES)
    def is_isolated(self, index: int) -> None:
        if index in self.open and index in self.numbers and index not in self.leases:
            self.work.isolate(index)

    @rule(index=INDICES)
    def cannot_be_read(self, index: int) -> None:
        place = self.places.pop(index, None)
        assert self.work.replan(index) == place
        if place is not None:
            self.leases.pop(index, None)

    @invariant()
    def counts_add_up(self) -> None:
        counts = self.work.counts
        planning = sum(lease.role is Role.PLANNER for lease in self.leases.values())
        assert (counts.planning, counts.rendering) == (planning, len(self.leases) - planning)
        assert counts.pending + counts.planned + counts.isolated == len(self.open) - len(self.leases)
        for worker in range(5):
            mine = {lease.index for lease in self.leases.values() if lease.worker == worker}
            assert {lease.index for lease in self.work.held_by(worker)} == mine

    @invariant()
    def it_is_finished_when_nothing_is_open(self) -> None:
        assert self.work.finished == (not self.open)
        for index in self.numbers:
            assert self.work.is_complete(index) == (index not in self.open)

    @precondition(lambda self: self.open)
    @rule()
    def everything_that_waits_can_be_had(self) -> None:
        """Check that workers with enough requests get all episodes that no worker has."""
        while lease := self.work.next_isolated(0) or self.work.next_render(0) or self.work.next_plan(0):
            self.take(lease)
        assert set(self.leases) == set(self.open)


Queue.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestQueue = Queue.TestCase
