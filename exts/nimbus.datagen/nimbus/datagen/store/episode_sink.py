"""What a writer asks of where it stores: a dataset in this process, or what speaks to one in another."""

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
    """Takes staged episodes and failed attempts. All of it may be called from two threads."""

    @property
    def stage(self) -> Path:
        """Folder for files that are being written, on the same file system as the dataset."""
        ...

    @property
    def info(self) -> DatasetInfo:
        """What is known of the dataset; a writer tells only what is new to it."""
        ...

    def lease_of(self, index: int, variant: int = 0) -> int:
        """Number of the lease under which an episode is being made; 0 for none."""
        ...

    def record(self, attempts: Sequence[Attempt]) -> None:
        """Enter failed attempts."""
        ...

    def commit(self, staged: Sequence[StagedEpisode]) -> list[Attempt]:
        """Take episodes whose files are staged and synced; returns those that are taken, not refused as stale."""
        ...


def shelf_of(context: RunContext) -> EpisodeSink:
    """Destination of a run's writer.

    Raises:
        TypeError: The run has none.
    """
    if context.dataset is None:
        raise TypeError("a writer needs the dataset of the run")
    return cast(EpisodeSink, context.dataset)
