"""The balance: leases, recall, copies, and evidence against episodes."""

from __future__ import annotations

import pytest

from nimbus.runner.cluster.balance import EPOCH_BITS, Balance, NodeLease
from nimbus.runner.cluster.pending_work import ItemState, WorkGroup


def make(count: int, *nodes: str, slots: int = 1, **options: object) -> Balance:
    balance = Balance([WorkGroup(name="task", count=count)], **options)  # type: ignore[arg-type]
    for node in nodes:
        balance.join(node, slots, 0.0)
    return balance


def lease(balance: Balance, node: str, idle: int = 1, now: float = 0.0, **options: int) -> NodeLease:
    found = balance.pull(node, idle, now, **options)
    assert found is not None
    return found


def settle(balance: Balance, node: str, *indices: int, now: float = 1.0, seconds: float = 0.0) -> list[bool]:
    return [balance.settled(node, 1, "task", index, now, seconds=seconds) for index in indices]


def test_lease_holds_thirty_seconds_of_work_a_slot():
    balance = make(1000, "a", "b", slots=2)
    assert settle(balance, "a", 0, seconds=10.0) == [True]
    assert len(lease(balance, "a", 2).indices) == pytest.approx(6, abs=2)


def test_leases_shrink_as_the_work_does():
    balance = make(16, "a", "b")
    sizes = []
    while balance.waiting:
        sizes.append(len(lease(balance, "a").indices))
    assert sizes[0] > sizes[-1] == 1 and sum(sizes) == 16


def test_longest_class_is_handed_out_first():
    group = WorkGroup(name="task", count=6, weights=(1.0, 2.0))
    balance = Balance([group], cost_classes={"task": lambda index: index % 2})
    balance.join("a", 1, 0.0)
    order = [index for _ in range(6) if (found := balance.pull("a", 1, 0.0)) for index in found.indices]
    assert order == [1, 3, 5, 0, 2, 4]


def test_numbers_grow_over_restarts_of_the_head():
    first, second = lease(make(9, "a"), "a"), lease(make(9, "a", epoch=2), "a")
    assert second.number > first.number and second.number >> EPOCH_BITS == 2


def test_first_result_wins_whatever_its_lease():
    balance = make(1, "a", "b")
    lease(balance, "a")
    balance.leave("a", is_lost=True)
    balance.join("a", 1, 40.0)
    lease(balance, "b", now=50.0)
    assert settle(balance, "a", 0) == [True] and balance.done
    assert settle(balance, "b", 0) == [False]


def test_lost_answer_is_repaired_by_the_next_beat():
    """If a node does not report an assigned episode, it did not receive the answer."""
    balance = make(4, "a", "b")
    lost = lease(balance, "a").indices
    balance.beat("a", 2.0, [])
    assert balance.waiting == 4
    assert lease(balance, "b").indices == lost


def test_silent_node_loses_its_leases_and_may_return():
    balance = make(2, "a", "b")
    held = lease(balance, "a").indices
    assert balance.look(29.0) == [] and balance.look(31.0) == ["a", "b"]
    balance.beat("a", 32.0, [("task", index) for index in held])
    assert balance.others("task", held[0]) == ["a"] and balance.waiting == 2 - len(held)


def test_idle_node_recalls_what_another_has_not_begun():
    balance = make(8, "a", "b")
    for _ in range(8):
        balance.pull("a", 1, 0.0)
    assert balance.pull("b", 1, 1.0) is None
    assert balance.take_recall("a") == 1 and balance.take_recall("a") == 0
    balance.gave_back("a", [("task", 7)], 1.0)
    assert lease(balance, "b", now=1.0).indices == (7,)


def test_what_a_cell_has_is_copied_and_not_recalled():
    """An idle node once waited for an episode that another cell had taken but not begun, because that cell was busy
    with a long one.
    """
    balance = make(2, "a", "b")
    for _ in range(2):
        balance.pull("a", 1, 0.0)
    balance.note_spare("a", 0)
    assert balance.pull("b", 1, 5.0) is None and balance.take_recall("a") == 0
    assert lease(balance, "b", now=30.0).is_copy


def test_late_episode_is_copied_once():
    balance = make(1, "a", "b", "c")
    lease(balance, "a")
    assert balance.pull("b", 1, 5.0) is None
    assert lease(balance, "b", now=30.0).is_copy
    assert balance.pull("c", 1, 60.0) is None
    assert settle(balance, "b", 0) == [True] and balance.done


def test_node_stays_in_the_context_that_it_has_loaded():
    balance = Balance([WorkGroup(name=name, count=20) for name in ("first", "second")])
    for node in ("a", "b"):
        balance.join(node, 1, 0.0)
    groups = {node: {lease(balance, node).group for _ in range(3)} for node in ("a", "b")}
    assert groups == {"a": {"first"}, "b": {"second"}}


def test_node_gets_only_what_it_has_the_needs_for():
    balance = Balance([WorkGroup(name="cpu", count=2), WorkGroup(name="gpu", count=2, priority=1)])
    balance.join("small", 1, 0.0, groups=["cpu"])
    balance.join("large", 1, 0.0)
    assert lease(balance, "small").group == "cpu" and lease(balance, "large").group == "gpu"


def test_episode_is_given_up_on_evidence_from_two_nodes():
    balance = make(3, "a", "b")
    held = lease(balance, "a").indices
    assert not balance.vote("a", "task", held[0], "3 deaths")
    while other := balance.pull("a", 1, 0.0):
        assert held[0] not in other.indices
        settle(balance, "a", *other.indices)
    assert lease(balance, "b").indices == (held[0],)
    assert balance.vote("b", "task", held[0], "5 deaths")
    assert balance.given_up == {("task", held[0]): ("a: 3 deaths", "b: 5 deaths")} and balance.done


def test_single_node_gives_up_once_nothing_else_is_left():
    balance = make(2, "a")
    assert not balance.vote("a", "task", 0, "3 deaths") and balance.try_giving_up() == []
    lease(balance, "a")
    settle(balance, "a", 1)
    assert balance.try_giving_up() == [("task", 0)] and balance.done


def test_silent_node_is_not_waited_for():
    """The run ends without the result of a node that does not return."""
    balance = make(1, "a", "b")
    held = lease(balance, "a").indices
    assert not balance.vote("a", "task", held[0], "3 deaths")
    balance.beat("a", 31.0, [])
    assert balance.look(31.0) == ["b"] and balance.try_giving_up() == [("task", 0)] and balance.done


def test_no_node_gives_nothing_up():
    balance = make(1, "a", "b")
    balance.vote("a", "task", lease(balance, "a").indices[0], "3 deaths")
    for node in ("a", "b"):
        balance.drain(node)
    assert balance.try_giving_up() == []


def test_task_that_no_node_can_make_is_not_waited_for():
    balance = Balance([WorkGroup(name="cpu", count=1), WorkGroup(name="gpu", count=1)])
    balance.join("a", 1, 0.0, groups=["cpu"])
    lease(balance, "a")
    assert balance.vote("a", "cpu", 0, "3 deaths")


def test_lease_of_light_episodes_fits_into_a_message():
    balance = make(100_000)
    balance.join("a", 500, 0.0)
    balance.work["task"].costs.record(0, 0.01)
    assert len(lease(balance, "a", idle=500).indices) == 2000


def test_withdrawn_evidence_gives_nothing_up():
    balance = make(1, "a", "b")
    balance.vote("a", "task", 0, "failed")
    balance.withdraw_votes("a")
    assert not balance.vote("b", "task", 0, "failed")


def test_settled_episodes_of_earlier_runs_are_not_handed_out():
    states = {"task": bytearray([ItemState.SETTLED, ItemState.PENDING, ItemState.GIVEN_UP])}
    balance = make(3, "a", states=states)
    assert lease(balance, "a").indices == (1,)
    settle(balance, "a", 1)
    assert balance.done


def test_repeatedly_lost_episode_waits_behind_the_others():
    balance = make(3, "a")
    for _ in range(2):
        lost = lease(balance, "a").indices
        assert lost[0] == 0
        balance.leave("a", is_lost=True)
        balance.join("a", 1, 0.0)
    assert lease(balance, "a").indices[0] == 2


def test_node_that_fails_everything_stands_out():
    health = make(1, "a", "b").health
    for _ in range(20):
        health.record_result("b")
    health.record_fault("a", 5)
    assert not health.judge("a")
    health.record_fault("a", 3)
    assert health.judge("a").startswith("8 faults and 0 results") and not health.judge("b")


def test_code_that_fails_everywhere_is_no_fault_of_a_node():
    health = make(1).health
    for node in ("a", "b"):
        health.record_fault(node, 30)
    assert not health.judge("a")
    health.record_result("b")
    assert not health.judge("a")


def test_repeated_vote_is_one_fault():
    """The answer to the first vote was lost, or the episode was closed meanwhile."""
    balance = make(2, "a", "b")
    for _ in range(3):
        balance.vote("a", "task", 0, "3 deaths")
    assert balance.health.faults["a"] == 1
    balance.vote("b", "task", 0, "4 deaths")
    balance.vote("b", "task", 0, "4 deaths")
    assert balance.health.faults["b"] == 1 and len(balance.given_up) == 1
