"""In-memory description of a LeRobot dataset of any version and origin, in parts that can be recombined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COUNTERS = ("frame_index", "episode_index", "index", "task_index")
"""Columns with numbers of rows, which every dataset has."""
NEEDED = ("timestamp", *COUNTERS)


@dataclass(frozen=True, kw_only=True)
class VideoClip:
    """Location of an episode's frames in a video file."""

    path: Path
    begin: float = 0.0
    """Time of the first image in the file [s]."""
    is_whole: bool = True
    """True if the file holds no other frames."""


@dataclass(frozen=True, kw_only=True)
class LeRobotEpisode:
    """One episode."""

    number: int
    """Index in its original dataset."""
    length: int
    """Number of frames."""
    tasks: tuple[str, ...]
    rows: Path
    """Parquet file with its rows, possibly among those of others."""
    clips: Mapping[str, VideoClip] = field(default_factory=dict)
    """Videos by feature."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further columns of the episode: success, seed, …"""
    image_stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Statistics of its pictures by feature, as they are stored."""


@dataclass(frozen=True, kw_only=True)
class LeRobotSet:
    """Dataset as it was when it was opened."""

    folder: Path
    version: str
    """``v2.1`` or ``v3.0``"""
    info: Mapping[str, Any]
    """``meta/info.json``"""
    items: tuple[LeRobotEpisode, ...]
    wordings: Mapping[int, str]
    """Instruction by index."""
    own_files: frozenset[str]
    """Names of the files whose content this object holds; other files are extra."""

    @property
    def fps(self) -> int:
        """Frames per second."""
        return int(self.info["fps"])

    @property
    def videos(self) -> tuple[str, ...]:
        """Names of the video features, in order."""
        return tuple(name for name, told in self.info["features"].items() if told.get("dtype") == "video")

    @property
    def frame_count(self) -> int:
        """Number of frames of one camera in all episodes."""
        return sum(item.length for item in self.items)
