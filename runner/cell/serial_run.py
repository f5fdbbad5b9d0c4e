"""A run in this process: the stages one after another, as the baseline and for debugging."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nimbus.datagen.stages import Request
from nimbus.runner.cell.queue.backlog import completed_before, missing
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.job import load_job
from nimbus.runner.monitor.progress import Progress
from nimbus.runner.system.signals import Interruption
from nimbus.runner.system.threads import kernels_are_compiled

if TYPE_CHECKING:
    from nimbus.datagen.stages import Request
    from nimbus.datagen.store.dataset import Dataset


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
    from nimbus.runner.monitor.dashboard import Dashboard, loading
    from nimbus.runner.monitor.foreign_files import report_foreign_files

    mode, started = "coupled" if coupled else "serial", time.time()
    with loading():
        job = load_job(spec)
    with job.origin.open(spec.folder) as dataset:
        report_foreign_files(dataset)
        settings = {"seed": spec.seed, "reach": job.origin.reach}
        run = dataset.ledger.start_run(mode=mode, cores=1, settings=settings, started=started)
        before = completed_before(dataset.ledger, spec)
        progress = Progress(
            dataset.folder,
            task=job.origin.task,
            target=spec.target,
            already=before.settled,
            already_stored=before.stored,
            started=started,
            mode=mode,
        )
        state = "failed"
        try:
            with (
                Dashboard(progress) as dashboard,
                Interruption() as interruption,
                job.chain(dataset, coupled=coupled) as chain,
            ):
                if not kernels_are_compiled(spec.device):
                    dashboard.note("the first episode compiles the renderer (about half a minute, once)")
                progress.ready()
                for stored in chain.run(_requests(dataset, spec, load_time=job.load_time)):
                    dashboard.add(stored)
                    if interruption.requested:
                        raise Drained
            count = dataset.ledger.stored_count(episodes=spec.episodes, variants=spec.variants)
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


def _requests(dataset: Dataset, spec: CellSpec, *, load_time: float) -> Iterator[Request]:
    """The episodes that are still to be made, in order; the first tells what loading for all of them took."""
    from nimbus.datagen.store.episode_file.read import stored_plan

    times = {"load": load_time}
    for item in missing(dataset.ledger, spec):
        path = dataset.folder / item.stored_plan
        plan = stored_plan(path, attempt=item.stored_attempt) if item.stored_plan else None
        yield Request(index=item.index, variants=item.variants, plan=plan, times=times)
        times = {}
