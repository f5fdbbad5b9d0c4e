"""Description of a LeRobot dataset of any version and origin, independent of its division into files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COUNTERS = ("frame_index", "episode_index", "index", "task_index")
"""Columns that number the rows; every dataset has them."""
NEEDED = ("timestamp", *COUNTERS)
"""Columns that every dataset must have."""


@dataclass(frozen=True, kw_only=True)
class VideoClip:
    """Location of an episode's frames in a video file."""

    path: Path
    begin: float = 0.0
    """Time of the first image in the file [s]."""
    is_whole: bool = True
    """True if the file contains only frames of this episode."""


@dataclass(frozen=True, kw_only=True)
class LeRobotEpisode:
    """Episode of a LeRobot dataset."""

    number: int
    """Index in the source dataset."""
    length: int
    """Number of frames."""
    tasks: tuple[str, ...]
    """Instructions."""
    rows: Path
    """Parquet file with the rows of this episode, and possibly those of others."""
    clips: Mapping[str, VideoClip] = field(default_factory=dict)
    """Location of the video by feature."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Values of additional columns in the table of episodes, such as success and seed."""
    image_stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Stored statistics of the images by feature; empty if there are none."""


@dataclass(frozen=True, kw_only=True)
class LeRobotSet:
    """LeRobot dataset at the time of opening."""

    folder: Path
    version: str
    """``v2.1`` or ``v3.0``."""
    info: Mapping[str, Any]
    """Content of ``meta/info.json``."""
    items: tuple[LeRobotEpisode, ...]
    wordings: Mapping[int, str]
    """Instruction by ``task_index``."""
    own_files: frozenset[str]
    """Names of the files that this object describes; all others are additional files."""

    @property
    def fps(self) -> int:
        """Frames per second."""
        return int(self.info["fps"])

    @property
    def videos(self) -> tuple[str, ...]:
        """Names of the video features, in the order of ``meta/info.json``."""
        return tuple(name for name, told in self.info["features"].items() if told.get("dtype") == "video")

    @property
    def frame_count(self) -> int:
        """Total number of frames (rows) of all episodes."""
        return sum(item.length for item in self.items)
