"""Interface between datasets and the quality checks, independent of the format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import Diagnostic, InputError


class Pictures(Protocol):
    """Images of one camera in one episode; the methods raise ``Unreadable`` for a damaged file."""

    def count(self) -> int:
        """Return the number of images without decoding them."""
        ...

    def read(self, start: int, stop: int) -> Iterator[NDArray[np.uint8]]:
        """Yield images ``[start, stop)``, each (H, W, 3) sRGB [levels, 0 to 255]; fewer if the episode ends earlier."""
        ...


@dataclass(frozen=True, kw_only=True)
class EpisodeView:
    """Content of an episode, as the checks need it."""

    number: int
    """Index in the dataset."""
    length: int
    """Declared number of frames."""
    start: int = 0
    """Declared number of frames before the episode."""
    columns: Mapping[str, NDArray[Any]]
    """(T,) or (T, D) values of each signal, under LeRobot's names."""
    images: Mapping[str, Pictures] = field(default_factory=dict)
    """Images by camera."""
    stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Stored statistics of the episode, by feature."""
    plan: str = ""
    """Id of the plan; episodes with the same plan may have the same motion. Empty if unknown."""
    drawn: Mapping[str, float] = field(default_factory=dict)
    """Drawn values by name."""
    findings: tuple[Diagnostic, ...] = ()
    """Findings of checks that depend on the format."""
    kind: Literal["episode", "failure"] = "episode"
    """``failure`` for a kept failed attempt."""

    @property
    def name(self) -> str:
        """Name of the episode in findings."""
        return f"{self.kind} {self.number}"


class View(Protocol):
    """Dataset that can be checked."""

    format: str
    """Name and version of the format."""
    fps: float
    """Rows per second [Hz]."""

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
        """Declared total number of frames (rows)."""
        ...

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the columns of ``observation.state``; empty if there are none."""
        ...

    @property
    def wordings(self) -> Mapping[int, Any]:
        """Instructions by ``task_index``; empty if rows do not refer to instructions."""
        ...

    @property
    def splits(self) -> Mapping[str, range]:
        """Indices of the episodes of each split."""
        ...

    @property
    def stats(self) -> Mapping[str, Mapping[str, Any]]:
        """Stored statistics by feature; empty if there are none."""
        ...

    @property
    def proofs(self) -> Collection[str]:
        """Names of the checks whose records the dataset contains: ``checksums``, ``certificates``."""
        ...

    def structure(self) -> Iterator[Diagnostic]:
        """Yield the findings on files, counts and indices; called before :meth:`clips`."""
        ...

    def clips(self) -> Iterator[EpisodeView | Diagnostic]:
        """Yield every episode in order, or the reason why it cannot be read."""
        ...


def open_view(folder: Path) -> View:
    """Return the view of a dataset.

    Raises:
        InputError: The folder contains no dataset that can be checked.
    """
    from nimbus.datagen.datasets.quality.native import NativeView

    if (folder / "dataset.json").exists():
        return NativeView(folder)
    if (folder / "meta" / "info.json").exists():
        from nimbus.datagen.datasets.quality.lerobot import open_lerobot

        return open_lerobot(folder)
    instead = "give the folder of a run, or one with meta/info.json"
    raise InputError("the folder is neither a Nimbus nor a LeRobot dataset", where=str(folder), instead=instead)
