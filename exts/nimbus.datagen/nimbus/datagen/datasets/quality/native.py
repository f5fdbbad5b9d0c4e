"""View of a Nimbus dataset, for the quality checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.certificates.record import FILE_NAME, read_certificates, summary_of
from nimbus.datagen.datasets.certificates.subject import certificates_of
from nimbus.datagen.datasets.quality.annotations import check_annotations
from nimbus.datagen.datasets.quality.finding import Unreadable, fail, warn
from nimbus.datagen.datasets.quality.view import EpisodeView
from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.remote.uploads import has_files

_COLUMNS = {
    "observations/qpos": "observation.state",
    "observations/qvel": "observation.velocity",
    "action": "action",
    "time": "timestamp",
}
_BLOCK = 32
"""Number of images read at a time."""


def check_certificates(folder: Path) -> Iterator[Diagnostic]:
    """Yield the findings on the certificates of a dataset or an export; nothing if it has no certificates."""
    try:
        if not read_certificates(folder):
            return
        found = certificates_of(folder)
    except InputError as error:
        yield fail("certificates", FILE_NAME, error.what)
        return
    if not found:
        yield warn("certificates", FILE_NAME, "covers other episodes; run 'nimbus certify' again")
        return
    for one in found.certificates:
        if one.holds is False:
            told = one.problems[0] if one.problems else summary_of(one)
            yield fail("certificates", one.name, f"the check failed: {told}")


class NativeView:
    """Nimbus dataset as a :class:`~nimbus.datagen.datasets.quality.view.View`.

    Args:
        folder: Folder of the dataset.
        failures: View the kept failed attempts instead of the episodes.

    Raises:
        InputError: There is no dataset in the folder.
    """

    format = "nimbus"

    def __init__(self, folder: Path, *, failures: bool = False) -> None:
        self._folder = folder
        self._info = read_info(folder)
        self.fps = self._info.rate
        self.robot = self._info.robot
        self.joint_names = self._info.joint_names
        self.wordings: dict[int, Any] = {}
        self.splits: dict[str, range] = {}
        self.stats: dict[str, dict[str, Any]] = {}
        self.proofs = ("certificates",) if (folder / FILE_NAME).is_file() else ()
        ledger = Ledger(folder, read_only=True)
        try:
            kept = [attempt for attempt in ledger.walk_attempts() if attempt.failure]
            self.failure_count = len(kept)
            self._stored = kept if failures else ledger.stored()
        finally:
            ledger.close()
        self._kind: Literal["episode", "failure"] = "failure" if failures else "episode"
        self.episode_count = len(self._stored)
        self.frame_count = sum(attempt.step_count for attempt in self._stored)

    def structure(self) -> Iterator[Diagnostic]:
        """Yield the findings on counts and files; the contents are checked by ``nimbus verify``."""
        if self._info.episode_count != len(self._stored):
            what = f"episode_count is {self._info.episode_count}, but the ledger has {len(self._stored)} episodes"
            yield fail("counts", "dataset.json", what)
        inside = DatasetPaths(self._folder)
        for attempt in self._stored:
            if not has_files(self._folder, attempt):
                yield fail("files", attempt.path, "the file is missing, or its size differs from the ledger")
            try:
                for path in attempt.files:
                    inside.path(path)
            except InputError as error:
                yield fail("files", attempt.path, error.what)
        yield from check_certificates(self._folder)

    def path_of(self, number: int) -> Path:
        """Return the path of an episode's file."""
        return self._folder / _file_of(self._stored[number])

    def clips(self) -> Iterator[EpisodeView | Diagnostic]:
        """Yield every episode in order, or the reason why it cannot be read."""
        for number, attempt in enumerate(self._stored):
            try:
                with EpisodeFile(self.path_of(number)) as episode:
                    layout = episode.layout()
                    yield EpisodeView(
                        number=number,
                        kind=self._kind,
                        length=attempt.step_count,
                        columns={name: episode.array(path) for path, name in _COLUMNS.items()},
                        images={camera: _Pictures(episode, camera) for camera in episode.cameras},
                        plan=layout.key.plan_id,
                        drawn=dict(_drawn(layout)),
                        findings=tuple(check_annotations(episode, f"episode {number}")),
                    )
            except InputError as error:
                yield fail("files", _file_of(attempt), error.what)


def _file_of(attempt: Attempt) -> str:
    """Return the path of an attempt's file relative to the dataset."""
    return attempt.failure.path if attempt.failure else attempt.path


class _Pictures:
    """Images of a camera as :class:`~nimbus.datagen.datasets.quality.view.Pictures`."""

    def __init__(self, episode: EpisodeFile, camera: str) -> None:
        self._episode = episode
        self._path = f"observations/images/{camera}"

    def count(self) -> int:
        """Return the number of images."""
        try:
            return self._episode.shape(self._path)[0]
        except InputError as error:
            raise Unreadable(self._episode.path.name, error.what) from error

    def read(self, start: int, stop: int) -> Iterator[NDArray[np.uint8]]:
        """Yield images ``[start, stop)``, each (H, W, 3) sRGB [levels, 0 to 255]; fewer if the episode ends earlier."""
        try:
            for first in range(start, min(stop, self.count()), _BLOCK):
                yield from self._episode.rows(self._path, slice(first, min(first + _BLOCK, stop)))
        except InputError as error:
            raise Unreadable(self._episode.path.name, error.what) from error


def _drawn(layout: Layout) -> Iterator[tuple[str, float]]:
    """Yield names and values of drawn numbers: initial poses and masses of objects, direction of the light."""
    for placed in layout.physical.objects:
        yield f"{placed.name} x [m]", placed.position[0]
        yield f"{placed.name} y [m]", placed.position[1]
        yield f"{placed.name} yaw", float(np.arctan2(placed.wxyz[3], placed.wxyz[0]) * 2)
        yield f"{placed.name} mass [kg]", placed.mass
    for axis, value in zip("xyz", layout.visual.light.direction, strict=True):
        yield f"light {axis}", value
