"""Small synthetic episodes that are staged and wait for their commit."""

from __future__ import annotations

from collections.abc import Sequence

from nimbus.datagen.stages import Rendered
from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.writer import Hdf5Writer
from tests.support.synthetic import make_rendered


class Tray:
    """Keeps staged episodes of a writer instead of committing them."""

    def __init__(self, dataset: Dataset, *, lease: int = 0) -> None:
        self.stage = dataset.stage
        self.info = dataset.info
        self.staged: list[StagedEpisode] = []
        self._lease = lease

    def lease_of(self, index: int, variant: int = 0) -> int:
        return self._lease

    def record(self, attempts: object) -> None:
        raise AssertionError(attempts)

    def commit(self, staged: Sequence[StagedEpisode]) -> list[Attempt]:
        self.staged += staged
        return []


def small(index: int) -> Rendered:
    return make_rendered(index, steps=4, width=16, height=12)


def staged(dataset: Dataset, *indices: int, lease: int = 0) -> list[StagedEpisode]:
    tray = Tray(dataset, lease=lease)
    writer = Hdf5Writer(tray)
    for index in indices:
        list(writer.process(small(index)))
    writer.close()
    return tray.staged
