"""Interface between a writer and its dataset, which may be in another process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.info import DatasetInfo
from nimbus.datagen.store.ledger.attempt import Attempt

if TYPE_CHECKING:
    from nimbus.datagen.pipeline import RunContext


class EpisodeSink(Protocol):
    """Destination of a writer; it accepts staged episodes and failed attempts, from two threads."""

    @property
    def stage(self) -> Path:
        """Folder for files in progress, on the file system of the dataset."""
        ...

    @property
    def info(self) -> DatasetInfo:
        """Current description of the dataset; writers report only additions to it."""
        ...

    def lease_of(self, index: int, variant: int = 0) -> int:
        """Return the number of the lease under which an episode is being made; 0 for none."""
        ...

    def record(self, attempts: Sequence[Attempt]) -> None:
        """Record failed attempts."""
        ...

    def commit(self, staged: Sequence[StagedEpisode]) -> list[Attempt]:
        """Commit episodes whose files are staged and synced; return the attempts that were not refused."""
        ...


def shelf_of(context: RunContext) -> EpisodeSink:
    """Return the destination of a run's writer.

    Raises:
        TypeError: The run has no destination.
    """
    if context.dataset is None:
        raise TypeError("a writer needs the dataset of the run")
    return cast(EpisodeSink, context.dataset)
