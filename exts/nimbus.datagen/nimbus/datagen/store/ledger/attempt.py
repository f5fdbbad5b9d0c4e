"""Attempt at an episode, as recorded in the ledger."""

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
from nimbus.datagen.files.bounded import Count, Finite, Int64, Seconds

_PATH = re.compile(r"episodes/[^/\\\0]+\.hdf5")
_VIDEO_PATH = re.compile(r"episodes/[^/\\\0]+\.mp4")
_FAILURE_PATH = re.compile(r"failures/[^/\\\0]+\.hdf5")
_ID = re.compile(r"[^./\\\0][^/\\\0]*")
"""Form of an episode's id, which is a part of names of files."""
Digest = Annotated[str, Meta(pattern=r"^[0-9a-z]{0,64}\Z")]
"""Hexadecimal SHA-256, or empty. It is a part of names of files, so only digits and letters are accepted."""
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
"""Record of one object: name, kind, variant, class, rest pose, and initial x and y [m]."""
_GRASP = ("grasp_tilt", "grasp_width")
"""Measures of a motion plan that describe the grasp."""


@dataclass(frozen=True, kw_only=True)
class Video:
    """Video of one camera in an episode."""

    path: str
    """Path relative to the dataset."""
    byte_count: Count
    sha256: Digest
    """SHA-256 of the file."""

    def __post_init__(self) -> None:
        if not _VIDEO_PATH.fullmatch(self.path):
            raise ValueError(f"'{self.path}' is not the path of a video")


@dataclass(frozen=True, kw_only=True)
class KeptFailure:
    """File of a failed attempt that was kept; it is not an episode."""

    path: str
    """Path relative to the dataset."""
    byte_count: Count
    sha256: Digest
    """Content hash at level D1."""

    def __post_init__(self) -> None:
        if not _FAILURE_PATH.fullmatch(self.path):
            raise ValueError(f"'{self.path}' is not the path of a kept failure")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt at one episode, as recorded in the ledger."""

    episode_id: str
    task: str
    seed: Int64
    idx: Count
    variant: Count
    attempt: Count
    final: bool
    """True for the last attempt at the episode."""
    success: bool
    phase: str = ""
    reason: str = "none"
    detail: str = ""
    step_count: Count = 0
    duration: Seconds = 0.0
    """Duration of the motion [s]."""
    byte_count: Count = 0
    """Size of the file at ``path``."""
    path: str = ""
    """Path relative to the dataset; empty when nothing is stored."""
    sha256: Digest = ""
    """Content hash at level D1; empty when nothing is stored."""
    videos: tuple[Video, ...] = ()
    """Its videos, where images are stored as video."""
    times: dict[str, Finite] = field(default_factory=dict)
    """CPU time by stage [s]."""
    objects: tuple[PlacedNote, ...] = ()
    started: Seconds = 0.0
    """Time at which the writer received it [s since 1970]."""
    ended: Seconds = 0.0
    drawn: dict[str, Any] = field(default_factory=dict)
    """Every drawn value, by part of the layout and randomizer, to five digits; empty in old ledgers."""
    steps: tuple[str, ...] = ()
    """Skill steps that were begun, in order: ``pick items_0``."""
    grasps: tuple[dict[str, Finite], ...] = ()
    """Measures of each grasp: ``tilt`` from straight down [rad], ``width`` between the fingers [m]."""
    failure: KeptFailure | None = None
    """File of the failed attempt, where it was kept."""

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.episode_id):
            raise ValueError(f"{self.episode_id[:200]!a} is not the id of an episode")
        if self.path and not _PATH.fullmatch(self.path):
            raise ValueError(f"'{self.path}' is not the path of an episode, episodes/NAME.hdf5")

    @property
    def split(self) -> str:
        """Split of a stored episode; disturbed episodes have a separate one."""
        return RECOVERY if any(step.split(" ")[0] == DISTURBED for step in self.steps) else TRAIN

    @property
    def files(self) -> dict[str, int]:
        """Size of each of its files by path [bytes]; the HDF5 file comes last."""
        return {video.path: video.byte_count for video in self.videos} | {self.path: self.byte_count}

    @property
    def work_seconds(self) -> float:
        """CPU time of the attempt's stages, without one-time loading and waits [s]."""
        return sum(seconds for name, seconds in self.times.items() if name != "load" and not name.endswith("_wait"))

    @property
    def stored_bytes(self) -> int:
        """Total size of its files [bytes]."""
        return sum(self.files.values())


def has_size(path: Path, byte_count: int) -> bool:
    """Return True if a file exists with a size."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return S_ISREG(found.st_mode) and found.st_size == byte_count


@dataclass(frozen=True, kw_only=True)
class WrittenFiles:
    """Files written by an attempt."""

    path: str
    """Final path, relative to the dataset."""
    byte_count: int
    sha256: Digest
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
    """Build the ledger row of an attempt that ends now.

    Args:
        layout: Drawn values.
        trajectory: Executed motion.
        attempt: Number of the attempt at this layout, from 0.
        final: True when no further attempt follows.
        times: CPU time by stage [s]; waits have names that end with ``_wait``.
        started: Start of the attempt [s since 1970].
        written: Its files; None for a failed attempt.
        failure: File of a failed attempt that is kept.
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
        # A step has one segment for each phase: dict.fromkeys drops the repetitions and keeps the order.
        steps=tuple(dict.fromkeys(f"{part.skill} {part.target}".rstrip() for part in trajectory.segments)),
        grasps=_grasps(trajectory),
        failure=failure,
    )


def _rounded(value: Any) -> Any:
    """Convert to plain JSON values, with numbers rounded to five digits, which is enough for yields by value."""
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
