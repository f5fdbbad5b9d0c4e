"""An epoch contains every sample exactly once, however the work is divided, stopped and resumed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nimbus.datagen.datasets.training.order import EpochOrder, FrameBlock, drop, rank_share, size, union
from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.datasets.training.samples import Samples, merge_states
from nimbus.datagen.errors import InputError

LENGTHS = st.lists(st.integers(1, 23), min_size=1, max_size=8)
SPLITS = st.tuples(st.integers(1, 4), st.integers(1, 3))


class Numbers:
    """Frames that contain only their number."""

    fps, cameras, columns, is_stored = 10, (), ("row",), False

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = np.array(lengths, np.int64)

    def signals(self, episode: int) -> dict[str, NDArray[np.float32]]:
        return {"row": np.arange(self.lengths[episode], dtype=np.float32)[:, None]}

    def images(self, episode: int, camera: str, start: int, stop: int) -> NDArray[np.uint8]:
        raise AssertionError

    def task(self, episode: int) -> str:
        return ""

    def facts(self) -> dict[str, NDArray[Any]]:
        return {}

    def fetch(self, blocks: Sequence[FrameBlock], cameras: Sequence[str]) -> None:
        raise AssertionError

    def close(self) -> None:
        pass


def consumers(reader: Reader, ranks: int, workers: int, **options: Any) -> list[Samples]:
    places = [(rank, worker) for rank in range(ranks) for worker in range(workers)]
    given: dict[str, Any] = {"ahead": 0, "ranks": ranks, "workers": workers} | options
    return [Samples(reader, rank=rank, worker=worker, **given) for rank, worker in places]


def indices(samples: Samples) -> list[int]:
    return [sample["index"] for sample in samples]


def taken(samples: Samples, count: int) -> list[int]:
    """Return the next samples."""
    return [sample["index"] for sample in islice(samples, count)]


@settings(max_examples=60)
@given(lengths=LENGTHS, split=SPLITS, block=st.integers(1, 9), pool=st.integers(1, 5), shuffle=st.booleans())
def test_every_sample_comes_once_an_epoch_for_any_ranks_and_workers(
    lengths: list[int], split: tuple[int, int], block: int, pool: int, shuffle: bool
) -> None:
    reader = Reader(Numbers(lengths))
    for epoch in range(2):
        parts = consumers(reader, *split, block=block, pool=pool, shuffle=shuffle)
        for part in parts:
            part.set_epoch(epoch)
        counts = [len(part) for part in parts]
        found = [indices(part) for part in parts]
        assert sorted(row for rows in found for row in rows) == list(range(sum(lengths)))
        assert [len(rows) for rows in found] == counts and max(counts) - min(counts) <= 1


@settings(max_examples=60)
@given(data=st.data(), lengths=LENGTHS, stops=st.integers(1, 3), block=st.integers(1, 9), pool=st.integers(1, 4))
def test_stopped_anywhere_and_resumed_by_any_others_nothing_is_lost_or_given_twice(
    data: st.DataObject, lengths: list[int], stops: int, block: int, pool: int
) -> None:
    reader = Reader(Numbers(lengths))
    state, seen = None, []
    for _ in range(stops):
        parts = consumers(reader, *data.draw(SPLITS), block=block, pool=pool, seed=3)
        for part in parts:
            if state:
                part.load_state_dict(state)
            seen += taken(part, data.draw(st.integers(0, len(part))))
        state = merge_states([part.state_dict() for part in parts])
    assert state
    last = consumers(reader, *data.draw(SPLITS), seed=9)
    for part in last:
        part.load_state_dict(state)
        seen += indices(part)
    assert sorted(seen) == list(range(sum(lengths)))
    again = [row for part in last for row in indices(part)]
    assert sorted(again) == list(range(sum(lengths))) and all(part.epoch == 1 for part in last), (
        "the next epoch is whole"
    )


@settings(max_examples=40)
@given(lengths=LENGTHS, count=st.integers(0, 60), ranks=st.integers(1, 3))
def test_one_consumer_goes_on_exactly_where_it_stopped(lengths: list[int], count: int, ranks: int) -> None:
    reader = Reader(Numbers(lengths))
    (undisturbed, *_), (stopped, *_), (resumed, *_) = (consumers(reader, ranks, 1, block=5, pool=2) for _ in range(3))
    whole = indices(undisturbed)
    before = taken(stopped, min(count, len(whole)))
    resumed.load_state_dict(stopped.state_dict())
    assert before + indices(resumed) == whole
    assert indices(resumed) == indices(undisturbed), "and so does the next epoch"


def test_epochs_and_seeds_have_orders_of_their_own_and_the_same_ones_come_again() -> None:
    lengths = np.full(6, 50)
    order = {
        (seed, epoch): list(walk(EpochOrder(lengths, seed=seed, epoch=epoch))) for seed in (0, 1) for epoch in (0, 1)
    }
    assert len({tuple(rows) for rows in order.values()}) == 4
    assert order[0, 1] == list(walk(EpochOrder(lengths, seed=0, epoch=1)))
    assert list(walk(EpochOrder(lengths, seed=0, epoch=1, shuffle=False))) == list(range(300))


@pytest.mark.parametrize("lengths", [[40_000_000_000], [2**53] * 2000, [2**24] * 33])
def test_declared_lengths_reserve_no_memory(lengths: list[int]) -> None:
    with pytest.raises(InputError, match="the episodes declare more than 16,777,216 blocks of 32 frames"):
        EpochOrder(np.array(lengths), seed=0, epoch=0)


def test_a_batch_mixes_episodes() -> None:
    rows = list(walk(EpochOrder(np.full(20, 100), seed=0, epoch=0, block=16, pool=8)))
    assert np.mean([len({row // 100 for row in rows[start : start + 32]}) for start in range(0, 2000, 32)]) > 5


def walk(order: EpochOrder) -> Any:
    for part in order.parts([(0, len(order))]):
        blocks, places = order.samples(part)
        for block, frame in places:
            length = int(order._lengths[0])
            yield blocks[block].episode * length + int(frame)


INTERVALS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6).map(
    lambda gaps: [
        (stop - gaps[row][1], stop) for row, stop in enumerate(np.cumsum([sum(gap) for gap in gaps]).tolist())
    ]
)


@given(intervals=INTERVALS, count=st.integers(1, 7), skipped=st.integers(0, 40))
def test_shares_are_all_positions_once_and_what_is_dropped_comes_first(
    intervals: list[tuple[int, int]], count: int, skipped: int
) -> None:
    positions = [row for start, stop in intervals for row in range(start, stop)]
    parts = [rank_share(intervals, number, count) for number in range(count)]
    assert [row for part in parts for start, stop in part for row in range(start, stop)] == positions
    sizes = [size(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert [row for start, stop in drop(intervals, skipped) for row in range(start, stop)] == positions[skipped:]
    assert [row for start, stop in union(parts) for row in range(start, stop)] == positions


def test_states_that_do_not_fit_are_refused() -> None:
    reader, other = Reader(Numbers([20])), Reader(Numbers([21]))
    one, two = consumers(reader, 2, 1)
    with pytest.raises(ValueError, match="merge all states"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="each consumer must occur exactly once"):
        merge_states([one.state_dict()])
    with pytest.raises(ValueError, match="each consumer must occur exactly once"):
        merge_states([one.state_dict(), one.state_dict()])
    with pytest.raises(ValueError, match="a dataset with 21 samples, this one has 20"):
        one.load_state_dict(Samples(other).state_dict())
    indices(two)
    indices(two)
    with pytest.raises(ValueError, match="different epochs"):
        merge_states([one.state_dict(), two.state_dict()])
    with pytest.raises(ValueError, match="rank 2 of 2 or worker 0 of 1 does not exist"):
        Samples(reader, rank=2, ranks=2)
