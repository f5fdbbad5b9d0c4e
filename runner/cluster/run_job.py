"""Run of a job with several tasks on a cluster; the datasets of the tasks are in one folder or below one address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nimbus.datagen.errors import InputError, single_line
from nimbus.datagen.files.own_files import part_folder
from nimbus.datagen.store.folder import check_writable
from nimbus.datagen.store.remote.address import StoreAddress
from nimbus.datagen.store.remote.cache_root import make_folder, remote_root
from nimbus.runner.cell.run import SHORT, show
from nimbus.runner.cell.store_run import run_into_store, spool_limit
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.cluster.demand import NodeBounds
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.job_description import describe_task
from nimbus.runner.cluster.job_file import JobItem, load_job
from nimbus.runner.cluster.start_cluster import node_spec, run_cluster_job
from nimbus.runner.monitor.dashboard import loading
from nimbus.runner.monitor.status import read_status
from nimbus.runner.system.output import write_error, write_out

_JOBS = "jobs"
"""Folder in the cache for the status of jobs whose datasets are in a store."""


def run_job(
    file: Path,
    spec: CellSpec,
    cluster: ClusterAddress,
    *,
    bounds: NodeBounds | None = None,
    gpus: str | None = None,
    address: StoreAddress | None = None,
    spool: int | None = None,
    price_per_hour: float | None = None,
) -> int:
    """Run the tasks of a job, show the stored episodes of each, and return the exit code.

    Args:
        file: Path of the job file.
        spec: Settings common to all tasks, with the folder of their datasets.
        cluster: Address of the cluster.
        bounds: Bounds on the number of nodes; all available ones by default.
        gpus: Value of ``--gpus``, which each node applies to its own GPUs.
        address: Address below which the datasets are in a store; None if they are in the folder.
        spool: Limit on the size of files that wait for upload, for all tasks [bytes]; by default from the free disk.
        price_per_hour: Price of a node hour.

    Raises:
        InputError: The job, or an input of a task, is invalid.
        KeyboardInterrupt: The run was stopped.
    """
    items = load_job(file, spec)
    if address is None:
        folder = Path(spec.folder)
        check_writable(folder)
        placed = [replace(item, spec=replace(item.spec, folder=str(part_folder(folder, item.name)))) for item in items]
        return _run(folder, placed, cluster, bounds=bounds, gpus=gpus, price_per_hour=price_per_hour)
    folder = remote_root() / _JOBS / address.key

    def run_from(number: int, placed: list[JobItem]) -> int:
        """Open the spools of the tasks from ``number`` on, one nested in the other, then run all tasks."""
        if number == len(items):
            make_folder(folder)
            return _run(folder, placed, cluster, bounds=bounds, gpus=gpus, price_per_hour=price_per_hour)

        def go_on(place: Path) -> int:
            share = (spool or spool_limit(place)) // len(items)
            item = items[number]
            resources = replace(item.spec.resources, spool_bytes=share)
            own = replace(item.spec, folder=str(place), resources=resources)
            return run_from(number + 1, [*placed, replace(item, spec=own)])

        return run_into_store(address.under(items[number].name), go_on)

    return run_from(0, [])


def _run(
    folder: Path,
    items: list[JobItem],
    cluster: ClusterAddress,
    *,
    bounds: NodeBounds | None,
    gpus: str | None,
    price_per_hour: float | None,
) -> int:
    with loading():
        tasks = [
            describe_task(item.name, node_spec(item.spec, cluster), priority=item.priority, needs=item.needs)
            for item in items
        ]
    prices = {"": price_per_hour} if price_per_hour else {}
    job = ClusterJob(folder=str(folder), tasks=tuple(tasks), price_per_hour=prices, bounds=bounds, gpus=gpus)
    end = run_cluster_job(job, cluster, items[0].spec.resources)
    return _conclude(end, folder, items, price=price_per_hour)


def _conclude(end: HeadEnd, folder: Path, items: list[JobItem], *, price: float | None) -> int:
    """Show the result of the job; return its exit code.

    Raises:
        KeyboardInterrupt: The run was interrupted.
    """
    shown = [item for item in items if (Path(item.spec.folder) / "dataset.json").exists()]
    for item in shown:
        write_out(f"\n{item.name}\n")
        show(Path(item.spec.folder), price=price, quiet=end.state == "interrupted")
    if end.state == "failed":
        write_error(single_line(end.line or "the cluster failed") + "\n")
        return SHORT if shown else InputError.exit_code
    if end.state == "interrupted":
        raise KeyboardInterrupt
    if end.state == "short" and (status := read_status(folder)):
        stored = status.already_stored + status.stored
        write_error(f"incomplete: {stored} of {status.target} episodes stored; the reasons are in the tables\n")
    return 0 if end.state == "done" else SHORT
