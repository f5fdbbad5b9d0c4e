"""Start of a run: opens its dataset, ledger row and status, and finds the work left by earlier runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.machine import usable_cores
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.ledger import FILE_NAME, Ledger
from nimbus.datagen.store.ledger.records import Run
from nimbus.runner.cell.queue.lease import Missing
from nimbus.runner.cell.transport.messages import Loaded
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.monitor.output_summary import foreign_file_lines
from nimbus.runner.monitor.progress import Progress

_READ_RATE = 1e6
"""Assumed rate at which a ledger is read on a slow disk of a busy machine [bytes/s]."""
_PAGE = 512
"""Number of indices looked up in the ledger by one query."""
_COMPILING = "compiling the renderer's kernels (about half a minute, once)"


@dataclass(frozen=True, kw_only=True)
class CompletedWork:
    """Part of a run's work that earlier runs have completed."""

    settled: int
    """Number of settled episodes, variants included."""
    stored: int
    """Number of stored episodes among them."""
    missing: int
    """Number of indices with a missing variant."""


def completed_before(ledger: Ledger, spec: CellSpec) -> CompletedWork:
    """Count completed work; the time grows with the ledger, not with the number of requested episodes.

    Raises:
        InputError: The folder holds episodes of other parts.
    """
    if spec.feed:
        return CompletedWork(settled=0, stored=0, missing=0)
    variants, (number, parts) = tuple(range(spec.variants)), spec.part
    touched = ledger.touched(episodes=spec.episodes)
    if others := [index for index in touched if index % parts != number - 1]:
        what, instead = (
            f"holds episode {others[0]}, which is not in part {number} of {parts}",
            "give each part its own --out",
        )
        raise InputError(what, where=spec.folder, instead=instead)
    # Only touched indices are read: a dataset of millions of requested episodes starts with few rows.
    finished = [len(ledger.finished(index, variants)) for index in touched]
    return CompletedWork(
        settled=sum(finished),
        stored=ledger.stored_count(episodes=spec.episodes, variants=spec.variants),
        missing=spec.target // spec.variants - finished.count(spec.variants),
    )


def missing_work(ledger: Ledger, spec: CellSpec) -> Iterator[Missing]:
    """Yield missing work by index, looked up lazily."""
    variants, wanted, (number, parts) = tuple(range(spec.variants)), frozenset(spec.indices), spec.part
    for index, is_known in _indices(ledger, spec.episodes):
        if (wanted and index not in wanted) or index % parts != number - 1:
            continue
        if not is_known:
            yield Missing(index=index, variants=variants)
        elif missing := missing_of(ledger, spec, index):
            yield missing


def missing_of(ledger: Ledger, spec: CellSpec, index: int) -> Missing | None:
    """Return the missing work of an index; None when all of its variants are settled."""
    variants = tuple(range(spec.variants))
    finished = ledger.finished(index, variants)
    if not (left := tuple(variant for variant in variants if variant not in finished)):
        return None
    # A stored variant holds the plan of all variants: the missing ones only need rendering.
    shown = next(iter(ledger.stored(index)), None) if finished else None
    return Missing(
        index=index,
        variants=left,
        stored_plan=shown.path if shown else "",
        stored_attempt=shown.attempt if shown else 0,
        leases=max((state.lease for item in variants if (state := ledger.episode(index, item))), default=0),
    )


def _indices(ledger: Ledger, episodes: int) -> Iterator[tuple[int, bool]]:
    """Yield every index, with True where the ledger has a row of it; the ledger is read in pages."""
    for begin in range(0, episodes, _PAGE):
        end = min(begin + _PAGE, episodes)
        known = ledger.known(begin, end)
        for index in range(begin, end):
            yield index, index in known


def opening_seconds(folder: str) -> float:
    """Return the longest time to open a dataset [s]; reading its ledger takes minutes for millions of rows."""
    ledger = Path(folder) / FILE_NAME
    return ledger.stat().st_size / _READ_RATE if ledger.is_file() else 0.0


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
    dataset = loaded.origin.open(spec.folder)
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
