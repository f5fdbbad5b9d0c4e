"""A dataset of Nimbus as checks see it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.qa.finding import Finding, Unreadable, fail
from nimbus.datagen.qa.view import Clip
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger import Ledger
from nimbus.datagen.store.read import EpisodeFile

_COLUMNS = {
    "observations/qpos": "observation.state",
    "observations/qvel": "observation.velocity",
    "action": "action",
    "time": "timestamp",
}


class NativeView:
    """See :class:`~nimbus.datagen.qa.view.View`.

    Raises:
        InputError: There is no dataset in the folder.
    """

    format = "nimbus"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._info = read_info(folder)
        self.fps = self._info.rate
        self.wordings: dict[int, Any] = {}
        self.stats: dict[str, dict[str, Any]] = {}
        ledger = Ledger(folder, read_only=True)
        try:
            self._stored = ledger.stored()
        finally:
            ledger.close()

    def structure(self) -> Iterator[Finding]:
        """Counts and files; ``nimbus verify`` checks contents too."""
        if self._info.episode_count != len(self._stored):
            what = f"episode_count {self._info.episode_count}, the ledger says {len(self._stored)}"
            yield fail("counts", "dataset.json", what)
        for attempt in self._stored:
            if not attempt.is_in(self._folder):
                yield fail("files", attempt.path, "missing, or not as large as the ledger says")

    def clips(self) -> Iterator[Clip | Finding]:
        """Every episode in order."""
        for number, attempt in enumerate(self._stored):
            try:
                with EpisodeFile(self._folder / attempt.path) as episode:
                    columns = {name: episode.array(path) for path, name in _COLUMNS.items()}
                    images = {camera: partial(_frames, episode, camera) for camera in episode.cameras}
                    yield Clip(number=number, length=attempt.step_count, columns=columns, images=images)
            except InputError as error:
                yield fail("files", attempt.path, error.what)


def _frames(episode: EpisodeFile, camera: str) -> Iterator[NDArray[np.uint8]]:
    try:
        for start in range(0, episode.shape(f"observations/images/{camera}")[0], 32):
            yield from episode.rows(f"observations/images/{camera}", slice(start, start + 32))
    except InputError as error:
        raise Unreadable(episode.path.name, error.what) from error
