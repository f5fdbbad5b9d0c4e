from __future__ import annotations

import itertools
import threading

import pytest

from nimbus.runner.cell.transport.channel import LONGEST, Channel, pair
from nimbus.runner.cell.transport.messages import Idle, PlanMade, Recorded, Trouble, all_from_bytes
from nimbus.runner.cell.worker.result_batch import Outbox


def heard(channel: Channel) -> list[list[object]]:
    """All that has come, by datagram."""
    return [all_from_bytes(content) for content in iter(channel.receive_now, None)]


def result(index: int) -> Recorded:
    return Recorded(index=index, lease=1, attempts=())


def test_a_result_is_told_at_once():
    ours, theirs = pair()
    outbox = Outbox(theirs)
    outbox.result(result(1))
    assert heard(ours) == [[result(1)]]
    outbox.say(Idle(done=1))
    assert heard(ours) == [[Idle(done=1)]]


def test_results_of_several_orders_are_told_together_with_what_is_said_next():
    ours, theirs = pair()
    outbox = Outbox(theirs)
    outbox.keep_results()
    outbox.result(result(1))
    outbox.result(result(2))
    assert heard(ours) == []
    outbox.say(Idle(done=2))
    outbox.result(result(3))
    assert heard(ours) == [[result(1), result(2), Idle(done=2)], [result(3)]], "the last one at once again"


def test_what_was_kept_for_long_is_told_as_soon_as_progress_is_made(monkeypatch: pytest.MonkeyPatch):
    ours, theirs = pair()
    outbox, now = Outbox(theirs), [0.0]
    monkeypatch.setattr("nimbus.runner.cell.worker.result_batch.time.monotonic", lambda: now[0])
    outbox.keep_results()
    outbox.result(result(1))
    now[0] = 0.09
    outbox.result(result(2))
    outbox.send_old()
    assert heard(ours) == []
    now[0] = 0.11
    outbox.send_old()
    assert heard(ours) == [[result(1), result(2)]]
    outbox.send_old()
    outbox.result(result(3))
    assert heard(ours) == [], "the next ones are kept again"


def test_what_was_made_before_an_exception_is_told_with_it():
    ours, theirs = pair()
    outbox = Outbox(theirs)
    outbox.keep_results()
    outbox.keep(PlanMade(index=1, lease=1))
    outbox.result(result(2))
    trouble = Trouble(sort="exception", line="ValueError: 3")
    outbox.say(trouble)
    assert heard(ours) == [[PlanMade(index=1, lease=1), result(2), trouble]]


def test_nothing_is_lost_between_two_threads():
    ours, theirs = pair()
    outbox, arrived = Outbox(theirs), []
    thread = threading.Thread(target=lambda: [outbox.result(result(index)) for index in range(500)])
    thread.start()
    for done in range(500):
        outbox.keep_results()
        outbox.say(Idle(done=done))
        arrived += itertools.chain(*heard(ours))
    while thread.is_alive():
        arrived += itertools.chain(*heard(ours))
    outbox.say(Idle(done=500))
    arrived += itertools.chain(*heard(ours))
    assert [message for message in arrived if isinstance(message, Recorded)] == [result(index) for index in range(500)]
    assert [message for message in arrived if isinstance(message, Idle)] == [Idle(done=done) for done in range(501)]


@pytest.mark.parametrize(("spare", "datagrams"), [(0, 1), (-1, 2)])
def test_what_is_too_long_for_one_datagram_comes_in_several(spare: int, datagrams: int):
    ours, theirs = pair()
    outbox = Outbox(theirs)
    first, second = (Trouble(sort="", line="a line\n" + "x" * 60_000) for _ in range(2))
    lengths = [len(line) for line in _lines(first, second)]
    first = Trouble(sort="", line=first.line + "x" * (LONGEST - sum(lengths) - 1 - spare))
    outbox.keep_results()
    outbox.result(first)
    outbox.say(second)
    assert heard(ours) == ([[first, second]] if datagrams == 1 else [[first], [second]])


def _lines(*messages: object) -> list[bytes]:
    ours, theirs = pair()
    for message in messages:
        Outbox(theirs).say(message)
    return list(iter(ours.receive_now, None))
