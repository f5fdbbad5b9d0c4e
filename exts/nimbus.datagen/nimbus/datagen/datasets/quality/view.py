"""Interface of a dataset to the checks, for any format."""

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
        """Pictures ``[start, stop)``, (H, W, 3) each; fewer where there are fewer."""
        ...


@dataclass(frozen=True, kw_only=True)
class EpisodeView:
    """One episode."""

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
    """Plan of the episode: episodes of one plan may share their motion; empty where unknown."""
    drawn: Mapping[str, float] = field(default_factory=dict)
    """Drawn values by name."""
    findings: tuple[Diagnostic, ...] = ()
    """Findings of the format's own checks."""

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
        """Names of the columns of ``observation.state``; empty if they have none."""
        ...

    @property
    def wordings(self) -> Mapping[int, Any]:
        """Instruction by index; empty where rows do not refer to one."""
        ...

    @property
    def splits(self) -> Mapping[str, range]:
        """Episodes by split."""
        ...

    @property
    def stats(self) -> Mapping[str, Mapping[str, Any]]:
        """Statistics by feature as stored; empty where there are none."""
        ...

    @property
    def proofs(self) -> Collection[str]:
        """Names of the checks whose record the dataset contains: ``checksums``, ``certificates``."""
        ...

    def structure(self) -> Iterator[Diagnostic]:
        """Return faults of files, counts and indices; called before anything else."""
        ...

    def clips(self) -> Iterator[EpisodeView | Diagnostic]:
        """Yield every episode in order, or the reason that it cannot be read."""
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
