from __future__ import annotations

import os
import signal
import time
from collections import Counter
from itertools import groupby
from typing import cast

import pytest

from nimbus.datagen import progress
from nimbus.runner.cell.worker.heartbeat import PHASES, Heartbeat, HeartbeatPage, HeartbeatReading


def test_a_stamp_is_read_in_another_process() -> None:
    page = HeartbeatPage.create(3)
    pid = os.fork()
    if pid == 0:
        stamp = HeartbeatPage.attach(page.descriptor).writer(1)
        stamp.phase("plan", index=17, lease=2)
        stamp.tick(5)
        os._exit(0)
    os.waitpid(pid, 0)
    reading = page.snapshot(1)
    assert (reading.phase, reading.index, reading.lease, reading.units) == ("plan", 17, 2, 5)
    assert 0 < reading.age_s <= reading.in_phase_s < 5
    assert [page.snapshot(row).phase for row in (0, 2)] == ["none", "none"]
    with pytest.raises(IndexError, match="row 64 of 64|row 3 of 3"):
        page.snapshot(page.count)


def test_age_runs_since_the_last_stamp_and_the_phase_since_its_beginning() -> None:
    page = HeartbeatPage.create(1)
    stamp = page.writer(0)
    stamp.phase("render", index=0)
    time.sleep(0.03)
    stamp.tick()
    reading = page.snapshot(0)
    assert reading.in_phase_s - reading.age_s >= 0.03 and reading.index == 0
    stamp.phase("render")
    assert page.snapshot(0).in_phase_s >= 0.03, "saying it again does not begin it again"
    stamp.phase("render", index=1)
    reading = page.snapshot(0)
    assert reading.in_phase_s == reading.age_s, "another episode does"


def test_an_unknown_phase_is_an_error() -> None:
    with pytest.raises(KeyError):
        HeartbeatPage.create(1).writer(0).phase("sleep")


def test_patience_asked_for_ends_with_the_phase() -> None:
    page = HeartbeatPage.create(1)
    stamp = page.writer(0)
    stamp.phase("load")
    assert page.snapshot(0).extended_s == 0
    stamp.extend(60)
    stamp.extend(1)
    assert 59 < page.snapshot(0).extended_s <= 60
    stamp.phase("plan")
    assert page.snapshot(0).extended_s == 0


def test_patience_is_asked_for_around_what_is_slow_and_ends_after_it() -> None:
    page = HeartbeatPage.create(1)
    stamp = page.writer(0)
    stamp.phase("render")
    progress.subscribe(lambda _: stamp.tick(), patience=stamp.extend)
    try:
        with progress.allow(600.0):
            progress.tick()
            assert 590 < page.snapshot(0).extended_s <= 600, "a stamp does not end it"
        assert page.snapshot(0).extended_s == 0
    finally:
        progress.subscribe(lambda _: None)


def test_a_row_is_reset_for_a_successor() -> None:
    page = HeartbeatPage.create(2)
    before = page.writer(1)
    before.phase("plan", index=4, lease=9)
    before.tick()
    moment = time.monotonic()
    page.reset(1)
    reading = page.snapshot(1)
    assert (reading.phase, reading.index, reading.lease, reading.units) == ("start", -1, 0, 0)
    assert reading.age_s == reading.in_phase_s <= time.monotonic() - moment
    page.writer(1).phase("load", index=5)
    assert page.snapshot(1).index == 5


def test_gaps_and_stays_are_collected_until_they_are_taken() -> None:
    stamp = HeartbeatPage.create(1).writer(0)
    stamp.phase("plan", index=0)
    time.sleep(0.02)
    stamp.tick()
    time.sleep(0.05)
    stamp.tick()
    stamp.phase("wait")
    stamp.phase("plan", index=1)
    stamp.phase("wait", index=-1)
    taken = stamp.take()
    assert set(taken) == {"plan", "wait"}
    gap, stay = taken["plan"]
    assert 0.05 <= gap <= stay - 0.02
    assert stamp.take() == {}


def test_the_time_before_the_first_stamp_is_a_gap_too() -> None:
    page = HeartbeatPage.create(1)
    page.reset(0)
    stamp = page.writer(0)
    time.sleep(0.02)
    stamp.phase("load")
    gap, stay = stamp.take()["start"]
    assert min(gap, stay) >= 0.02


def test_spans_follow_one_another_without_holes_and_neighbours_of_one_phase_are_one() -> None:
    stamp = HeartbeatPage.create(1).writer(0)
    before = time.time()
    for name, index in (("plan", 0), ("plan", 1), ("render", 1), ("plan", 2), ("wait", -1)):
        stamp.phase(name, index=index)
        time.sleep(0.002)
    spans = stamp.take_spans()
    assert [name for name, _, _ in spans] == ["plan", "render", "plan"]
    assert [end for _, _, end in spans[:-1]] == [begin for _, begin, _ in spans[1:]]
    assert before <= spans[0][1] and spans[-1][2] <= time.time()
    assert stamp.take_spans() == []
    for index in range(20):
        stamp.phase(("plan", "render")[index % 2], index=index)
    assert len(stamp.take_spans(most=5)) == 5 and len(stamp.take_spans()) == 15


def test_no_phase_ever_looks_older_than_it_is_not_even_in_the_middle_of_a_change() -> None:
    page = HeartbeatPage.create(1)
    readings: list[HeartbeatReading] = []

    class Watched:
        """Row that is read after each written word."""

        def __getitem__(self, word: int) -> int:
            return page._row(0)[word]

        def __setitem__(self, word: int, value: int) -> None:
            page._row(0)[word] = value
            readings.append(page.snapshot(0))

    stamp = Heartbeat(cast(memoryview, Watched()))
    stamp.phase("wait")
    time.sleep(1.0)
    readings.clear()
    stamp.phase("plan", index=7)
    assert {reading.phase for reading in readings} == {"wait", "plan"}
    assert all(reading.age_s < 1.0 and reading.in_phase_s < 1.0 for reading in readings if reading.phase == "plan")
    assert readings[0].in_phase_s >= 1.0


def test_readings_of_a_busy_writer_are_whole() -> None:
    page = HeartbeatPage.create(1)
    pid = os.fork()
    if pid == 0:
        stamp = page.writer(0)
        while True:
            stamp.phase("plan", index=0, lease=0)
            time.sleep(0.001)
            stamp.phase("render", index=1, lease=1)
            time.sleep(0.001)
    try:
        while page.snapshot(0).phase in ("none", "start"):
            time.sleep(0.001)
        readings = [page.snapshot(0) for _ in range(3000)]
        # If a writer is preempted between two words, readers see half a record and retry until it continues.
        seen = [found for found, _ in groupby((reading.phase, reading.index, reading.lease) for reading in readings)]
        halves = len(seen) - seen.count(("plan", 0, 0)) - seen.count(("render", 1, 1))
        assert halves <= 10, Counter(seen)
        assert all(reading.age_s < 5 for reading in readings)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_writer_that_died_between_two_words_is_read_all_the_same() -> None:
    page = HeartbeatPage.create(1)
    stamp = page.writer(0)
    stamp.phase("plan", index=3)
    stamp._row[7] += 1  # as after a kill
    assert page.snapshot(0).index == 3
    successor = Heartbeat(stamp._row)
    successor.phase("load", index=4)
    assert page.snapshot(0).phase == "load" and stamp._row[7] % 2 == 0


def test_every_stage_has_a_phase() -> None:
    assert {"start", "load", "randomize", "plan", "render", "store", "close", "wait"} <= set(PHASES)
