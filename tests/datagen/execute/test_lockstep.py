"""Episodes in lockstep: full batches, and results that depend on no other episode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.execute.lockstep import Lane, Lockstep
from nimbus.datagen.execute.multi_arm.arm_scheduler import ArmScheduler
from nimbus.datagen.stages import Planned, Randomized, Request
from tests.support.synthetic import make_rendered


class Doubler:
    """Planner that returns twice its query, independently of the rest of the batch."""

    def plan_batch(self, queries: Sequence[SimpleNamespace]) -> list[int]:
        return [2 * query.value for query in queries]


def made(lengths: Sequence[int | None], *, lanes: int) -> tuple[dict[int, list[int]], Lockstep]:
    """Return the answers to each episode, which sends the given number of queries; None for a round without a query."""
    answers: dict[int, list[int]] = {}
    planned = make_planned()

    def attempts(item: Randomized, lane: Lane) -> Iterator[Planned]:
        index = item.scene.request.index
        length = lengths[index]
        assert length is not None
        answers[index] = [ask(lane, 100 * index + number) for number in range(length)]
        yield replace(planned, scene=item.scene)

    step = Lockstep(attempts, lanes=lanes, watch=lambda item, spent: None)
    items = iter([None if length is None else at(index) for index, length in enumerate(lengths)])
    done = [item.scene.request.index for item in step.run(items)]
    assert sorted(done) == sorted(answers)
    return answers, step


def ask(lane: Lane, value: int) -> int:
    return cast(int, lane.exchange(cast(Any, Doubler()), cast(Any, SimpleNamespace(value=value))))


def at(index: int) -> Randomized:
    rendered = make_rendered()
    scene = replace(rendered.scene, request=Request(index=index))
    return Randomized(scene=scene, layouts=(rendered.layout,), times={"load": 1.0})


def make_planned() -> Planned:
    rendered = make_rendered()
    return Planned(scene=rendered.scene, layouts=(rendered.layout,), trajectory=rendered.trajectory)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 9))
def test_results_depend_on_no_companion(lengths: list[int], lanes: int):
    answers, _ = made(lengths, lanes=lanes)
    assert answers == {
        index: [2 * (100 * index + number) for number in range(length)] for index, length in enumerate(lengths)
    }


def test_free_lane_takes_the_next_episode():
    _, step = made([1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3], lanes=4)
    assert sum(size * count for size, count in step.batches.items()) == 24
    assert step.batches[4] >= 5, "only the last episodes leave lanes empty"


def test_lanes_go_on_while_nothing_waits():
    answers, step = made([5, None, None, None, 1], lanes=2)
    assert answers[0] == [0, 2, 4, 6, 8] and answers[4] == [800] and max(step.batches) == 2


def test_error_ends_the_other_lanes():
    """The error names the episode, and no thread continues to wait."""
    seen: list[int] = []

    def attempts(item: Randomized, lane: Lane) -> Iterator[Planned]:
        index = item.scene.request.index
        try:
            ask(lane, index)
            if index == 1:
                raise ValueError("a wheel came off")
            ask(lane, index)
        finally:
            seen.append(index)
        yield make_planned()

    step = Lockstep(attempts, lanes=3, watch=lambda item, spent: None)
    with pytest.raises(ValueError, match="a wheel came off") as caught:
        list(step.run(at(index) for index in range(3)))
    assert "in stage plan" in caught.value.__notes__[0] and sorted(seen) == [0, 1, 2]


def test_arms_of_an_episode_ask_within_its_lane():
    """Two arms in separate threads request motions; stopping the lane ends both."""
    planned, answers = make_planned(), dict[str, list[int]]()

    def attempts(item: Randomized, lane: Lane) -> Iterator[Planned]:
        index = item.scene.request.index

        def work(arm: str) -> None:
            for number in range(3):
                answers.setdefault(f"{index} {arm}", []).append(ask(lane, 100 * index + number))
                scheduler.pause(arm)

        scheduler = ArmScheduler({arm: lambda arm=arm: work(arm) for arm in ("left", "right")}, lambda: None)
        scheduler.run()
        yield replace(planned, scene=item.scene)

    step = Lockstep(attempts, lanes=2, watch=lambda item, spent: None)
    assert len(list(step.run(at(index) for index in range(3)))) == 3
    assert answers == {
        f"{index} {arm}": [200 * index, 200 * index + 2, 200 * index + 4]
        for index in range(3)
        for arm in ("left", "right")
    }
    running = step.run(at(index) for index in range(2))
    assert next(running)
    running.close()
    assert all(lane.is_free for lane in step._lanes)


def test_times_of_earlier_stages_are_counted_once():
    planned = make_planned()

    def attempts(item: Randomized, lane: Lane) -> Iterator[Planned]:
        begin = lane.clock()
        for number in range(2):
            ask(lane, number)
            yield replace(planned, final=number == 1, times={"plan": lane.clock() - begin})

    results = list(Lockstep(attempts, lanes=2, watch=lambda item, spent: None).run(iter([at(0)])))
    assert [result.times.get("load", 0.0) for result in results] == [1.0, 0.0]
    assert results[1].times["plan"] >= results[0].times["plan"] >= 0.0
