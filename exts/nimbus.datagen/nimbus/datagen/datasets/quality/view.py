"""Interface of a dataset for the checks, independent of the format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import Diagnostic, InputError


class Pictures(Protocol):
    """Images of one camera in one episode; access raises ``Unreadable`` for a damaged file."""

    def count(self) -> int:
        """Return the number of images without decoding them."""
        ...

    def read(self, start: int, stop: int) -> Iterator[NDArray[np.uint8]]:
        """Read images ``[start, stop)``, (H, W, 3) each; fewer at the end."""
        ...


@dataclass(frozen=True, kw_only=True)
class EpisodeView:
    """Episode as seen by the checks."""

    number: int
    """Index in the dataset."""
    length: int
    """Declared number of frames."""
    start: int = 0
    """Declared number of frames before it."""
    columns: Mapping[str, NDArray[Any]]
    """(T,) or (T, D) rows by name, LeRobot's names."""
    images: Mapping[str, Pictures] = field(default_factory=dict)
    """Images by camera."""
    stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Statistics of this episode by feature, as stored."""
    plan: str = ""
    """Identifier of its plan: episodes of one plan may share their motion; empty if unknown."""
    drawn: Mapping[str, float] = field(default_factory=dict)
    """Drawn values by name."""
    findings: tuple[Diagnostic, ...] = ()
    """Findings of format-specific checks."""

    @property
    def name(self) -> str:
        """Name in findings."""
        return f"episode {self.number}"


class View(Protocol):
    """A dataset that can be checked."""

    format: str
    fps: float

    @property
    def robot(self) -> str:
        """Name of the robot; empty if unknown."""
        ...

    @property
    def episode_count(self) -> int:
        """Declared number of episodes."""
        ...

    @property
    def frame_count(self) -> int:
        """Declared number of frames of one camera."""
        ...

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the columns of ``observation.state``; empty if there are none."""
        ...

    @property
    def wordings(self) -> Mapping[int, Any]:
        """Instructions by index; empty if rows do not refer to any."""
        ...

    @property
    def splits(self) -> Mapping[str, range]:
        """Episodes by split."""
        ...

    @property
    def stats(self) -> Mapping[str, Mapping[str, Any]]:
        """Stored statistics by feature; empty if there are none."""
        ...

    @property
    def proofs(self) -> Collection[str]:
        """Names of the checks with a record in the dataset: ``checksums``, ``certificates``."""
        ...

    def structure(self) -> Iterator[Diagnostic]:
        """Return faults of files, counts and indices; called first."""
        ...

    def clips(self) -> Iterator[EpisodeView | Diagnostic]:
        """Yield every episode in order, or the reason why it cannot be read."""
        ...


def open_view(folder: Path) -> View:
    """Return the view of a dataset.

    Raises:
        InputError: The folder holds no dataset that can be checked.
    """
    from nimbus.datagen.datasets.quality.native import NativeView

    if (folder / "dataset.json").exists():
        return NativeView(folder)
    if (folder / "meta" / "info.json").exists():
        from nimbus.datagen.datasets.quality.lerobot import open_lerobot

        return open_lerobot(folder)
    instead = "give the folder of a run, or one with meta/info.json"
    raise InputError("neither a dataset of Nimbus nor one of LeRobot", where=str(folder), instead=instead)
