"""What somebody else did to a dataset's folder, as found when it was opened: files put aside, files gone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nimbus.datagen.store.dataset import Dataset


def report_foreign_files(dataset: Dataset) -> None:
    """Say what :func:`foreign_file_lines` has to say."""
    for text in foreign_file_lines(dataset):
        sys.stderr.write(f"{text}\n")


def foreign_file_lines(dataset: Dataset) -> Iterator[str]:
    """One line each, that files were put aside which the ledger does not know, and that others are gone."""
    from nimbus.datagen.store.commit import ORPHANS

    if count := len(dataset.outdated):
        what = f"{count} episode files are" if count > 1 else f"{dataset.outdated[0].name} is"
        yield f"{dataset.folder}: {what} missing or changed, to be made again"
    if count := len(dataset.orphans):
        what = f"{count} episode files" if count > 1 else "an episode file"
        yield f"{dataset.folder}: put {what} aside that the ledger does not know, in {ORPHANS}/"
