"""In-memory description of a LeRobot dataset of any version and origin, in parts that can be recombined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COUNTERS = ("frame_index", "episode_index", "index", "task_index")
"""Columns that number rows; they are in every dataset."""
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
    """Frames."""
    tasks: tuple[str, ...]
    rows: Path
    """Parquet file with its rows, among others'."""
    clips: Mapping[str, VideoClip] = field(default_factory=dict)
    """Videos by feature."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further columns of the episode: success, seed, …"""
    image_stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Statistics of its pictures by feature, as they are stored."""


@dataclass(frozen=True, kw_only=True)
class LeRobotSet:
    """A dataset as it stood when it was opened."""

    folder: Path
    version: str
    """``v2.1`` or ``v3.0``"""
    info: Mapping[str, Any]
    """``meta/info.json``"""
    items: tuple[LeRobotEpisode, ...]
    wordings: Mapping[int, str]
    """Instruction by index."""
    own_files: frozenset[str]
    """Names of the files that this holds the content of; the others are extra."""

    @property
    def fps(self) -> int:
        """Frames a second."""
        return int(self.info["fps"])

    @property
    def videos(self) -> tuple[str, ...]:
        """Features that are video, in order."""
        return tuple(name for name, told in self.info["features"].items() if told.get("dtype") == "video")

    @property
    def frame_count(self) -> int:
        """Frames of one camera in all episodes."""
        return sum(item.length for item in self.items)
