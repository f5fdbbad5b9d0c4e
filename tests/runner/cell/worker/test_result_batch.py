from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import pytest

from nimbus.runner.cell.transport.channel import LONGEST, Channel, pair
from nimbus.runner.cell.transport.messages import Idle, PlanMade, Recorded, WorkerError, all_from_bytes, pack
from nimbus.runner.cell.worker.result_batch import ResultBatch
from tests.support.synthetic import failed_attempts


def heard(channel: Channel) -> list[Sequence[object]]:
    """Return all received messages, by datagram."""
    return [all_from_bytes(content) for content in iter(channel.receive_now, None)]


def result(index: int) -> Recorded:
    return Recorded(index=index, lease=1, attempts=())


def test_a_result_is_told_at_once():
    ours, theirs = pair()
    batch = ResultBatch(theirs)
    batch.result(result(1))
    assert heard(ours) == [[result(1)]]
    batch.send(Idle(done=1))
    assert heard(ours) == [[Idle(done=1)]]


def test_results_of_several_orders_are_told_together_with_what_is_said_next():
    ours, theirs = pair()
    batch = ResultBatch(theirs)
    batch.hold_results()
    batch.result(result(1))
    batch.result(result(2))
    assert heard(ours) == []
    batch.send(Idle(done=2))
    batch.result(result(3))
    assert heard(ours) == [[result(1), result(2), Idle(done=2)], [result(3)]], "the last one at once again"


def test_what_was_kept_for_long_is_told_as_soon_as_progress_is_made(monkeypatch: pytest.MonkeyPatch):
    ours, theirs = pair()
    batch, now = ResultBatch(theirs), [0.0]
    monkeypatch.setattr("nimbus.runner.cell.worker.result_batch.time.monotonic", lambda: now[0])
    batch.hold_results()
    batch.result(result(1))
    now[0] = 0.09
    batch.result(result(2))
    batch.send_old()
    assert heard(ours) == []
    now[0] = 0.11
    batch.send_old()
    assert heard(ours) == [[result(1), result(2)]]
    batch.send_old()
    batch.result(result(3))
    assert heard(ours) == [], "the next ones are kept again"


def test_what_was_made_before_an_exception_is_told_with_it():
    ours, theirs = pair()
    batch = ResultBatch(theirs)
    batch.hold_results()
    batch.keep(PlanMade(index=1, lease=1))
    batch.result(result(2))
    trouble = WorkerError(sort="exception", line="ValueError: 3")
    batch.send(trouble)
    assert heard(ours) == [[PlanMade(index=1, lease=1), result(2), trouble]]


def test_nothing_is_lost_between_two_threads():
    ours, theirs = pair()
    batch, arrived = ResultBatch(theirs), []
    thread = threading.Thread(target=lambda: [batch.result(result(index)) for index in range(500)])
    thread.start()
    for done in range(500):
        batch.hold_results()
        batch.send(Idle(done=done))
        arrived += itertools.chain(*heard(ours))
    while thread.is_alive():
        arrived += itertools.chain(*heard(ours))
    batch.send(Idle(done=500))
    arrived += itertools.chain(*heard(ours))
    assert [message for message in arrived if isinstance(message, Recorded)] == [result(index) for index in range(500)]
    assert [message for message in arrived if isinstance(message, Idle)] == [Idle(done=done) for done in range(501)]


@pytest.mark.parametrize(("spare", "datagrams"), [(0, 1), (-1, 2)])
def test_what_is_too_long_for_one_datagram_comes_in_several(spare: int, datagrams: int):
    ours, theirs = pair()
    batch = ResultBatch(theirs)
    first, second = (WorkerError(sort="", line="x" * length) for length in (70_000, 40_000))
    free = LONGEST - 5 - len(pack(first)) - len(pack(second))
    first = WorkerError(sort="", line=first.line + "x" * (free - spare))
    batch.hold_results()
    batch.result(first)
    batch.send(second)
    assert heard(ours) == ([[first, second]] if datagrams == 1 else [[first], [second]])


def test_a_failed_plan_of_a_thousand_variants_arrives():
    """The rows of such a plan are larger than a datagram."""
    ours, theirs = pair()
    attempts = failed_attempts(variants=1000)
    plan = Recorded(index=0, lease=3, attempts=attempts)
    assert len(pack(plan)) > 4 * LONGEST
    thread = threading.Thread(target=ResultBatch(theirs).result, args=(plan,))
    thread.start()
    arrived = []
    while thread.is_alive():
        arrived += itertools.chain(*heard(ours))
    arrived += itertools.chain(*heard(ours))
    assert {(part.index, part.lease) for part in arrived} == {(0, 3)}
    assert tuple(row for part in arrived for row in part.attempts) == attempts
