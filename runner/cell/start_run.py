"""What a run opens before it begins: its dataset, its row in the ledger, and its status."""

from __future__ import annotations

import os
from pathlib import Path

from nimbus.datagen.machine import usable_cores
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.ledger import FILE_NAME
from nimbus.datagen.store.ledger.records import Run
from nimbus.runner.cell.queue.backlog import CompletedWork
from nimbus.runner.cell.transport.messages import Loaded
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.monitor.foreign_files import foreign_file_lines
from nimbus.runner.monitor.progress import Progress

_READ_RATE = 1e6
"""[bytes/s] of a ledger that is opened, on a slow disk and a busy machine."""
_COMPILING = "compiling the renderer's kernels (about half a minute, once)"


def opening_seconds(folder: str) -> float:
    """How long opening a dataset may take: all of a ledger is read, and one of millions of rows takes minutes [s]."""
    ledger = Path(folder) / FILE_NAME
    return ledger.stat().st_size / _READ_RATE if ledger.is_file() else 0.0


def open_dataset(spec: CellSpec, loaded: Loaded, *, split: tuple[int, int], started: float) -> tuple[Dataset, Run]:
    """The dataset, and the run that begins in its ledger.

    Args:
        spec: What to do.
        loaded: What the fork server says about the job.
        split: Planners and renderers to start with.
        started: [s since 1970] when the run was.

    Raises:
        InputError: The folder is not a fit place for this run.
    """
    dataset = loaded.origin.open(spec.folder)
    try:
        run = dataset.ledger.start_run(
            mode="cell",
            cores=usable_cores(),
            workers="x".join(map(str, split)),
            settings={"seed": spec.seed, "reach": loaded.origin.reach},
            started=started,
        )
    except BaseException:
        dataset.close()
        raise
    return dataset, run


def open_progress(
    spec: CellSpec, loaded: Loaded, dataset: Dataset, before: CompletedWork, *, started: float
) -> Progress:
    """The run's status, which begins with what was found when the dataset was opened; yet to be flushed."""
    progress = Progress(
        dataset.folder,
        task=loaded.origin.task,
        target=spec.target,
        already=before.settled,
        already_stored=before.stored,
        started=started,
        mode="cell",
        launcher=os.getppid(),
    )
    progress.activity(_COMPILING if loaded.compiles else "starting workers")
    if loaded.compiles:
        progress.tell(_COMPILING, kind="phase")
    for text in foreign_file_lines(dataset):
        progress.tell(text, kind="files")
    return progress
