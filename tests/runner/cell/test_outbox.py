from __future__ import annotations

import pytest

from nimbus.runner.cell.channel import LONGEST, Channel, pair
from nimbus.runner.cell.messages import Idle, Recorded, Trouble, all_from_bytes
from nimbus.runner.cell.outbox import Outbox


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
