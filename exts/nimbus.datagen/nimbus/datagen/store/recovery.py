"""Recovery of a dataset when it is opened; it completes or undoes the commits of an interrupted run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import sync_folder
from nimbus.datagen.files.codec import from_json
from nimbus.datagen.files.folder_lock import lock_folder
from nimbus.datagen.files.own_files import check_own, own_path, remove_tree
from nimbus.datagen.store.commit import Committer, StagedEpisode, is_whole_file
from nimbus.datagen.store.info import RESTORE
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus
from nimbus.datagen.store.publish import disk


@dataclass(frozen=True, kw_only=True)
class RecoveryReport:
    """Result of the recovery."""

    rolled_forward: int = 0
    """Number of begun commits that were completed, because their files were complete."""
    rolled_back: int = 0
    """Number of begun commits that were undone, because a file was incomplete; these episodes are made again."""
    cleared: int = 0
    """Number of files under ``stage/`` that belonged to no commit and were removed."""


def recover(folder: Path, ledger: Ledger, publisher: Committer) -> RecoveryReport:
    """Complete or undo unfinished commits, revoke leases and clear ``stage/``; this can be interrupted and repeated."""
    whole: list[StagedEpisode] = []
    broken: list[EpisodeState] = []
    claimed = set()
    for state in ledger.episodes(EpisodeStatus.INTENT):
        if not state.stage.startswith("stage/"):
            what = f"not a ledger: {state.episode_id} is staged in {state.stage!a}"
            raise InputError(what, where=str(ledger.path), instead=RESTORE)
        staged = StagedEpisode(attempt=_attempt(ledger, state), path=own_path(folder, state.stage), lease=state.lease)
        claimed.update(staged.files.values())
        # Each file may have its final name or still only its staging name, depending on where the run was interrupted.
        if _is_whole(folder, staged):
            whole.append(staged)
        else:
            broken.append(state)
    if whole:
        publisher.place(whole)
        publisher.clear(whole)
    # All leases end with the run that granted them, because its workers have ended.
    with ledger.batch():
        for state in (*broken, *ledger.episodes(EpisodeStatus.LEASED)):
            ledger.record(_pending(state))
    cleared = sum(path not in claimed for path in _cleared(folder / "stage"))
    return RecoveryReport(rolled_forward=len(whole), rolled_back=len(broken), cleared=cleared)


def clear_stage(folder: Path) -> None:
    """Clear ``stage/`` of a dataset after its run; other processes than its writer may have put files there.

    Nothing is removed if another run has opened the dataset, or if a commit is unfinished: the next opening needs its
    files, and clears the rest.
    """
    try:
        lock = lock_folder(folder)
    except (InputError, OSError):
        return
    try:
        with closing(Ledger(folder, read_only=True)) as ledger:
            is_finished = not ledger.episodes(EpisodeStatus.INTENT)
        if is_finished and (folder / "stage").is_dir():
            list(_cleared(folder / "stage"))
    except InputError:
        return  # the next opening reports what is wrong
    finally:
        lock.release()


def _is_whole(folder: Path, staged: StagedEpisode) -> bool:
    return all(
        any(is_whole_file(found, staged.attempt, path) for found in (folder / path, source))
        for path, source in staged.files.items()
    )


def _pending(state: EpisodeState) -> EpisodeState:
    """Reset an episode to pending. Its lease number stays, so that late messages of that lease are refused."""
    return replace(state, state=EpisodeStatus.PENDING, owner="", stage="", sha256="", byte_count=0, detail="")


def _cleared(stage: Path) -> Iterator[Path]:
    check_own(stage)
    with disk(stage):
        for path in stage.iterdir():
            remove_tree(path)
            yield path
        sync_folder(stage)


def _attempt(ledger: Ledger, state: EpisodeState) -> Attempt:
    try:
        return from_json(Attempt, state.detail)
    except ValueError as error:
        what = f"not a ledger: intent of {state.episode_id}: {error}"
        raise InputError(what, where=str(ledger.path), instead=RESTORE) from None
