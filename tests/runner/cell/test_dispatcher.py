from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nimbus.runner.cell.queue.deadlines import CPU, Bounds, Deadlines
from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.transport.messages import Idle, Recorded, Refill
from nimbus.runner.cell.transport.spec import Resources
from nimbus.runner.cell.watchdog import Watchdog
from tests.support.played_cell import Cell, open_cell
from tests.support.synthetic import failed_attempts


@pytest.fixture
def episodes() -> int:
    return 1


@pytest.fixture
def cell(tmp_path: Path, episodes: int) -> Iterator[Cell]:
    """Return a cell with a few episodes, three variants and no planners."""
    with open_cell(tmp_path, episodes=episodes) as cell:
        yield cell


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
    assert not nothing.is_idle and nothing.ending == "episode 1 ended without a result"


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
        cell.dispatcher.throughput.record(Role.PLANNER, 1e-3, is_first=False)
        for planner in planners:
            cell.finish(planner)
        assert [cell.orders_for(planner) for planner in planners] == [3, 3, 2, 2, 2, 1]
        assert cell.dispatcher.plan_slots.free_count == 24 - 6 - 13 and cell.dispatcher.plan_slots.file_count == 0


def test_no_more_files_are_promised_than_there_may_be(tmp_path: Path) -> None:
    fixed = Resources(fixed_roles=True, spill=5)
    with open_cell(tmp_path, episodes=1000, variants=1, slots=2, resources=fixed) as cell:
        cell.trust()
        planners = [cell.employ("planner") for _ in range(3)]
        cell.dispatcher.throughput.record(Role.PLANNER, 1e-3, is_first=False)
        for _ in range(3):
            for planner in planners:
                cell.finish(planner)
                cell.orders_for(planner)
        assert cell.dispatcher.plan_slots.file_count == 5 and not any(cell.orders_for(each) for each in planners)


@pytest.mark.parametrize(("seconds", "deaths", "count"), [(0.1, 0, 1), (1e-3, 0, 7), (1e-3, 5, 3), (1e-3, 10, 1)])
def test_long_orders_and_those_of_which_many_die_are_given_one_by_one(
    seconds: float, deaths: int, count: int, tmp_path: Path
) -> None:
    with open_cell(tmp_path, episodes=8, variants=1) as cell:
        cell.trust(deaths=deaths)
        handle = cell.employ()
        cell.dispatcher.throughput.record(Role.RENDERER, seconds, is_first=False)
        cell.finish(handle, seconds=seconds)
        assert cell.orders_for(handle) == count


def test_the_first_order_in_another_role_comes_alone(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=12, variants=1, slots=6) as cell:
        cell.trust()
        handle = cell.employ("planner")
        for role in Role:
            cell.dispatcher.throughput.record(role, 1e-3, is_first=False)
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


def test_an_idle_worker_that_is_stopped_has_time_to_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last order to work was long ago, but the order to exit was recent."""
    with open_cell(tmp_path, episodes=1, variants=1) as cell:
        handle = cell.employ()
        cell.pool.heartbeats.writer(handle.row).phase("wait", index=-1, lease=0)
        cell.finish(handle)
        handle.pid, killed = 1 << 30, []
        monkeypatch.setattr(cell.pool, "kill", lambda handle, why: killed.append(why))
        monkeypatch.setattr(cell.pool, "dump", lambda handle: None)
        time.sleep(2.2)
        cell.dispatcher.stop_worker(handle)
        Watchdog(cell.pool, Deadlines({**CPU, "order": Bounds.fixed(2.0, 2.0)}), tick=0.1).look(time.monotonic())
        assert killed == []


def test_what_is_refused_waits_until_its_lease_ends(tmp_path: Path) -> None:
    """The worker still reads the plan's slot for the next variants."""
    with open_cell(tmp_path, episodes=1, variants=3, slots=1) as cell:
        planner = cell.employ("planner")
        cell.finish(planner)
        renderer, colleague = cell.employ(), cell.employ()
        for variant in range(3):
            cell.write(renderer, variant)
            if variant == 0:
                for path in cell.dataset.stage.iterdir():
                    path.unlink()
            cell.dispatcher.commits.commit()
            if variant < 2:
                assert [cell.orders_for(colleague), cell.orders_for(planner)] == [0, 0]
        assert cell.orders_for(planner) == 1
        assert [lease.variants for lease in cell.dispatcher.work.held_by(planner.number)] == [(0,)]
        assert len(cell.dataset.ledger.stored()) == 2


def test_what_is_refused_beside_a_later_file_is_made_again(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1, variants=2) as cell:
        first = cell.employ()
        cell.write(first, 0)
        for path in cell.dataset.stage.iterdir():
            path.unlink()
        cell.write(first, 1)
        cell.dispatcher.commits.commit()
        second = cell.employ()
        assert [lease.variants for lease in cell.dispatcher.work.held_by(second.number)] == [(0,)]
        cell.write(second, 0)
        cell.dispatcher.commits.commit()
        assert cell.dispatcher.is_done and len(cell.dataset.ledger.stored()) == 2


@pytest.mark.parametrize(("role", "other"), [("planner", "renderer"), ("renderer", "planner")])
def test_an_isolated_episode_waits_for_its_fixed_role(role: str, other: str, tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1, variants=1, slots=2, resources=Resources(fixed_roles=True)) as cell:
        planner = cell.employ("planner")
        if role == "renderer":
            cell.finish(planner)
            cell.lose(cell.employ("renderer"))
        cell.lose(planner)
        cell.dispatcher.work.isolate(0)
        assert (cell.employ(other).orders, cell.employ(role).orders) == (0, 1)
        assert [handle.role for handle in cell.pool] == [other, role]


def test_a_failed_plan_may_come_in_parts(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=1, variants=5, slots=1) as cell:
        planner, attempts = cell.employ("planner"), failed_attempts(variants=5)
        for rows in (attempts[:2], attempts[2:]):
            cell.dispatcher.take(planner, Recorded(index=0, lease=1, attempts=rows))
            cell.dispatcher.commits.commit()
        assert cell.dispatcher.is_done and cell.dispatcher.plan_slots.free_count == 1
        assert (cell.dispatcher.work.counts.rejected, planner.results) == (5, 1)


def test_lockstep_planner_is_topped_up_with_fresh_episodes(tmp_path: Path) -> None:
    """The planner holds a lease for each lane; an episode that was lost before is planned alone."""
    with open_cell(tmp_path, episodes=30, variants=1, slots=40, lanes=4) as cell:
        first = cell.employ("planner")
        assert first.orders == 1, "the first one builds the components"
        cell.finish(first)
        assert cell.orders_for(first) == 4
        cell.dispatcher.take(first, Refill(room=3, done=first.orders - 2, seconds=1.0))
        assert cell.dispatcher.top_up(first) and first.orders == 8 and first.room == 0
        held = {lease.index for lease in cell.dispatcher.work.held_by(first.number)}
        cell.lose(first)
        second = cell.employ("planner")
        cell.finish(second)
        assert cell.orders_for(second) == 4
        assert held.isdisjoint(lease.index for lease in cell.dispatcher.work.held_by(second.number))
        given = 0
        while not held & {lease.index for lease in cell.dispatcher.work.held_by(second.number)}:
            cell.finish(second)
            given = cell.orders_for(second)
        assert given == 1, "only lost ones are left"


def test_lockstep_planners_share_episodes_and_slots(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=12, variants=1, slots=9, lanes=8) as cell:
        planners = [cell.employ("planner") for _ in range(2)]
        for planner in planners:
            cell.finish(planner)
        counts = [cell.orders_for(planner) for planner in planners]
        assert counts == [5, 2], "half of those that wait, and then two of nine slots are left"
