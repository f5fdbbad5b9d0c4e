"""Execution of a spec in the processes of a cell, or in this process; the output is shown at its end."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen.errors import BUG, InputError, single_line
from nimbus.datagen.progress import show_activity
from nimbus.datagen.stages import Request
from nimbus.datagen.store.remote.cache_root import address_of
from nimbus.runner.cell.missing_work import completed_before, missing_work
from nimbus.runner.cell.start_run import dataset_of
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.job import load_job
from nimbus.runner.monitor.progress import Progress
from nimbus.runner.system.output import shown_path, write_error, write_out
from nimbus.runner.system.processes import Interruption
from nimbus.runner.system.threads import kernels_are_compiled, load_kernels

if TYPE_CHECKING:
    from nimbus.datagen.store.dataset import Dataset

SHORT = 1
"""Exit code of a run that ended with fewer episodes than requested."""


class Drained(KeyboardInterrupt):
    """Raised when a run was stopped on request after the work in progress was stored."""


def run_serial(spec: CellSpec, *, coupled: bool = False) -> int:
    """Run a spec to its end; return the number of its episodes that are stored.

    Args:
        spec: The run.
        coupled: Run the coupled baseline, in which rendering is not decoupled from planning.

    Raises:
        InputError: An input of the spec is invalid.
        Drained: The run was stopped on request.
        KeyboardInterrupt: The run was stopped by a second request.
    """
    from nimbus.runner.monitor.dashboard import Dashboard, loading
    from nimbus.runner.monitor.output_summary import report_foreign_files

    mode, started = "coupled" if coupled else "serial", time.time()
    with loading():
        job = load_job(spec)
    with dataset_of(job.origin, spec.folder) as dataset:
        report_foreign_files(dataset)
        settings = {"seed": spec.seed, "reach": job.origin.reach}
        run = dataset.ledger.start_run(mode=mode, cores=1, settings=settings, started=started)
        before = completed_before(dataset.ledger, spec)
        progress = Progress(
            dataset.folder,
            task=job.origin.task,
            target=spec.target,
            unit=spec.unit,
            already=before.settled,
            already_stored=before.stored,
            started=started,
            mode=mode,
            gpus=spec.used_gpus,
        )
        state = "failed"
        try:
            with (
                Dashboard(progress) as dashboard,
                Interruption() as interruption,
                _without_loaded_objects(),
                job.chain(dataset, coupled=coupled) as chain,
                show_activity(progress.activity),
            ):
                progress.end_phase("load")
                if not kernels_are_compiled(spec.device, job.pipeline, has_cameras=job.has_cameras):
                    dashboard.note("compiling the renderer's kernels (about half a minute, once)")
                    load_kernels(spec.device, job.pipeline, has_cameras=job.has_cameras)
                    progress.end_phase("compile")
                progress.ready()
                # The kernels are compiled before the first request, so that their half minute is not counted as render
                # time.
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
                busy=progress.status.busy_times,
            )
    return count


@contextmanager
def _without_loaded_objects() -> Iterator[None]:
    """Exclude the loaded objects from garbage collection: they are a million, and none of them is garbage."""
    is_ours = not gc.get_freeze_count()
    if is_ours:
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()


def _requests(dataset: Dataset, spec: CellSpec, *, load_time: float) -> Iterator[Request]:
    """Yield requests for the missing episodes in order; the first carries the load time of all."""
    from nimbus.datagen.store.episode_file.read import stored_plan

    times = {"load": load_time}
    for item in missing_work(dataset.ledger, spec):
        path = dataset.folder / item.stored_plan
        plan = stored_plan(path, attempt=item.stored_attempt) if item.stored_plan else None
        yield Request(index=item.index, variants=item.variants, plan=plan, times=times)
        times = {}


def run_spec(
    spec: CellSpec,
    *,
    serial: bool = False,
    coupled: bool = False,
    price_per_hour: float | None = None,
    shows: bool = True,
) -> int:
    """Run a spec, show its output if requested, and return the exit code."""
    serial = serial or coupled or not sys.platform.startswith("linux")
    if serial:
        return _serial(spec, price_per_hour, coupled=coupled, shows=shows)
    return _cell(spec, price_per_hour, shows=shows)


def _serial(spec: CellSpec, price: float | None, *, coupled: bool, shows: bool) -> int:
    try:
        stored = run_serial(spec, coupled=coupled)
    except Drained:
        show(Path(spec.folder), price=price, quiet=True)
        raise
    if shows:
        show(Path(spec.folder), price=price)
    return 0 if stored == spec.target else _short(stored, spec)


def _cell(spec: CellSpec, price: float | None, *, shows: bool) -> int:
    from nimbus.runner.cell.launcher import run_cell
    from nimbus.runner.monitor.dashboard import StatusDashboard

    folder = Path(spec.folder)
    with StatusDashboard(folder) as watcher:
        ended = run_cell(spec, watch=watcher.look)
    shows = shows or ended.state == "interrupted"
    if shows and ended.state in ("done", "short", "interrupted") and (folder / "dataset.json").exists():
        show(folder, price=price, quiet=ended.state == "interrupted")
    if ended.state == "interrupted":
        raise KeyboardInterrupt
    if ended.line:  # a traceback, or one line
        write_error((ended.line.rstrip("\n") if ended.code == BUG else single_line(ended.line)) + "\n")
    return _short(watcher.stored, spec) if ended.state == "short" else ended.code


def _short(stored: int, spec: CellSpec) -> int:
    write_error(f"incomplete: {stored} of {spec.target} episodes stored; the reasons are in the table\n")
    return SHORT


def show(folder: Path, *, price: float | None = None, quiet: bool = False) -> None:
    """Show previews, the report page and the figures of a dataset."""
    from nimbus.datagen.store.dataset import read_info
    from nimbus.runner.media.preview import write_previews
    from nimbus.runner.report import print_summary, write_report
    from nimbus.runner.report.summary import summarize

    with reporting_input_errors():
        if read_info(folder).episode_count:
            write_previews(folder)
    page = None
    with reporting_input_errors():
        page = write_report(folder, price_per_hour=price)
    if not quiet:
        print_summary(summarize(folder, price_per_hour=price))
        address = address_of(folder)
        shown = shown_path(folder) if address == str(folder) else address
        write_out(f"\ndataset: {shown}\n" + (f"report:  {shown_path(page)}\n" if page else ""))


@contextmanager
def reporting_input_errors() -> Iterator[None]:
    """Print an ``InputError`` of the block as one line and continue: the episodes are already stored."""
    try:
        yield
    except InputError as error:
        write_error(single_line(str(error)) + "\n")
