"""Source of an export: the stored episodes of a dataset in a fixed order, followed by kept failures."""

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
"""Largest difference between a time and a multiple of the frame duration that readers accept [s]."""


@dataclass(frozen=True, kw_only=True)
class ExportItem:
    """Stored episode or kept failed attempt, as an item of an export."""

    position: int
    """Index in the export, counted from 0."""
    episode_id: str
    """Id of the episode. A failed attempt's number is appended, because the same episode may be stored as well."""
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
    """Hash of the item's content."""
    split: str
    videos: dict[str, Path]
    """Path of the video by camera; empty if images are not stored as video."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Snapshot of a dataset, for an export or a reader."""

    folder: Path
    task: str
    robot: str
    fps: int
    """Frames per second [Hz]."""
    cameras: dict[str, tuple[int, int]]
    """Width and height [px] by camera, sorted by name."""
    joint_names: tuple[str, ...]
    action_names: tuple[str, ...]
    items: Sequence[ExportItem]
    left_out: int = 0
    """Number of episodes left out, because they show assets whose license restricts redistribution."""
    views: StoredViews | None = field(default=None, compare=False)
    """Conversion of the stored states and actions; None to export them as stored."""

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the entries of the exported state."""
        return self.views.state_names if self.views else self.joint_names

    @property
    def control_names(self) -> tuple[str, ...]:
        """Names of the entries of the exported action."""
        return self.views.control.names if self.views else self.action_names

    @property
    def extra_names(self) -> dict[str, tuple[str, ...]]:
        """Names of the entries of each additional feature; empty for scalar features."""
        return self.views.extra_names if self.views else {}

    @property
    def frame_count(self) -> int:
        """Total number of frames (rows) of all items."""
        return sum(item.step_count for item in self.items)

    @property
    def stored(self) -> tuple[ExportItem, ...]:
        """Items that are stored episodes."""
        return tuple(item for item in self.items if item.success)

    @property
    def failures(self) -> tuple[ExportItem, ...]:
        """Items that are kept failed attempts."""
        return tuple(self.items[len(self.stored) :])

    @property
    def content_hash(self) -> str:
        """Hash of the contents of all items."""
        return hashlib.sha256("".join(item.sha256 for item in self.items).encode()).hexdigest()[:16]

    @property
    def splits(self) -> dict[str, str]:
        """Range of positions of each split, in LeRobot's syntax ``begin:end``."""
        train = sum(item.split == TRAIN for item in self.stored)
        ends = {TRAIN: train, RECOVERY: len(self.stored), "failures": len(self.items)}
        starts = dict(zip(ends, (0, *ends.values()), strict=False))
        return {name: f"{starts[name]}:{end}" for name, end in ends.items() if end > starts[name]}


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Exported signals of an episode in T steps, without images."""

    state: NDArray[np.float32]
    """(T, S) measured joint positions [rad or m]; in a view, another form of them."""
    velocity: NDArray[np.float32]
    """(T, J) measured joint velocities [rad/s or m/s]."""
    action: NDArray[np.float32]
    """(T, A) commanded joint positions [rad or m]; in a view, the actions of its control mode."""
    instruction: str
    extra: dict[str, NDArray[Any]] = field(default_factory=dict)
    """(T, D) or (T,) values of each feature that a view adds."""


def open_source(folder: Path, *, keep_failures: bool = False, with_restricted: bool = True) -> Source:
    """Open a snapshot of the stored episodes of a dataset, to which a run may continue to write.

    Args:
        folder: Folder of the dataset.
        keep_failures: Include kept failed attempts after the episodes.
        with_restricted: Include episodes that show assets with a license that restricts redistribution.

    Raises:
        InputError: The folder contains no dataset or no episode, or a file is missing or differs from its ledger row.
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
        raise InputError("the dataset has no episodes", where=str(folder), instead="create one with 'nimbus run' first")
    inside = DatasetPaths(folder)
    left_out = 0
    if not with_restricted and (restricted := {name for name, one in info.credits.items() if one.is_restricted}):
        whole = len(stored)
        stored, failed = ([one for one in each if not _shows(inside, one, restricted)] for each in (stored, failed))
        left_out = whole - len(stored)
        if not stored:
            licenses = ", ".join(sorted({info.credits[name].license for name in restricted}))
            what = f"every episode shows assets whose license restricts redistribution ({licenses})"
            instead = "give --restricted-assets, if the licenses allow it"
            raise InputError(what, where=str(folder), instead=instead)
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
    """Return True if an episode contains an object of one of the kinds, given as ``library/kind``."""
    with EpisodeFile(inside.path(attempt.failure.path if attempt.failure else attempt.path)) as episode:
        return any(f"{item.library}/{item.kind}" in kinds for item in episode.layout().physical.objects)


def _item(inside: DatasetPaths, position: int, attempt: Attempt) -> ExportItem:
    kept = attempt.failure
    path = inside.path(kept.path if kept else attempt.path)
    if not (is_stored(path, kept.byte_count) if kept else has_files(inside.root, attempt)):
        instead = "export without --keep-failures" if kept else "repeat the 'nimbus run' that created it"
        raise InputError("the file is missing, or its size differs from the ledger", where=str(path), instead=instead)
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
    """Return the camera of a video, whose path is ``episodes/<episode_id>.<camera>.mp4``."""
    return path.removeprefix(f"episodes/{episode_id}.").removesuffix(SUFFIX)


def read_signals(episode: EpisodeFile, source: Source) -> Signals:
    """Read the signals of an episode, after a check that it matches the other episodes.

    Raises:
        InputError: The episode has other joints, actions or cameras, times that are not multiples of the frame
            duration, or numbers that are not finite.
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
            raise InputError(f"{name} contains numbers that are not finite", where=str(episode.path), instead=_AGAIN)
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
            raise InputError(f"the {what} differ from those of the dataset", where=str(episode.path), instead=_AGAIN)
    for name, (width, height) in source.cameras.items():
        shape = episode.shape(f"observations/images/{name}")
        if shape != (episode.step_count, height, width, 3):
            what = f"images of '{name}' have shape {shape}, expected ({episode.step_count}, {height}, {width}, 3)"
            raise InputError(what, where=str(episode.path), instead=_AGAIN)
    time = episode.array("time")
    if np.any(np.abs(time - time[:1] - np.arange(len(time)) / source.fps) > _GRID):
        what = f"a time is not a multiple of 1/{source.fps} s after the first"
        raise InputError(what, where=str(episode.path), instead=_AGAIN)
