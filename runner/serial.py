"""A run in this process: the stages one after another, as the baseline and for debugging."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nimbus.runner.cell.job import load_job
from nimbus.runner.cell.spec import CellSpec
from nimbus.runner.interruption import Interruption
from nimbus.runner.libraries import kernels_are_compiled

if TYPE_CHECKING:
    from nimbus.datagen.stages import Request
    from nimbus.datagen.store.dataset import Dataset

COUPLED = {"stack": 1, "render_failures": True, "synchronous": True}
"""What components are given to be the coupled baseline: one world a launch, every attempt rendered before it is judged,
each image written before the next is made."""


class Drained(KeyboardInterrupt):
    """The run was asked to stop, and what was under way is stored."""


def run_serial(spec: CellSpec, *, coupled: bool = False) -> int:
    """Run a spec to its end; how many of its episodes are stored.

    Args:
        spec: What to do.
        coupled: As the paper's baseline, in which rendering is not decoupled from planning.

    Raises:
        InputError: Something that the spec names is wrong.
        Drained: The run was asked to stop.
        KeyboardInterrupt: It was asked twice.
    """
    from nimbus.runner.dashboard import Dashboard, loading
    from nimbus.runner.progress import Progress

    mode, started = "coupled" if coupled else "serial", time.time()
    with loading():
        job = load_job(spec)
    with job.origin.open(spec.folder) as dataset:
        tell_orphans(dataset)
        run = dataset.ledger.start_run(mode=mode, cores=1, started=started)
        already = sum(len(dataset.ledger.finished(index, _variants(spec))) for index in range(spec.episodes))
        progress = Progress(
            dataset.folder,
            task=job.origin.task,
            target=spec.target,
            already=already,
            already_stored=_stored_count(dataset, spec),
            started=started,
            mode=mode,
        )
        state = "failed"
        try:
            with (
                Dashboard(progress) as dashboard,
                Interruption() as interruption,
                job.chain(dataset, **(COUPLED if coupled else {})) as chain,
            ):
                if not kernels_are_compiled(spec.device):
                    dashboard.note("the first episode compiles the renderer (about half a minute, once)")
                progress.ready()
                for stored in chain.run(_requests(dataset, spec, load_time=job.load_time)):
                    dashboard.add(stored)
                    if interruption.requested:
                        raise Drained
            count = _stored_count(dataset, spec)
            state = "done" if count == spec.target else "short"
        except KeyboardInterrupt:
            state = "interrupted"
            raise
        finally:
            progress.finish(state)
            dataset.ledger.end_run(
                run,
                state=state,
                wall_seconds=progress.status.elapsed,
                startup_seconds=progress.status.startup_seconds,
            )
    return count


def _variants(spec: CellSpec) -> tuple[int, ...]:
    return tuple(range(spec.variants))


def _requests(dataset: Dataset, spec: CellSpec, *, load_time: float) -> Iterator[Request]:
    """The episodes that are still to be made, in order; the first tells what loading for all of them took."""
    from nimbus.datagen.stages import Request

    times = {"load": load_time}
    for index in range(spec.episodes):
        finished = dataset.ledger.finished(index, _variants(spec))
        missing = tuple(variant for variant in _variants(spec) if variant not in finished)
        if missing:
            plan = _stored_plan(dataset, index) if finished else None
            yield Request(index=index, variants=missing, plan=plan, times=times)
            times = {}


def _stored_plan(dataset: Dataset, index: int) -> Any:
    """The plan that a stored variant of an episode shows; None where no file of one can be read."""
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.store.read import stored_plan

    for attempt in dataset.ledger.stored(index):
        with contextlib.suppress(InputError):
            return stored_plan(dataset.folder / attempt.path, attempt=attempt.attempt)
    return None


def _stored_count(dataset: Dataset, spec: CellSpec) -> int:
    stored = {(attempt.idx, attempt.variant) for attempt in dataset.ledger.stored()}
    return sum((index, variant) in stored for index in range(spec.episodes) for variant in _variants(spec))


def tell_orphans(dataset: Dataset) -> None:
    """Say what :func:`orphan_lines` has to say."""
    for text in orphan_lines(dataset):
        sys.stderr.write(f"{text}\n")


def orphan_lines(dataset: Dataset) -> Iterator[str]:
    """One line each, that files were put aside which the ledger does not know, and that others are gone."""
    if count := len(dataset.outdated):
        what = f"{count} episode files are" if count > 1 else f"{dataset.outdated[0].name} is"
        yield f"{dataset.folder}: {what} missing or changed, to be made again"
    if count := len(dataset.orphans):
        from nimbus.datagen.store.commit import ORPHANS

        what = f"{count} episode files" if count > 1 else "an episode file"
        yield f"{dataset.folder}: put {what} aside that the ledger does not know, in {ORPHANS}/"
