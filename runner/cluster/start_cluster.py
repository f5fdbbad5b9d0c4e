"""Start of a described job on its nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nimbus.datagen.machine import usable_cores
from nimbus.runner.cell.transport.spec import CellSpec, Instances, Resources
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.local_cluster import LocalCluster
from nimbus.runner.monitor.dashboard import StatusDashboard


def node_spec(spec: CellSpec, nodes: int) -> CellSpec:
    """Return the spec of a run as its nodes have it: each finds its own Isaac Sim, and has its share of the spool."""
    share = spec.resources.spool_bytes // nodes
    return replace(spec, instances=Instances(), resources=replace(spec.resources, spool_bytes=share))


def run_cluster_job(job: ClusterJob, nodes: int, resources: Resources) -> HeadEnd:
    """Run a job, with its dashboard.

    Args:
        job: The job.
        nodes: Nodes on this machine.
        resources: Of each node.
    """
    with StatusDashboard(Path(job.folder)) as dashboard:
        slots = sum(resources.workers) if resources.workers else max(1, usable_cores() // nodes)
        return LocalCluster(job, nodes=nodes, slots=slots, watch=dashboard.look).run()
