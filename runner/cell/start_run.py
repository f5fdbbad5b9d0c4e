"""Start of a run: opens its dataset, ledger row and status."""

from __future__ import annotations

import os
from pathlib import Path

from nimbus.datagen.machine import usable_cores
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.ledger import FILE_NAME
from nimbus.datagen.store.ledger.records import Run
from nimbus.runner.cell.missing_work import CompletedWork
from nimbus.runner.cell.transport.messages import Loaded
from nimbus.runner.cell.transport.spec import CellSpec, Origin
from nimbus.runner.monitor.output_summary import foreign_file_lines
from nimbus.runner.monitor.progress import Progress

_READ_RATE = 1e6
"""Assumed rate at which a ledger is read on a slow disk of a busy machine [bytes/s]."""
_COMPILING = "compiling the renderer's kernels (about half a minute, once)"


def opening_seconds(folder: str) -> float:
    """Return the longest time to open a dataset [s]; reading its ledger takes minutes for millions of rows."""
    ledger = Path(folder) / FILE_NAME
    return ledger.stat().st_size / _READ_RATE if ledger.is_file() else 0.0


def dataset_of(origin: Origin, folder: Path | str) -> Dataset:
    """Create or reopen the dataset of a task; raises the errors of :meth:`Dataset.create_or_open`."""
    return Dataset.create_or_open(
        folder,
        task=origin.task,
        task_hash=origin.task_hash,
        seed=origin.seed,
        robot=origin.robot,
        inputs=origin.inputs,
        collection=origin.collection,
        credits=origin.credits,
        meaning=origin.meaning,
    )


def open_dataset(spec: CellSpec, loaded: Loaded, *, split: tuple[int, int], started: float) -> tuple[Dataset, Run]:
    """Open the dataset and begin a run in its ledger.

    Args:
        spec: The run.
        loaded: The fork server's description of the job.
        split: Initial planners and renderers.
        started: Start of the run [s since 1970].

    Raises:
        InputError: The folder cannot hold this run.
    """
    dataset = dataset_of(loaded.origin, spec.folder)
    try:
        run = dataset.ledger.start_run(
            mode="cell",
            cores=usable_cores(),
            workers="x".join(map(str, split)),
            settings={"seed": spec.seed, "reach": loaded.origin.reach},
            started=started,
        )
    # The dataset holds the folder's lock, which a caller without the dataset could not release.
    except BaseException:
        dataset.close()
        raise
    return dataset, run


def open_progress(
    spec: CellSpec, loaded: Loaded, dataset: Dataset, before: CompletedWork, *, started: float
) -> Progress:
    """Return the run's status, initialized from the opened dataset and not yet written."""
    progress = Progress(
        dataset.folder,
        task=loaded.origin.task,
        target=spec.target,
        unit=spec.unit,
        already=before.settled,
        already_stored=before.stored,
        started=started,
        mode="cell",
        launcher=os.getppid(),
        gpus=spec.used_gpus,
    )
    progress.end_phase("load", following=_COMPILING if loaded.compiles else "")
    if not loaded.compiles:
        progress.activity("starting workers")
    for text in foreign_file_lines(dataset):
        progress.tell(text, kind="files")
    return progress
