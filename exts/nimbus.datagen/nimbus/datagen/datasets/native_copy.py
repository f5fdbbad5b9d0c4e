"""Creation of Nimbus datasets from the ledger rows and files of other datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nimbus.datagen.datasets.export.publication import stage_of
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import sync_file, sync_folder
from nimbus.datagen.files.own_files import copy_new, move, remove_tree
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.info import INFO_NAME, DatasetInfo, info_text, read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus, Run, TimeSpan
from nimbus.datagen.store.publish import disk, replace_text
from nimbus.datagen.store.remote.uploads import is_stored
from nimbus.datagen.store.remote.working_copy import local


@dataclass(frozen=True, kw_only=True)
class DatasetRows:
    """Snapshot of the rows of a dataset's ledger, with the folder of the files."""

    folder: Path
    info: DatasetInfo
    attempts: Sequence[Attempt]
    states: Sequence[EpisodeState]
    """Rows of the episodes in the requested states."""
    runs: Sequence[Run] = field(default=())
    spans: Sequence[TimeSpan] = field(default=())

    @property
    def stored(self) -> list[Attempt]:
        """Attempts that are stored as episodes."""
        return [attempt for attempt in self.attempts if attempt.path]


def read_rows(folder: Path, *states: EpisodeStatus) -> DatasetRows:
    """Read the rows of a dataset.

    Args:
        folder: Folder of the dataset.
        states: States of the episodes whose rows are read.

    Raises:
        InputError: There is no dataset, or its ledger cannot be read.
    """
    info, ledger = read_info(folder), Ledger(folder, read_only=True)
    try:
        with ledger.snapshot():
            return DatasetRows(
                folder=folder,
                info=info,
                attempts=ledger.attempts(),
                states=ledger.episodes(*states),
                runs=ledger.runs(),
                spans=ledger.spans(),
            )
    finally:
        ledger.close()


def refuse_lost(folder: Path, attempts: Iterable[Attempt]) -> None:
    """Check that the files of attempts exist with the sizes in the ledger.

    Raises:
        InputError: A file is missing or has another size.
    """
    if lost := find_lost(folder, attempts):
        what = "the file is missing, or its size differs from the ledger"
        raise InputError(what, where=str(folder / lost), instead="run 'nimbus verify' for details")


def find_lost(folder: Path, attempts: Iterable[Attempt]) -> str:
    """Return the first file that is missing or whose size differs from the ledger; empty if there is none.

    Args:
        folder: Folder of the dataset.
        attempts: Attempts whose files are checked, including those of kept failures.
    """
    inside = DatasetPaths(folder)
    for attempt in attempts:
        sizes = attempt.files if attempt.path else {}
        sizes |= {attempt.failure.path: attempt.failure.byte_count} if attempt.failure else {}
        if lost := next((name for name, size in sizes.items() if not is_stored(inside.path(name), size)), ""):
            return lost
    return ""


def count_stored(info: DatasetInfo, stored: Sequence[Attempt]) -> DatasetInfo:
    """Return the description of a dataset that contains exactly the given attempts."""
    return replace(
        info,
        episode_count=len(stored),
        step_count=sum(one.step_count for one in stored),
        byte_count=sum(sum(one.files.values()) for one in stored),
    )


def write_rows(tree: Path, info: DatasetInfo, sources: Sequence[DatasetRows], report: Callable[[int], None]) -> None:
    """Write a dataset into an empty folder; files are linked if the disk supports it.

    Args:
        tree: Folder of the new dataset.
        info: Description of the dataset.
        sources: Rows to write, with their files.
        report: Called with the number of remaining episodes.

    Raises:
        InputError: A file leads out of its dataset through a link, or two rows name one file.
        StorageError: The disk is full.
    """
    left = sum(len(source.stored) for source in sources)
    with disk(tree):
        for source in sources:
            inside = DatasetPaths(source.folder)
            for attempt in source.attempts:
                names = [*(attempt.files if attempt.path else ()), *([attempt.failure.path] if attempt.failure else ())]
                for name in names:
                    copy_new(local(inside.path(name)).resolve(), tree, name, may_link=True)
                if attempt.path:
                    report(left := left - 1)
    ledger = Ledger(tree)
    try:
        with ledger.batch():
            for source in sources:
                ledger.record(*source.attempts, *source.states, *source.runs, *source.spans)
    finally:
        ledger.close()
    replace_text(tree / INFO_NAME, info_text(info))


def publish_tree(stage: Path, out: Path) -> None:
    """Move a complete dataset from a staging folder to its destination, which must be missing or empty.

    Raises:
        StorageError: The disk is full; nothing was published.
    """
    tree = stage / "tree"
    with disk(stage):
        for path in tree.rglob("*"):
            if path.is_file():
                sync_file(path)
        for place in (tree, tree / "episodes"):
            sync_folder(place)
        if out.exists():
            out.rmdir()
        move(tree, out)
        sync_folder(out.parent)
        remove_tree(stage_of(out))
