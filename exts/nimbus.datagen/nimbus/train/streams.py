"""Batches of a training run, independent of the number of ranks.

An epoch is divided among a fixed number of streams. A step takes a micro-batch from each stream, and a rank serves
every n-th stream. Each step therefore has the same samples with any number of ranks, and each rank still reads episodes
in sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from nimbus.datagen.datasets.training.order import drop
from nimbus.datagen.datasets.training.reader import Reader, Sample
from nimbus.datagen.datasets.training.samples import Samples
from nimbus.datagen.errors import InputError

BLOCK, POOL = 16, 16
"""Number of frames in a block, and number of blocks that are shuffled together. A stream thus mixes 256 samples of
about 16 episodes."""


class Streams:
    """Micro-batches of one rank, step by step.

    Args:
        reader: Source of the samples.
        seed: Seed of the training run.
        count: Number of streams, which determines the batches and is the largest number of ranks.
        size: Number of samples in a micro-batch.
        rank: Rank of this process.
        ranks: Number of processes.

    Raises:
        InputError: There are more ranks than streams, no rank, or fewer samples than streams.
    """

    def __init__(self, reader: Reader, *, seed: int, count: int, size: int, rank: int = 0, ranks: int = 1) -> None:
        check_ranks(ranks, count)
        if len(reader) < count:
            what = f"the dataset has {len(reader)} samples, but a step takes {count} micro-batches"
            raise InputError(what, where="the dataset", instead="add episodes with 'nimbus run'")
        self._reader, self._size = reader, size
        self._all = [_share(reader, seed, number, count) for number in range(count)]
        self._lengths = [len(samples) for samples in self._all]
        self._mine = self._all[rank::ranks]
        self._sources: list[Iterator[Sample]] = []
        self._step = -1
        self.per_epoch = -(-max(self._lengths) // size)
        """Return the number of steps per epoch."""

    @property
    def wait_seconds(self) -> float:
        """Return the time for which this rank has waited for samples [s]."""
        return sum(samples.wait_seconds for samples in self._mine)

    def sample_count(self, step: int) -> int:
        """Return the number of samples of a step on all ranks together."""
        passed = step % self.per_epoch * self._size
        return sum(min(max(length - passed, 0), self._size) for length in self._lengths)

    def epoch(self, step: int) -> int:
        """Return the epoch of a step."""
        return step // self.per_epoch

    def read(self, step: int) -> list[list[Sample]]:
        """Return this rank's micro-batches of a step, which are full except in the last step of an epoch."""
        if step != self._step or step % self.per_epoch == 0:
            self._go_to(step)
        self._step = step + 1
        return [list(islice(source, self._size)) for source in self._sources]

    def spare(self) -> Sample:
        """Return a placeholder sample; a rank whose streams are exhausted must still run the network."""
        return self._reader[0]

    def close(self) -> None:
        """Stop the threads that prefetch samples."""
        for source in self._sources:
            source.close()  # pyright: ignore[reportAttributeAccessIssue]
        self._sources = []

    def _go_to(self, step: int) -> None:
        self.close()
        epoch, within = divmod(step, self.per_epoch)
        for samples in self._mine:
            samples.set_epoch(epoch)
            state = samples.state_dict()
            left = drop([(start, stop) for start, stop in state["left"]], within * self._size)
            samples.load_state_dict(state | {"left": left})
            self._sources.append(iter(samples))


def check_ranks(ranks: int, streams: int) -> None:
    """Check the number of processes.

    Raises:
        InputError: There is no rank, or a rank would have no stream.
    """
    if not 1 <= ranks <= streams:
        raise InputError(f"{ranks} ranks", where="--ranks", instead=f"write 1 to {streams}, the number of --streams")


def _share(reader: Reader, seed: int, number: int, count: int) -> Samples:
    return Samples(reader, seed=seed, block=BLOCK, pool=POOL, rank=number, ranks=count)
