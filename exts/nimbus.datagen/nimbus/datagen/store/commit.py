"""Commit protocol of staged episodes: intent, link, directory sync, done; recovery completes or undoes the rest."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nimbus.datagen.files.atomic import sync_folder
from nimbus.datagen.files.codec import to_compact_json
from nimbus.datagen.files.own_files import link_file, move, remove_file
from nimbus.datagen.store.episode_file.content_check import is_whole, is_whole_video
from nimbus.datagen.store.episode_file.videos import staged_video_path
from nimbus.datagen.store.failpoints import failpoint
from nimbus.datagen.store.folder import can_link, quarantine_file
from nimbus.datagen.store.info import DatasetInfo
from nimbus.datagen.store.ledger.attempt import Attempt, has_size
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus
from nimbus.datagen.store.publish import disk

ORPHANS = "orphans"
"""Folder for episode files without a row in the ledger."""


@dataclass(frozen=True, kw_only=True)
class StagedEpisode:
    """Episode whose files are written and synced under staging names."""

    attempt: Attempt
    path: Path
    """Staged HDF5 file; videos are beside it."""
    lease: int = 0
    """Lease under which it was made; 0 for none."""
    learned: DatasetInfo | None = None
    """Description of the dataset inferred from it; None when it adds nothing."""

    @cached_property
    def files(self) -> dict[str, Path]:
        """Staged paths of its files by their final path in the dataset; the HDF5 file comes last."""
        attempt = self.attempt
        return {path: staged_video_path(self.path, attempt.episode_id, path) for path in attempt.files}


class Committer:
    """Publisher of staged files with a write-ahead intent in the ledger.

    The final name is a second hard link to the staged file; the staging name is removed last. On a disk without hard
    links the file is renamed instead. That is safe, because the folder has only one writer: no other process can take
    the final name between the check and the renaming.

    Attributes:
        orphans: New paths of files that had a final name but no row in the ledger.
    """

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self.orphans: list[Path] = []
        self._folder = folder
        self._ledger = ledger
        self._has_links = can_link(folder)

    def commit(self, group: Sequence[StagedEpisode]) -> list[StagedEpisode]:
        """Commit episodes together and remove their staged files.

        Returns:
            The stored episodes. An episode is refused if it is already stored, if it was leased to another worker
            meanwhile, or if its staged file differs from its record.

        Raises:
            StorageError: The disk is full; nothing of the group is stored, and the staged files stay.
        """
        # The crash tests kill the process at each failpoint and check that recovery ends with all or nothing.
        failpoint("before_intent")
        before: list[EpisodeState] = []
        intents: dict[tuple[int, int], EpisodeState] = {}
        taken: list[StagedEpisode] = []
        with self._ledger.batch():
            for staged in group:
                key = (staged.attempt.idx, staged.attempt.variant)
                # An episode may occur twice in one group; the second one sees the intent of the first and is refused.
                known = intents.get(key) or self._ledger.episode(*key)
                if _is_there(staged) and _may_commit(known, staged.lease):
                    before.append(known or self._ledger.state_of(staged.attempt, EpisodeStatus.PENDING))
                    taken.append(staged)
                    stage, detail = f"stage/{staged.path.name}", to_compact_json(staged.attempt)
                    intents[key] = self._state(staged, EpisodeStatus.INTENT, stage=stage, detail=detail)
            self._ledger.record(*intents.values())
        failpoint("after_intent")
        # Intents are durable before any file gets its final name, so that every file in episodes/ has a row in the
        # ledger.
        with self._undone_on_error(taken, before):
            self.place(taken)
        kept = {staged.path for staged in taken}
        # Staged files are removed last: recovery needs them to complete the commit until the ledger has DONE.
        self.clear([*taken, *(staged for staged in group if staged.path not in kept)])
        return taken

    def enter(self, group: Sequence[StagedEpisode]) -> list[StagedEpisode]:
        """Record episodes whose files already have their final names, all of them or none; return the stored ones.

        Raises:
            StorageError: The disk is full.
        """
        taken: dict[tuple[int, int], StagedEpisode] = {}
        for staged in group:
            key = (staged.attempt.idx, staged.attempt.variant)
            if key not in taken and _may_commit(self._ledger.episode(*key), staged.lease):
                taken[key] = staged
        attempts = [staged.attempt for staged in taken.values()]
        self._ledger.record(*attempts, *(self._state(staged, EpisodeStatus.DONE) for staged in taken.values()))
        return list(taken.values())

    def place(self, group: Sequence[StagedEpisode]) -> None:
        """Perform the steps from intent to done: link the files, sync the directory, update the ledger."""
        with disk(self._folder / "episodes"):
            for staged in group:
                for path, source in staged.files.items():
                    self._link(staged, source, path)
                    failpoint("after_link")
            # The names must be durable before the ledger marks the episodes as stored. The contents were synced when
            # they were staged, so one sync of the folder is enough for the whole group.
            if group:
                sync_folder(self._folder / "episodes")
        failpoint("after_directory_sync")
        attempts = [staged.attempt for staged in group]
        self._ledger.record(*attempts, *(self._state(staged, EpisodeStatus.DONE) for staged in group))
        failpoint("after_done")

    def clear(self, group: Sequence[StagedEpisode]) -> None:
        """Remove staged files; one that cannot be removed now is removed when the dataset is next opened."""
        for path in (path for staged in group for path in staged.files.values()):
            with suppress(OSError):
                remove_file(path)
            failpoint("after_unlink")

    def _link(self, staged: StagedEpisode, source: Path, path: str) -> None:
        """Link a file to its final name without overwriting; an existing file of the same content is accepted."""
        try:
            self._name(source, f"{self._folder}/{path}")
        except FileExistsError:
            final = self._folder / path
            # After a crash between link and DONE the final name already exists, as a link to this file or an equal
            # copy.
            is_ours = source.exists() and final.samefile(source)
            if is_ours or is_whole_file(final, staged.attempt, path):
                return
            self.orphans.append(quarantine_file(final, self._folder / ORPHANS))
            self._name(source, final)

    def _name(self, source: Path, final: Path | str) -> None:
        """Give a staged file its final name.

        Raises:
            FileExistsError: Another file has the name.
        """
        if self._has_links:
            link_file(source, final)
        elif os.path.lexists(final):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(final))
        else:
            move(source, Path(final))

    def _state(self, staged: StagedEpisode, state: EpisodeStatus, **values: Any) -> EpisodeState:
        attempt = staged.attempt
        size = {"sha256": attempt.sha256, "byte_count": attempt.byte_count}
        return self._ledger.state_of(attempt, state, lease=staged.lease, **size, **values)

    @contextmanager
    def _undone_on_error(self, taken: list[StagedEpisode], before: list[EpisodeState]) -> Iterator[None]:
        try:
            yield
        except Exception:  # any error is re-raised below, after the group is undone
            for path, source in ((path, source) for staged in taken for path, source in staged.files.items()):
                final = self._folder / path
                with suppress(OSError):
                    if not self._has_links and not source.exists():  # the file was renamed, so it is moved back
                        move(final, source)
                    elif final.samefile(source):
                        remove_file(final)
            # The rows are deferred, because the disk may be full: they are valid at once and written with the next
            # batch.
            self._ledger.defer(*before)
            raise


def is_whole_file(found: Path, attempt: Attempt, path: str) -> bool:
    """Return True if a file is the one that an attempt wrote.

    Args:
        found: The file.
        attempt: The attempt.
        path: Path of the file in the dataset.
    """
    video = next((video for video in attempt.videos if video.path == path), None)
    if video is not None:
        return is_whole_video(found, video)
    return is_whole(found, sha256=attempt.sha256, byte_count=attempt.byte_count)


def _is_there(staged: StagedEpisode) -> bool:
    """Return True if the files have their recorded sizes. Nodes name the files, and may name links."""
    sizes = staged.attempt.files
    return all(has_size(source, sizes[path]) and not source.is_symlink() for path, source in staged.files.items())


def _may_commit(known: EpisodeState | None, lease: int) -> bool:
    if known is None:
        return True
    if known.state is EpisodeStatus.PENDING:
        # The episode is pending after its lease was lost: late results of that lease or an earlier one are refused.
        return lease == 0 or lease > known.lease
    return known.state is EpisodeStatus.LEASED and lease == known.lease
