"""Requests that are larger than a message arrive whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nimbus.datagen.errors import InputError
from nimbus.runner.cluster import message_parts
from nimbus.runner.cluster.message_parts import PartBuffer, lines_of
from nimbus.runner.cluster.messages import MOST_BYTES, EpisodeReport, Leave, MessagePart, Report, request_of, to_line
from tests.support.synthetic import failed_attempts


def large_report(detail: str) -> Report:
    """Return the report of one large row."""
    row = replace(failed_attempts(variants=1)[0], detail=detail)
    return Report(node="n1", episodes=(EpisodeReport(group="drive", index=0, lease=1, attempts=(row,)),))


def parts_of(report: Report) -> list[MessagePart]:
    parts = [request_of(line) for line in lines_of(report)]
    assert all(len(to_line(part)) <= MOST_BYTES for part in parts)
    return [part for part in parts if isinstance(part, MessagePart)]


@pytest.mark.parametrize("detail", ["x" * 200_000, '"\\' * 50_000, "\U0001f600" * 40_000])
def test_parts_are_the_request(detail: str):
    report, buffer = large_report(detail), PartBuffer()
    *first, last = parts_of(report)
    assert first and [buffer.add(part) for part in first] == [None] * len(first)
    assert (whole := buffer.add(last)) and request_of(whole) == report


def test_repeated_request_begins_again():
    buffer, parts = PartBuffer(), parts_of(large_report("x" * 70_000))
    for part in (*parts[:2], *parts[:-1]):
        assert buffer.add(part) is None
    assert buffer.add(parts[-1])
    with pytest.raises(ValueError, match="not at 0"):
        buffer.add(parts[-1])


def test_small_request_is_one_message():
    leave = Leave(node="n1", why="done")
    assert list(lines_of(leave)) == [to_line(leave)]


def test_request_has_a_limit(monkeypatch: pytest.MonkeyPatch):
    report = large_report("x" * 70_000)
    parts = parts_of(report)
    monkeypatch.setattr(message_parts, "MOST_PARTED", 65_000)
    with pytest.raises(InputError, match="the limit is 65000"):
        list(lines_of(report))
    buffer = PartBuffer()
    with pytest.raises(ValueError, match="more than 65000"):
        for part in parts:
            buffer.add(part)
