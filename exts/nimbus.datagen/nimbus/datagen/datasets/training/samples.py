"""Resumable iteration over all samples of a dataset, shuffled and divided among ranks and workers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from nimbus.datagen.datasets.training.order import EpochOrder, Interval, drop, rank_share, size, union
from nimbus.datagen.datasets.training.reader import Reader, Sample

_FETCHED = 2
"""Number of pools that are fetched from a store ahead of decoding."""
State = dict[str, Any]
"""Remaining part of an epoch, of one consumer or of all, as plain values."""


class Samples:
    """Iterates over a dataset, one epoch per iteration.

    There are ``ranks * workers`` consumers. In every epoch, each sample goes to exactly one consumer, and the numbers
    of their samples differ by at most one. :meth:`state_dict` describes the remaining part of one consumer.
    :func:`merge_states` combines the states of all consumers into one from which any number of consumers can continue.

    Args:
        reader: Source of samples; the thread that reads ahead opens it again.
        seed: Seed of the training.
        block: Number of successive frames of an episode that are decoded together.
        pool: Number of blocks whose samples are shuffled together and kept in memory.
        shuffle: Shuffle the samples; otherwise keep their original order.
        ahead: Number of pools that are read ahead; 0 to read in the caller's thread.
        rank: Index of this process in the training.
        ranks: Number of processes.
        worker: Index of this worker in the process.
        workers: Number of workers per process.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        seed: int = 0,
        block: int = 32,
        pool: int = 8,
        shuffle: bool = True,
        ahead: int = 1,
        rank: int = 0,
        ranks: int = 1,
        worker: int = 0,
        workers: int = 1,
    ) -> None:
        self.reader = reader
        self.wait_seconds = 0.0
        """Total time that the caller waited for samples [s]."""
        self._options = {"block": block, "pool": pool, "shuffle": shuffle}
        self._ahead = ahead
        self._seed = seed
        self._epoch = 0
        self._rank, self._ranks = rank, ranks
        self._number, self._count = _consumer(rank, ranks, worker, workers)
        self._left = self._share()
        self._is_over = False

    @property
    def epoch(self) -> int:
        """Number of the current epoch; after its last sample, still that of the completed epoch."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch; the rest of the current one is dropped."""
        self._epoch, self._left, self._is_over = epoch, self._share(), False

    def work(self, worker: int, workers: int) -> None:
        """Set the index of the worker that this object represents in its rank; a change restarts the epoch."""
        found = _consumer(self._rank, self._ranks, worker, workers)
        if found != (self._number, self._count):
            self._number, self._count = found
            self.reader = self.reader.again()  # open files must not be shared between processes
            self.set_epoch(self._epoch)

    def __len__(self) -> int:
        """Return the number of samples of this consumer that remain in the epoch."""
        return size(self._left)

    def __iter__(self) -> Iterator[Sample]:
        """Iterate over the rest of the epoch; if it is complete, over the next epoch."""
        if self._is_over:
            self.set_epoch(self._epoch + 1)
        order = EpochOrder(self.reader.frames.lengths, seed=self._seed, epoch=self._epoch, **self._options)
        for samples in self._pools(order):
            samples.reverse()
            while samples:  # popping frees the memory of used samples
                self._left = drop(self._left, 1)
                yield samples.pop()
        self._is_over = True

    def state_dict(self) -> State:
        """Return the remaining part of this consumer's epoch as plain values, for JSON or a checkpoint."""
        return {
            "seed": self._seed,
            "epoch": self._epoch,
            "is_over": self._is_over,
            "left": [list(interval) for interval in self._left],
            "consumers": [[self._number, self._count]],
            "samples": len(self.reader),
            "options": dict(self._options),
        }

    def load_state_dict(self, state: State) -> None:
        """Continue from a state of this consumer, or from its part of the merged state of all consumers.

        Raises:
            ValueError: The state belongs to another dataset or another consumer; see :func:`merge_states`.
        """
        if state["samples"] != len(self.reader):
            what = f"the state is for a dataset with {state['samples']} samples, this one has {len(self.reader)}"
            raise ValueError(what)
        left = [(int(start), int(stop)) for start, stop in state["left"]]
        if state["consumers"] != [[self._number, self._count]]:
            if not _are_all(state["consumers"]):
                mine = f"{self._number} of {self._count}"
                what = f"the state belongs to consumer {state['consumers']}, this is {mine}: merge all states"
                raise ValueError(what)
            left = rank_share(left, self._number, self._count)
        self._seed, self._epoch, self._options = state["seed"], state["epoch"], dict(state["options"])
        self._left, self._is_over = left, state["is_over"]

    def _share(self) -> list[Interval]:
        return rank_share([(0, len(self.reader))], self._number, self._count)

    def _pools(self, order: EpochOrder) -> Iterator[list[Sample]]:
        parts = order.parts(list(self._left))
        if not self._ahead:
            for part in parts:
                yield self._load(self.reader, order, part)
            return
        reader = self.reader.again()
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="samples")
        waiting: deque[Future[list[Sample]]] = deque()
        try:
            with _FetchAhead(self.reader, order) as ahead:
                for part, fetched in ahead.parts(parts):
                    waiting.append(thread.submit(self._load, reader, order, part, fetched))
                    if len(waiting) > self._ahead:
                        yield self._waited(waiting.popleft())
                while waiting:
                    yield self._waited(waiting.popleft())
        finally:
            thread.shutdown(cancel_futures=True)
            reader.close()

    def _waited(self, pool: Future[list[Sample]]) -> list[Sample]:
        begin = time.perf_counter()
        samples = pool.result()
        self.wait_seconds += time.perf_counter() - begin
        return samples

    @staticmethod
    def _load(reader: Reader, order: EpochOrder, part: Interval, fetched: Future[None] | None = None) -> list[Sample]:
        if fetched:
            fetched.result()
        blocks, places = order.samples(part)
        samples: list[Sample | None] = [None] * len(places)
        for number, block in enumerate(blocks):
            mine = np.flatnonzero(places[:, 0] == number)
            if len(mine):
                for row, sample in zip(mine, reader.samples(block.episode, places[mine, 1]), strict=True):
                    samples[row] = sample
        return [sample for sample in samples if sample is not None]


class _FetchAhead:
    """Fetches pools of a dataset in a store before they are decoded, with a separate reader.

    Args:
        reader: Reader of the dataset.
        order: Order of the epoch.
    """

    def __init__(self, reader: Reader, order: EpochOrder) -> None:
        self._order = order
        self._reader = reader.again() if reader.frames.is_stored else None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fetch") if self._reader else None

    def parts(self, parts: Iterator[Interval]) -> Iterator[tuple[Interval, Future[None] | None]]:
        """Yield each pool with the future of its fetch (None without a store), while later pools are fetched."""
        upcoming: deque[tuple[Interval, Future[None] | None]] = deque()
        for part in parts:
            upcoming.append((part, self._thread.submit(self._fetch, part) if self._thread else None))
            if len(upcoming) > (_FETCHED if self._thread else 0):
                yield upcoming.popleft()
        yield from upcoming

    def __enter__(self) -> _FetchAhead:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread and self._reader:
            self._thread.shutdown(cancel_futures=True)
            self._reader.close()

    def _fetch(self, part: Interval) -> None:
        assert self._reader
        blocks, places = self._order.samples(part)
        self._reader.fetch([block for number, block in enumerate(blocks) if number in places[:, 0]])


def merge_states(states: Sequence[State]) -> State:
    """Merge the states of all consumers into one state that any number of consumers can load.

    Raises:
        ValueError: A state is missing or repeated, or the states belong to different epochs or trainings.
    """
    first = states[0]
    same = ("seed", "epoch", "samples", "options")
    if any(state[name] != first[name] for state in states for name in same):
        raise ValueError("the states belong to different epochs or trainings")
    consumers = [consumer for state in states for consumer in state["consumers"]]
    if not _are_all(consumers):
        raise ValueError(f"the states are for consumers {consumers}: each consumer must occur exactly once")
    parts = [[(start, stop) for start, stop in state["left"]] for state in states]
    left = [list(interval) for interval in union(parts)]
    is_over = all(state["is_over"] for state in states)
    return first | {"is_over": is_over, "left": left, "consumers": sorted(consumers)}


def _consumer(rank: int, ranks: int, worker: int, workers: int) -> tuple[int, int]:
    """Return the index of a worker among all consumers, and the number of consumers."""
    if not (0 <= rank < ranks and 0 <= worker < workers):
        raise ValueError(f"rank {rank} of {ranks} or worker {worker} of {workers} does not exist")
    return rank * workers + worker, ranks * workers


def _are_all(consumers: Sequence[Sequence[int]]) -> bool:
    count = consumers[0][1]
    return sorted(map(tuple, consumers)) == [(number, count) for number in range(count)]
