"""Order of the samples in an epoch, and their division among consumers; no files are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.random_streams import generator

_MOST_BLOCKS = 1 << 24
"""Largest number of blocks in an epoch; their arrays take about 1 GB in each process that reads the dataset."""
Interval = tuple[int, int]
"""Range of positions ``[start, stop)`` in the order of an epoch."""


@dataclass(frozen=True, kw_only=True)
class FrameBlock:
    """Consecutive frames of an episode."""

    episode: int
    start: int
    stop: int


class EpochOrder:
    """Order of all samples in one epoch.

    Episodes are cut into blocks, and the blocks of all episodes are shuffled. Several successive blocks form a pool,
    and the samples in a pool are shuffled. A reader that follows this order keeps one pool in memory and decodes each
    image once.

    Args:
        lengths: (E,) number of frames of each episode.
        seed: Seed of the training.
        epoch: Number of the epoch.
        block: Number of frames per block.
        pool: Number of blocks per pool.
        shuffle: Shuffle blocks and samples; otherwise keep the original order.

    Raises:
        InputError: The episodes have too many blocks. Lengths are only declared by a dataset, and no file is read here.
    """

    def __init__(
        self,
        lengths: NDArray[np.int64],
        *,
        seed: int,
        epoch: int,
        block: int = 32,
        pool: int = 8,
        shuffle: bool = True,
    ) -> None:
        counts = -(-lengths // block)
        if len(counts) and (counts.max() > _MOST_BLOCKS or counts.sum() > _MOST_BLOCKS):
            what = f"the episodes declare more than {_MOST_BLOCKS:,} blocks of {block} frames"
            instead = "check their lengths with 'nimbus verify' or 'nimbus qa', or use larger blocks"
            raise InputError(what, where="the dataset", instead=instead)
        self._block, self._pool, self._shuffle = block, pool, shuffle
        self._seed, self._epoch = seed, epoch
        self._lengths = lengths
        episode = np.repeat(np.arange(len(lengths)), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        start = (np.arange(len(episode)) - first) * block
        turn = generator(seed, epoch, "blocks").permutation(len(episode)) if shuffle else np.arange(len(episode))
        self._episode, self._start = episode[turn], start[turn]
        self._sizes = np.minimum(block, lengths[self._episode] - self._start)
        ends = np.cumsum(self._sizes)
        self._bounds = np.unique(np.concatenate([[0], ends[pool - 1 :: pool], ends[-1:]]))

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def parts(self, intervals: Sequence[Interval]) -> Iterator[Interval]:
        """Yield the intervals, split at the ends of pools."""
        for start, stop in intervals:
            inner = self._bounds[np.searchsorted(self._bounds, start, "right") : np.searchsorted(self._bounds, stop)]
            yield from pairwise((start, *map(int, inner), stop)) if start < stop else ()

    def samples(self, part: Interval) -> tuple[list[FrameBlock], NDArray[np.int64]]:
        """Return the samples at positions of one pool.

        Args:
            part: Positions within one pool, as :meth:`parts` yields them.

        Returns:
            Blocks of the pool, and an array (n, 2) with the block (index into the former) and the frame of each sample.
        """
        number = int(np.searchsorted(self._bounds, part[0], "right")) - 1
        which = slice(number * self._pool, (number + 1) * self._pool)
        sizes, begins = self._sizes[which], self._start[which]
        blocks = [
            FrameBlock(episode=int(episode), start=int(start), stop=int(start + size))
            for episode, start, size in zip(self._episode[which], begins, sizes, strict=True)
        ]
        row = np.repeat(np.arange(len(blocks)), sizes)
        frame = np.concatenate([np.arange(block.start, block.stop) for block in blocks])
        places = np.stack([row, frame], axis=1)
        if self._shuffle:
            places = places[generator(self._seed, self._epoch, "pool", str(number)).permutation(len(places))]
        base = int(self._bounds[number])
        return blocks, places[part[0] - base : part[1] - base]


def size(intervals: Sequence[Interval]) -> int:
    """Count the positions in intervals."""
    return sum(stop - start for start, stop in intervals)


def rank_share(intervals: Sequence[Interval], number: int, count: int) -> list[Interval]:
    """Return one of ``count`` disjoint parts of the intervals, whose sizes differ by at most one.

    Args:
        intervals: Positions to divide.
        number: Index of the part, from 0.
        count: Number of parts.
    """
    total = size(intervals)
    first, last = total * number // count, total * (number + 1) // count
    taken: list[Interval] = []
    passed = 0
    for start, stop in intervals:
        begin, end = max(first - passed, 0), min(last - passed, stop - start)
        if begin < end:
            taken.append((start + begin, start + end))
        passed += stop - start
    return taken


def drop(intervals: Sequence[Interval], count: int) -> list[Interval]:
    """Return the intervals without their first ``count`` positions."""
    left: list[Interval] = []
    for start, stop in intervals:
        skipped = min(count, stop - start)
        count -= skipped
        if start + skipped < stop:
            left.append((start + skipped, stop))
    return left


def union(parts: Sequence[Sequence[Interval]]) -> list[Interval]:
    """Return the union of several disjoint parts: sorted intervals, of which adjacent ones are joined."""
    joined: list[Interval] = []
    for start, stop in sorted(interval for part in parts for interval in part):
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined
