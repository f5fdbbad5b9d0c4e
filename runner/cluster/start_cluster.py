"""Start of a job on nodes of this machine or of a Ray cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.machine import usable_cores
from nimbus.datagen.store.remote.working_copy import is_remote
from nimbus.runner.cell.transport.spec import CellSpec, Instances, Resources
from nimbus.runner.cluster.cluster_address import ClusterAddress
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.local_cluster import LocalCluster
from nimbus.runner.cluster.on_ray.run import check_ray, run_on_ray
from nimbus.runner.monitor.dashboard import StatusDashboard


def check_cluster(address: ClusterAddress) -> None:
    """Check that a cluster can be reached; called before a task is loaded, which takes longer.

    Raises:
        InputError: The cluster cannot be reached, a token is missing, or Ray is not installed.
    """
    if not address.is_local:
        check_ray(address)


def node_spec(spec: CellSpec, address: ClusterAddress) -> CellSpec:
    """Return the spec for each node: the node finds its own Isaac Sim, and gets an equal part of the spool."""
    share = spec.resources.spool_bytes // max(1, address.nodes)
    return replace(spec, instances=Instances(), resources=replace(spec.resources, spool_bytes=share))


def run_cluster_job(job: ClusterJob, address: ClusterAddress, resources: Resources) -> HeadEnd:
    """Run a job with a dashboard; return its result.

    Args:
        job: Job to run.
        address: Address of the cluster.
        resources: Resources of each node.

    Raises:
        InputError: The cluster cannot be reached, or its version, platform or current run does not fit.
    """
    split = resources.workers
    if not address.is_local:
        if address.kind == "ray" and any(is_remote(Path(task.spec.folder)) for task in job.tasks):
            what = "with a ray:// address, --out must be a folder; this --out is in a store"
            instead = "give --cluster http://HOST:8265, or run this on the head with --cluster auto"
            raise InputError(what, where=f"--cluster {address}", instead=instead)
        return run_on_ray(job, address, slots=sum(split or ()))
    with StatusDashboard(Path(job.folder)) as dashboard:
        slots = sum(split) if split else max(1, usable_cores() // address.nodes)
        return LocalCluster(job, nodes=address.nodes, slots=slots, watch=dashboard.look).run()
