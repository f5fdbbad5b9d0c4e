"""Run of a single task on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nimbus.datagen.errors import InputError, single_line
from nimbus.datagen.store.folder import check_writable
from nimbus.runner.cell.run import SHORT, show
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.cluster.demand import NodeBounds
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.job_description import describe_task
from nimbus.runner.cluster.job_file import needs_of
from nimbus.runner.cluster.start_cluster import node_spec, run_cluster_job
from nimbus.runner.monitor.dashboard import loading
from nimbus.runner.monitor.status import read_status
from nimbus.runner.system.output import write_error


def refuse_flags(flags: Mapping[str, object]) -> None:
    """Refuse flags that have no meaning on a cluster.

    Args:
        flags: Value of each flag by name; false values count as not given.

    Raises:
        InputError: One of the flags is given.
    """
    for name, value in flags.items():
        if value:
            raise InputError(
                "has no effect on a cluster", where=name, instead=f"leave {name} out, or --cluster and --job"
            )


def run_on_cluster(
    spec: CellSpec,
    address: ClusterAddress,
    *,
    bounds: NodeBounds | None = None,
    gpus: str | None = None,
    price_per_hour: float | None = None,
) -> int:
    """Run a spec on the nodes of a cluster, show the stored episodes, and return the exit code.

    Args:
        spec: Specification of the run, with the folder of the dataset.
        address: Address of the cluster.
        bounds: Bounds on the number of nodes; all available ones by default.
        gpus: Value of ``--gpus``, which each node applies to its own GPUs.
        price_per_hour: Price of a node hour.

    Raises:
        InputError: An input of the spec is invalid.
        KeyboardInterrupt: The run was stopped.
    """
    folder = Path(spec.folder)
    check_writable(folder)
    spec = node_spec(spec, address)
    with loading():
        task = describe_task(Path(spec.task).stem or "task", spec, needs=needs_of(spec))
    prices = {"": price_per_hour} if price_per_hour else {}
    job = ClusterJob(folder=spec.folder, tasks=(task,), price_per_hour=prices, bounds=bounds, gpus=gpus)
    end = run_cluster_job(job, address, spec.resources)
    return conclude(end, folder, price=price_per_hour)


def conclude(end: HeadEnd, folder: Path, *, price: float | None = None) -> int:
    """Show the result of a cluster run; return its exit code.

    Args:
        end: Result of the run.
        folder: Folder of the dataset.
        price: Price of a node hour.

    Raises:
        KeyboardInterrupt: The run was interrupted.
    """
    if end.state == "failed":
        write_error(single_line(end.line or "the cluster failed") + "\n")
        return SHORT if (folder / "dataset.json").exists() else InputError.exit_code
    if (folder / "dataset.json").exists():
        show(folder, price=price, quiet=end.state == "interrupted")
    if end.state == "interrupted":
        raise KeyboardInterrupt
    if end.state == "short" and (status := read_status(folder)):
        stored = status.already_stored + status.stored
        write_error(f"incomplete: {stored} of {status.target} episodes stored; the reasons are in the table\n")
    return 0 if end.state == "done" else SHORT
