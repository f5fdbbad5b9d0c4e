"""Delivery of episodes from nodes to the dataset, through a shared folder or an object store.

A node uploads the files and reports the rows, and the head commits the rows. Uploads can be repeated, and never
overwrite published files. Only the first rows of an episode are committed; committed rows are durable.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from nimbus.datagen.files.atomic import sync_folder
from nimbus.datagen.files.codec import from_json
from nimbus.datagen.files.own_files import (
    create_file,
    link_file,
    make_place,
    make_subfolder,
    move,
    own_path,
    remove_file,
    remove_tree,
)
from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.episode_file.videos import staged_video_path
from nimbus.datagen.store.failures import FOLDER as FAILURES
from nimbus.datagen.store.info import DatasetInfo
from nimbus.datagen.store.ledger.attempt import Attempt, has_size
from nimbus.datagen.store.publish import disk

_STAGE = "stage"


@dataclass(frozen=True, kw_only=True)
class UploadedFiles:
    """Files of an attempt after their upload."""

    staged: str = ""
    """Name of the HDF5 file in ``stage/``; empty if their final names suffice to find them."""
    objects: dict[str, int] = field(default_factory=dict)
    """Sizes of the objects uploaded to a store, by name [bytes]."""


class EpisodeUploader(Protocol):
    """Uploads files from a node. Implementations are thread-safe."""

    def upload(self, attempt: Attempt, folder: Path) -> UploadedFiles:
        """Upload the files of an attempt: those of an episode, or of a kept failure.

        Args:
            attempt: Row of the attempt.
            folder: Folder of the dataset of the node's cell, which contains the files.

        Raises:
            StorageError: The destination cannot be written now; the call may be repeated.
            InputError: The destination can never be written.
        """
        ...

    def upload_incident(self, folder: Path, name: str) -> str:
        """Upload the folder of an incident; return its path in the dataset.

        Args:
            folder: The incident's folder.
            name: Name that is unique across nodes.

        Raises:
            StorageError: The destination cannot be written now.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class UploadedEpisode:
    """Attempt whose files were uploaded: an episode, or a kept failure."""

    attempt: Attempt
    staged: str = ""
    """Location that the uploader returned; see :class:`UploadedFiles`."""
    objects: dict[str, int] = field(default_factory=dict)
    """Sizes of the uploaded objects [bytes]."""
    lease: int = 0
    learned: DatasetInfo | None = None
    """Content of the node's ``dataset.json``; None if no node has sent it yet."""


class EpisodeEntry(Protocol):
    """Commits uploaded files on the head."""

    def sign(self, name: str, method: str) -> str:
        """Return a URL that gives a node access to an object; empty if the dataset is not in a store."""
        ...

    def keep_failures(self, episodes: Sequence[UploadedEpisode]) -> set[str]:
        """Publish the files of kept failures durably, before their rows are recorded.

        Args:
            episodes: Uploaded attempts; those without a kept failure are skipped.

        Returns:
            Keys of the attempts whose files are missing; see :func:`attempt_key`.

        Raises:
            StorageError: The disk is full; the call may be repeated.
        """
        ...

    def enter(self, episodes: Sequence[UploadedEpisode]) -> set[str]:
        """Commit episodes durably; return the ids of those whose files are present.

        Raises:
            StorageError: The disk is full; nothing was committed.
        """
        ...

    def discard(self, episodes: Sequence[UploadedEpisode]) -> None:
        """Remove the uploaded files of duplicate results, if they occupy separate space."""
        ...


class FolderUploader:
    """Uploads into a folder shared with the head: by hard link on the same disk, otherwise by copy.

    Args:
        dataset: Folder of the head's dataset.
        node: Name of this node.
    """

    def __init__(self, dataset: Path, node: str) -> None:
        self._dataset, self._node = dataset, node

    def upload(self, attempt: Attempt, folder: Path) -> UploadedFiles:
        """Put the files into ``stage/``, under names with that of this node; see :class:`EpisodeUploader`."""
        stage = self._dataset / _STAGE
        staged = stage / f"{attempt.episode_id}.{self._node}.tmp"
        sizes = {
            staged_video_path(staged, attempt.episode_id, path): (path, size) for path, size in attempt.files.items()
        }
        if kept := attempt.failure:
            staged = stage / f"{attempt_key(attempt)}.{self._node}.failure.tmp"
            sizes = {staged: (kept.path, kept.byte_count)}
        with disk(staged):
            for target, (path, byte_count) in sizes.items():
                own_path(self._dataset, target.relative_to(self._dataset).as_posix())  # refuses links and other folders
                if not has_size(target, byte_count):
                    _place(own_path(folder, path), target)
        return UploadedFiles(staged=staged.name)

    def upload_incident(self, folder: Path, name: str) -> str:
        """Copy the folder into ``incidents/``; see :class:`EpisodeUploader`."""
        target = self._dataset / "incidents" / name
        with disk(target):
            make_subfolder(target.parent)
            if not target.exists():
                part = target.with_name(f".{name}.tmp")
                remove_tree(part)
                make_subfolder(part)
                for path in sorted(folder.rglob("*")):
                    if path.is_file() and not path.is_symlink():
                        _copy(path, make_place(part, path.relative_to(folder).as_posix()))
                move(part, target)
        return f"incidents/{name}"


def _place(source: Path, target: Path) -> None:
    """Link or copy a file; replace what an earlier, interrupted call left."""
    remove_file(target)
    try:
        link_file(source, target)
        return
    except OSError:
        if not source.exists():
            raise
    part = target.with_name(f"{target.name}.part")
    remove_file(part)
    _copy(source, part)
    move(part, target)
    sync_folder(target.parent)


def _copy(source: Path, target: Path) -> None:
    """Copy a file to a new path, and flush it to the disk."""
    with source.open("rb") as read, os.fdopen(create_file(target), "wb") as write:
        shutil.copyfileobj(read, write, 1 << 20)
        write.flush()
        os.fsync(write.fileno())


class FolderEntry:
    """Commits files that nodes staged in the folder of the dataset.

    Args:
        dataset: Dataset opened by this process, its only writer.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def keep_failures(self, episodes: Sequence[UploadedEpisode]) -> set[str]:
        """Move the staged files into ``failures/``; see :class:`EpisodeEntry`."""
        folder, missing = self._dataset.folder, set[str]()
        found = [(episode, kept) for episode in episodes if (kept := episode.attempt.failure)]
        if not found:
            return missing
        with disk(folder / FAILURES):
            make_subfolder(folder / FAILURES)
            for episode, kept in found:
                staged, final = self._dataset.stage / Path(episode.staged).name, folder / kept.path
                if _is_file(staged, kept.byte_count):
                    move(staged, final)
                    remove_file(staged)  # still there if both names are links to one file
                elif not _is_file(final, kept.byte_count):  # an earlier call published it, but recorded no rows
                    missing.add(attempt_key(episode.attempt))
            sync_folder(folder / FAILURES)
        return missing

    def enter(self, episodes: Sequence[UploadedEpisode]) -> set[str]:
        """Commit the staged files; see :class:`EpisodeEntry`."""
        stage = self._dataset.stage
        taken = self._dataset.commit(
            [
                staged_episode(self._dataset, episode, stage / Path(episode.staged).name)
                for episode in episodes
                if episode.attempt.path
            ]
        )
        return {attempt.episode_id for attempt in taken}

    def sign(self, name: str, method: str) -> str:
        """Return an empty text, because files in a folder need no URL; see :class:`EpisodeEntry`."""
        return ""

    def discard(self, episodes: Sequence[UploadedEpisode]) -> None:
        """Remove the staged files; see :class:`EpisodeEntry`."""
        for episode in episodes:
            if episode.staged:
                path = self._dataset.stage / Path(episode.staged).name
                files = staged_episode(self._dataset, episode, path).files.values()
                for staged in files if episode.attempt.path else (path,):
                    with suppress(OSError):
                        remove_file(staged)


def attempt_key(attempt: Attempt) -> str:
    """Return a unique name of an attempt."""
    return f"{attempt.episode_id}.a{attempt.attempt}"


def staged_episode(dataset: Dataset, episode: UploadedEpisode, path: Path) -> StagedEpisode:
    """Convert an uploaded episode to a staged episode of the dataset.

    Args:
        dataset: Dataset of the head.
        episode: Episode as reported by a node.
        path: Path of the episode's HDF5 file.
    """
    info, learned = dataset.info, episode.learned
    named = learned and replace(learned, task=info.task, task_hash=info.task_hash, seed=info.seed, inputs=info.inputs)
    return StagedEpisode(attempt=episode.attempt, path=path, lease=episode.lease, learned=named)


def _is_file(path: Path, byte_count: int) -> bool:
    """Return True if a file that a node named has its recorded size, and is no link."""
    return has_size(path, byte_count) and not path.is_symlink()


def info_of(text: str) -> DatasetInfo | None:
    """Parse a node's ``dataset.json``; return None while it does not describe episodes yet."""
    info = from_json(DatasetInfo, text)
    return info if info.features and info.rate else None
