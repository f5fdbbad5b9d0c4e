"""Source of an export: the stored episodes in the order of their addresses, followed by kept failures."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.trajectory import RECOVERY, TRAIN
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.episode_file.h264 import whole_rate
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.videos import SUFFIX
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeStatus, place_finder
from nimbus.datagen.store.remote.uploads import has_files, is_stored

if TYPE_CHECKING:
    from nimbus.datagen.datasets.export.stored_views import StoredViews

_GRID = 1e-4
"""Largest deviation of a time from the grid of frames that readers accept [s]."""


@dataclass(frozen=True, kw_only=True)
class ExportItem:
    """Stored episode, or kept failed attempt."""

    position: int
    """Index in the export, from 0 without gaps."""
    episode_id: str
    """Id of the episode; a failed attempt has its number appended, because the episode may be stored later."""
    path: Path
    seed: int
    index: int
    variant: int
    attempt: int
    success: bool
    phase: str
    """Phase of the failure; empty for a success."""
    reason: str
    step_count: int
    byte_count: int
    """Size of its HDF5 file [bytes]."""
    sha256: str
    """Hash of its content."""
    split: str
    videos: dict[str, Path]
    """Videos by camera, if images are stored as video."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Dataset as it was at one moment."""

    folder: Path
    task: str
    robot: str
    fps: int
    """Frames per second."""
    cameras: dict[str, tuple[int, int]]
    """Width and height by camera, sorted."""
    joint_names: tuple[str, ...]
    action_names: tuple[str, ...]
    items: Sequence[ExportItem]
    left_out: int = 0
    """Number of episodes with assets whose license restricts redistribution."""
    views: StoredViews | None = field(default=None, compare=False)
    """Maker of signals other than the stored ones; None to export the stored ones."""

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the exported state's entries."""
        return self.views.state_names if self.views else self.joint_names

    @property
    def control_names(self) -> tuple[str, ...]:
        """Names of the exported action's entries."""
        return self.views.control.names if self.views else self.action_names

    @property
    def extra_names(self) -> dict[str, tuple[str, ...]]:
        """Names of further features' entries; empty for scalar features."""
        return self.views.extra_names if self.views else {}

    @property
    def frame_count(self) -> int:
        """Return the number of frames of one camera in all episodes."""
        return sum(item.step_count for item in self.items)

    @property
    def stored(self) -> tuple[ExportItem, ...]:
        """Stored episodes, which come before failures."""
        return tuple(item for item in self.items if item.success)

    @property
    def failures(self) -> tuple[ExportItem, ...]:
        """Failed attempts, which come after the episodes."""
        return tuple(self.items[len(self.stored) :])

    @property
    def content_hash(self) -> str:
        """Hash of the contents of all episodes."""
        return hashlib.sha256("".join(item.sha256 for item in self.items).encode()).hexdigest()[:16]

    @property
    def splits(self) -> dict[str, str]:
        """Return ranges of positions in LeRobot's syntax."""
        train = sum(item.split == TRAIN for item in self.stored)
        ends = {TRAIN: train, RECOVERY: len(self.stored), "failures": len(self.items)}
        starts = dict(zip(ends, (0, *ends.values()), strict=False))
        return {name: f"{starts[name]}:{end}" for name, end in ends.items() if end > starts[name]}


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Signals of an episode as exported, without its images."""

    state: NDArray[np.float32]
    """(T, J) measured joint positions [rad, m], or another form of them"""
    velocity: NDArray[np.float32]
    """(T, J) measured joint velocities [rad/s, m/s]"""
    action: NDArray[np.float32]
    """(T, A) commanded joint positions [rad, m], or in another control mode"""
    instruction: str
    extra: dict[str, NDArray[Any]] = field(default_factory=dict)
    """(T, D) or (T,) by feature, if a view adds any."""


def open_source(folder: Path, *, keep_failures: bool = False, with_restricted: bool = True) -> Source:
    """Open the stored episodes of a dataset; a run may continue to write meanwhile.

    Args:
        folder: The dataset.
        keep_failures: Include kept failed attempts, after the episodes.
        with_restricted: Include episodes that show assets with a license that restricts redistribution.

    Raises:
        InputError: The folder holds no dataset or no episode, or a file differs from its ledger row.
    """
    info = read_info(folder)
    ledger = Ledger(folder, read_only=True)
    try:
        with ledger.snapshot():
            states = ledger.episodes(EpisodeStatus.DONE)
            place = place_finder(states)
            done = set(map(place, states))
            stored = [attempt for attempt in ledger.walk_attempts(only_stored=True) if place(attempt) in done]
            failed = [attempt for attempt in ledger.walk_attempts() if attempt.failure] if keep_failures else []
    finally:
        ledger.close()
    if not stored:
        raise InputError("no episode is stored here", where=str(folder), instead="make one with 'nimbus run' first")
    inside = DatasetPaths(folder)
    left_out = 0
    if not with_restricted and (restricted := {name for name, one in info.credits.items() if one.is_restricted}):
        whole = len(stored)
        stored, failed = ([one for one in each if not _shows(inside, one, restricted)] for each in (stored, failed))
        left_out = whole - len(stored)
        if not stored:
            licenses = ", ".join(sorted({info.credits[name].license for name in restricted}))
            what = f"every episode shows assets whose license restricts redistribution ({licenses})"
            raise InputError(what, where=str(folder), instead="--restricted-assets, if you may")
    return Source(
        folder=folder,
        left_out=left_out,
        task=info.task,
        robot=info.robot,
        fps=whole_rate(info.rate, where=folder),
        cameras=dict(sorted(info.cameras.items())),
        joint_names=info.joint_names,
        action_names=info.action_names,
        items=tuple(
            _item(inside, position, attempt)
            for position, attempt in enumerate(
                [*sorted(stored, key=lambda one: one.split == RECOVERY), *sorted(failed, key=_address)]
            )
        ),
    )


def _shows(inside: DatasetPaths, attempt: Attempt, kinds: set[str]) -> bool:
    """Return True if an episode shows one of these kinds, ``library/kind``."""
    with EpisodeFile(inside.path(attempt.failure.path if attempt.failure else attempt.path)) as episode:
        return any(f"{item.library}/{item.kind}" in kinds for item in episode.layout().physical.objects)


def _item(inside: DatasetPaths, position: int, attempt: Attempt) -> ExportItem:
    kept = attempt.failure
    path = inside.path(kept.path if kept else attempt.path)
    if not (is_stored(path, kept.byte_count) if kept else has_files(inside.root, attempt)):
        instead = "export without --keep-failures" if kept else "repeat the 'nimbus run' that made it"
        raise InputError("is missing, or its size differs from the ledger", where=str(path), instead=instead)
    return ExportItem(
        position=position,
        episode_id=f"{attempt.episode_id}.a{attempt.attempt}" if kept else attempt.episode_id,
        path=path,
        seed=attempt.seed,
        index=attempt.idx,
        variant=attempt.variant,
        attempt=attempt.attempt,
        success=attempt.success,
        phase=attempt.phase,
        reason=attempt.reason,
        step_count=attempt.step_count,
        byte_count=kept.byte_count if kept else attempt.byte_count,
        sha256=kept.sha256 if kept else attempt.sha256,
        split=attempt.split,
        videos={camera_of(attempt.episode_id, video.path): inside.path(video.path) for video in attempt.videos},
    )


def _address(attempt: Attempt) -> tuple[str, int, int, int]:
    return attempt.task, attempt.idx, attempt.variant, attempt.attempt


def camera_of(episode_id: str, path: str) -> str:
    """Return the camera of a video ``episodes/<episode_id>.<camera>.mp4``."""
    return path.removeprefix(f"episodes/{episode_id}.").removesuffix(SUFFIX)


def read_signals(episode: EpisodeFile, source: Source) -> Signals:
    """Read an episode's signals, after checking that it fits the other episodes.

    Raises:
        InputError: The episode has other joints, actions or cameras, times off the grid, or a number
            that is not finite.
    """
    _check(episode, source)
    viewed = source.views.make(episode) if source.views else None
    signals = Signals(
        state=(viewed.state if viewed else episode.array("observations/qpos")).astype(np.float32),
        velocity=episode.array("observations/qvel").astype(np.float32),
        action=(viewed.action if viewed else episode.array("action")).astype(np.float32),
        instruction=episode.instruction,
        extra=viewed.extra if viewed else {},
    )
    found = {"state": signals.state, "velocity": signals.velocity, "action": signals.action, **signals.extra}
    for name, values in found.items():
        if not np.isfinite(values).all():
            raise InputError(f"{name}: holds numbers that are not finite", where=str(episode.path), instead=_AGAIN)
    return signals


_AGAIN = "run 'nimbus verify' for details"


def _check(episode: EpisodeFile, source: Source) -> None:
    found = {
        "joints": (episode.texts("names/joints"), source.joint_names),
        "actions": (episode.texts("names/actions"), source.action_names),
        "cameras": (episode.cameras, tuple(source.cameras)),
    }
    for what, (mine, others) in found.items():
        if mine != others:
            raise InputError(f"has other {what} than the dataset", where=str(episode.path), instead=_AGAIN)
    for name, (width, height) in source.cameras.items():
        shape = episode.shape(f"observations/images/{name}")
        if shape != (episode.step_count, height, width, 3):
            what = f"images of '{name}' have shape {shape}, expected ({episode.step_count}, {height}, {width}, 3)"
            raise InputError(what, where=str(episode.path), instead=_AGAIN)
    time = episode.array("time")
    if np.any(np.abs(time - time[:1] - np.arange(len(time)) / source.fps) > _GRID):
        raise InputError(f"time: off the grid of {source.fps} frames a second", where=str(episode.path), instead=_AGAIN)
