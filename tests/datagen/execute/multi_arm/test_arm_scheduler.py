"""Simultaneous skills take fixed turns, whatever the threads do."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.execute.multi_arm.arm_scheduler import ArmScheduler


def run(counts: list[int]) -> list[str]:
    """Run functions that each pause a number of times; return the order of events."""
    told: list[str] = []

    def work(name: str, count: int) -> None:
        for turn in range(count):
            told.append(f"{name}{turn}")
            together.pause(name)
        told.append(f"{name} ends")

    names = "abcd"[: len(counts)]
    works = {name: (lambda n=name, c=count: work(n, c)) for name, count in zip(names, counts, strict=True)}
    together = ArmScheduler(works, lambda: told.append("|"))
    together.run()
    return told


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_everybody_has_a_turn_in_every_period(counts: list[int]):
    told = run(counts)
    assert told.count("|") == max(counts)
    periods = " ".join(told).split("|")
    for turn, period in enumerate(periods):
        working = [f"{name}{turn}" for name, count in zip("abcd", counts, strict=False) if count > turn]
        ending = [f"{name} ends" for name, count in zip("abcd", counts, strict=False) if count == turn]
        assert sorted(period.split()) == sorted(" ".join(working + ending).split())
    assert run(counts) == told


def test_the_first_error_ends_all_and_no_thread_stays():
    before, ended = threading.active_count(), []

    def endless() -> None:
        try:
            while True:
                together.pause("a")
        finally:
            ended.append("a")

    def fails() -> None:
        together.pause("b")
        raise ValueError("no")

    together = ArmScheduler({"a": endless, "b": fails}, lambda: None)
    with pytest.raises(ValueError, match="no"):
        together.run()
    assert ended == ["a"] and threading.active_count() == before


def test_an_error_of_the_period_ends_all():
    def endless() -> None:
        while True:
            together.pause("a")

    def advance() -> None:
        raise ArithmeticError

    together = ArmScheduler({"a": endless}, advance)
    with pytest.raises(ArithmeticError):
        together.run()


def test_one_knows_whether_others_still_work():
    seen: list[bool] = []

    def waits() -> None:
        while together.others_work("a"):
            seen.append(True)
            together.pause("a")

    def works() -> None:
        for _ in range(3):
            together.pause("b")

    together = ArmScheduler({"a": waits, "b": works}, lambda: None)
    together.run()
    assert len(seen) == 4
