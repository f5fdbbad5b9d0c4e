from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.runner.monitor.span_merger import SpanMerger, merge_spans

lengths = st.lists(
    st.tuples(st.sampled_from(["plan", "render", "store"]), st.floats(0.001, 50.0), st.floats(0.0, 2.0)), max_size=200
)


def merge(merger: SpanMerger, spans: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    return [*merger.take("0", spans), *merger.rest("0")]


def in_a_row(entries: list[tuple[str, float, float]], *, at: float) -> list[tuple[str, float, float]]:
    spans = []
    for stage, seconds, pause in entries:
        spans.append((stage, at + pause, at + pause + seconds))
        at += pause + seconds
    return spans


@given(lengths)
def test_the_time_of_every_stage_is_kept_and_nothing_overlaps(entries: list[tuple[str, float, float]]) -> None:
    spans = in_a_row(entries, at=1000.0)
    kept = merge(SpanMerger(started=1000.0), spans)
    for stage in ("plan", "render", "store"):
        total = sum(end - begin for name, begin, end in spans if name == stage)
        assert sum(end - begin for name, begin, end in kept if name == stage) == pytest.approx(total, abs=1e-6)
    assert all(end <= begin + 1e-6 for (_, _, end), (_, begin, _) in zip(kept, kept[1:], strict=False))


def test_the_first_minutes_are_kept_as_they_were() -> None:
    spans = in_a_row([("plan", 1.0, 0.5), ("render", 2.0, 0.1), ("plan", 0.5, 0.0)] * 20, at=50.0)
    for kept, was in zip(merge(SpanMerger(started=50.0), spans), spans, strict=True):
        assert kept[0] == was[0] and kept[1:] == pytest.approx(was[1:])


def test_a_month_of_short_spans_leaves_some_ten_thousand() -> None:
    count = 0
    merger = SpanMerger(started=0.0)
    at = 0.0
    while at < 30 * 86_400:  # the rate of a long run, with spans of a hundred-thousandth of its duration
        seconds = max(1.0, at / 100_000)
        count += len(list(merger.take("0", [("render", at, at + seconds)])))
        at += seconds
    assert 2_000 < count < 40_000


def test_a_worker_tells_of_a_tenth_of_a_second_at_once_and_not_of_waiting() -> None:
    short = in_a_row([("plan", 0.004, 0.0), ("wait", 0.004, 0.0), ("render", 0.002, 0.0)] * 30, at=50.0)
    merged = merge_spans(short)
    assert len(merged) < 10 and {stage for stage, _, _ in merged} == {"plan", "render"}
    assert sum(end - begin for _, begin, end in merged) == pytest.approx(30 * 0.006)
    assert merge_spans([("wait", 1.0, 2.0)]) == ()
