"""One attempt at one episode, as the ledger keeps it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from msgspec import Meta

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.trajectory import DISTURBED, RECOVERY, TRAIN, Trajectory
from nimbus.datagen.files.bounded import Count, Finite, Seconds

_PATH = re.compile(r"episodes/[^/\\\0]+\.hdf5")
_VIDEO_PATH = re.compile(r"episodes/[^/\\\0]+\.mp4")
_FAILURE_PATH = re.compile(r"failures/[^/\\\0]+\.hdf5")
_Coordinate = Annotated[str, Meta(pattern=r"^-?[0-9]{1,9}(\.[0-9]{1,9})?$")]
PlacedNote = TypedDict(
    "PlacedNote",
    {
        "name": str,
        "kind": str,
        "variant": NotRequired[str],
        "class": NotRequired[str],
        "rest_pose": NotRequired[str],
        "x": NotRequired[_Coordinate],
        "y": NotRequired[_Coordinate],
    },
)
"""Note of one object: name, kind, variant, class, rest pose, and x and y [m] of its start."""
_GRASP = ("grasp_tilt", "grasp_width")
"""Measures of a motion plan that say how the hand takes hold."""


@dataclass(frozen=True, kw_only=True)
class Video:
    """The file that holds what one camera saw in an episode."""

    path: str
    """Relative to the dataset."""
    byte_count: Count
    sha256: str
    """Of its bytes."""

    def __post_init__(self) -> None:
        if not _VIDEO_PATH.fullmatch(self.path):
            raise ValueError(f"path '{self.path}' is none of a video")


@dataclass(frozen=True, kw_only=True)
class KeptFailure:
    """The file of a failed attempt that was kept; it is no episode."""

    path: str
    """Relative to the dataset."""
    byte_count: Count
    sha256: str
    """Content hash at level D1."""

    def __post_init__(self) -> None:
        if not _FAILURE_PATH.fullmatch(self.path):
            raise ValueError(f"path '{self.path}' is none of a kept failure")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt at one episode, as it stands in the ledger."""

    episode_id: str
    task: str
    seed: int
    idx: Count
    variant: Count
    attempt: Count
    final: bool
    """No further attempt follows."""
    success: bool
    phase: str = ""
    reason: str = "none"
    detail: str = ""
    step_count: Count = 0
    duration: Seconds = 0.0
    """[s] of the motion"""
    byte_count: Count = 0
    """Of the file at ``path``."""
    path: str = ""
    """Relative to the dataset; empty when nothing is stored."""
    sha256: str = ""
    """Content hash at level D1; empty when nothing is stored."""
    videos: tuple[Video, ...] = ()
    """Files that belong to it, where images are stored as video."""
    times: dict[str, Finite] = field(default_factory=dict)
    """CPU seconds by stage."""
    objects: tuple[PlacedNote, ...] = ()
    started: Seconds = 0.0
    """[s since 1970] when the writer took it up"""
    ended: Seconds = 0.0
    drawn: dict[str, Any] = field(default_factory=dict)
    """Every value drawn, by part of the layout and randomizer, to five digits; empty in old ledgers."""
    steps: tuple[str, ...] = ()
    """Skill steps that it began, in order: ``pick items_0``."""
    grasps: tuple[dict[str, Finite], ...] = ()
    """Of each grasp: ``tilt`` from straight down [rad], ``width`` between the fingers [m]."""
    failure: KeptFailure | None = None
    """Its file, where a failed attempt was kept."""

    def __post_init__(self) -> None:
        if self.path and not _PATH.fullmatch(self.path):
            raise ValueError(f"path '{self.path}' is none of an episode")

    @property
    def split(self) -> str:
        """Split of an episode that is stored: whether something was pushed on the way."""
        return RECOVERY if any(step.split(" ")[0] == DISTURBED for step in self.steps) else TRAIN

    @property
    def files(self) -> dict[str, int]:
        """Bytes of each of its files, by path; the one that makes it an episode comes last."""
        return {video.path: video.byte_count for video in self.videos} | {self.path: self.byte_count}

    @property
    def stored_bytes(self) -> int:
        """Bytes of all its files."""
        return sum(self.files.values())


def has_size(path: Path, byte_count: int) -> bool:
    """Whether a file is there, as large as that."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return S_ISREG(found.st_mode) and found.st_size == byte_count


@dataclass(frozen=True, kw_only=True)
class WrittenFiles:
    """The files that an attempt left."""

    path: str
    """Where it will be, relative to the dataset."""
    byte_count: int
    sha256: str
    """Content hash at level D1."""
    videos: tuple[Video, ...] = ()


def attempt_of(
    layout: Layout,
    trajectory: Trajectory,
    *,
    attempt: int,
    final: bool,
    times: Mapping[str, float],
    started: float,
    written: WrittenFiles | None = None,
    failure: KeptFailure | None = None,
) -> Attempt:
    """The ledger's row of an attempt that ends now.

    Args:
        layout: What was drawn.
        trajectory: What was executed.
        attempt: Number of the attempt at this layout, from 0.
        final: No further attempt follows.
        times: [s] CPU by stage; waits have names that end with ``_wait``.
        started: [s since 1970]
        written: Its file; None for a failed attempt.
        failure: The file of a failed attempt that is kept.
    """
    key, outcome = layout.key, trajectory.outcome
    return Attempt(
        episode_id=key.id,
        task=key.task,
        seed=key.seed,
        idx=key.index,
        variant=key.variant,
        attempt=attempt,
        final=final,
        success=outcome.success,
        phase=outcome.phase,
        reason=outcome.reason.value,
        detail=outcome.detail,
        step_count=trajectory.step_count,
        duration=trajectory.step_count / trajectory.rate,
        byte_count=written.byte_count if written else 0,
        path=written.path if written else "",
        sha256=written.sha256 if written else "",
        videos=written.videos if written else (),
        times=dict(times),
        objects=_objects(layout),
        started=started,
        ended=time.time(),
        drawn=_rounded({"physical": layout.physical.drawn, "visual": layout.visual.drawn}),
        steps=tuple(dict.fromkeys(f"{part.skill} {part.target}".rstrip() for part in trajectory.segments)),
        grasps=_grasps(trajectory),
        failure=failure,
    )


def _rounded(value: Any) -> Any:
    """Plain JSON values, numbers to five digits: enough to see where one lies in its range."""
    if isinstance(value, Mapping):
        return {str(key): _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_rounded(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.5g}")
    return value.item() if isinstance(value, np.generic) else value


def _grasps(trajectory: Trajectory) -> tuple[dict[str, float], ...]:
    columns = [trajectory.plan_statistics.get(name, np.zeros(0)) for name in _GRASP]
    rows = np.array(columns).T if len(columns[0]) == len(columns[1]) else np.zeros((0, 2))
    return tuple(
        {name.removeprefix("grasp_"): round(float(value), 4) for name, value in zip(_GRASP, row, strict=True)}
        for row in rows
        if np.isfinite(row).all()
    )


def _objects(layout: Layout) -> tuple[PlacedNote, ...]:
    return tuple(
        {
            "name": placed.name,
            "kind": placed.kind,
            "variant": str(placed.variant),
            "class": placed.object_class,
            "rest_pose": placed.rest_pose,
            "x": f"{placed.position[0]:.3f}",
            "y": f"{placed.position[1]:.3f}",
        }
        for placed in layout.physical.objects
    )
