"""Writer of episode files of a few bytes, so that a run consists almost only of the supervisor's work."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Self

from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.stages import Rendered, Stored, Writer
from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.episode_sink import EpisodeSink, shelf_of
from nimbus.datagen.store.ledger.attempt import WrittenFiles, attempt_of


class FeatherWriter(Writer):
    """Stages, syncs and commits as the real writer does; only the content is missing."""

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        return cls(shelf_of(context))

    def __init__(self, dataset: EpisodeSink) -> None:
        self._dataset = dataset

    def process(self, item: Rendered) -> Iterator[Stored]:
        key, began = item.layout.key, time.time()
        times = {"plan": 1e-3, "render": 1e-3, "store": 1e-3}
        common: dict[str, Any] = {"attempt": item.attempt, "final": item.final, "times": times, "started": began}
        if not item.trajectory.outcome.success:
            self._dataset.record([attempt_of(item.layout, item.trajectory, **common)])
            return
        path = self._dataset.stage / f"{key.id}.{os.getpid()}.tmp"
        content = key.id.encode()
        with path.open("wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        written = WrittenFiles(path=f"episodes/{key.id}.hdf5", byte_count=len(content), sha256="0" * 64)
        attempt = attempt_of(item.layout, item.trajectory, written=written, **common)
        lease = self._dataset.lease_of(key.index, key.variant)
        self._dataset.commit([StagedEpisode(attempt=attempt, path=path, lease=lease)])
        yield from ()


register_component("store", "feather", FeatherWriter, NoSettings)
