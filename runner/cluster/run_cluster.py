"""Run of a spec on a cluster: describe, start, follow, show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nimbus.datagen.errors import InputError, single_line
from nimbus.datagen.machine import usable_cores
from nimbus.datagen.store.folder import check_writable
from nimbus.datagen.store.remote.working_copy import is_remote
from nimbus.runner.cell.run import SHORT, show
from nimbus.runner.cell.transport.spec import CellSpec, Instances
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.job_description import describe_task
from nimbus.runner.cluster.local_cluster import LocalCluster
from nimbus.runner.cluster.on_ray.run import check_ray, run_on_ray
from nimbus.runner.monitor.dashboard import StatusDashboard, loading
from nimbus.runner.monitor.status import read_status
from nimbus.runner.system.output import write_error


def refuse_flags(flags: Mapping[str, object]) -> None:
    """Refuse flags that mean something on one machine only.

    Raises:
        InputError: One of them is given.
    """
    for name, value in flags.items():
        if value:
            raise InputError("has no meaning on a cluster", where=name, instead=f"leave {name} or --cluster out")


def check_cluster(address: ClusterAddress) -> None:
    """Check that a cluster can be reached, before a task is loaded.

    Raises:
        InputError: It cannot, it needs a token, or an extra is missing.
    """
    if not address.is_local:
        check_ray(address)


def run_on_cluster(spec: CellSpec, address: ClusterAddress, *, price_per_hour: float | None = None) -> int:
    """Run a spec on nodes, show stored episodes, and return the exit code.

    Args:
        spec: The run; its folder is that of the dataset.
        address: Of the cluster.
        price_per_hour: Price of a node hour.

    Raises:
        InputError: Something that the spec names is wrong.
        KeyboardInterrupt: The run was stopped.
    """
    folder = Path(spec.folder)
    if address.kind == "ray" and is_remote(folder):
        what = "a dataset in a store is entered on the head of the cluster"
        instead = "give --cluster http://HOST:8265, or run this on the head with --cluster auto"
        raise InputError(what, where=f"--cluster {address}", instead=instead)
    check_writable(folder)
    share = spec.resources.spool_bytes // max(1, address.nodes)
    spec = replace(spec, instances=Instances(), resources=replace(spec.resources, spool_bytes=share))
    with loading():
        task = describe_task(Path(spec.task).stem or "task", spec)
    prices = {"": price_per_hour} if price_per_hour else {}
    job = ClusterJob(folder=spec.folder, tasks=(task,), price_per_hour=prices)
    split = spec.resources.workers
    if address.is_local:
        with StatusDashboard(folder) as dashboard:
            slots = sum(split) if split else max(1, usable_cores() // address.nodes)
            end = LocalCluster(job, nodes=address.nodes, slots=slots, watch=dashboard.look).run()
    else:
        end = run_on_ray(job, address, slots=sum(split or ()))
    return conclude(end, folder, price=price_per_hour)


def conclude(end: HeadEnd, folder: Path, *, price: float | None = None) -> int:
    """Show how a cluster run ended; return its exit code.

    Raises:
        KeyboardInterrupt: It was stopped.
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
        write_error(f"ended short: {stored} of {status.target} episodes stored; the reasons are in the table\n")
    return 0 if end.state == "done" else SHORT
