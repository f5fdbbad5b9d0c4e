"""Forecast of a job on a cluster, from measured costs of episodes: runs the balance of real runs in simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.pending_work import WorkGroup
from nimbus.runner.cluster.simulated_run import FAULTY, Conditions, SimulatedRun
from nimbus.runner.cluster.simulation import Simulation

_PER_SLOT, _LEAST = 20, 2000
"""Number of episodes per slot that are simulated at the end of a job, and smallest total of them. The episodes before
them are assumed to keep all slots busy."""


@dataclass(frozen=True, kw_only=True)
class TaskCosts:
    """Task of a job, with measured costs."""

    name: str
    episodes: int
    seconds: tuple[float, ...]
    """Measured times of episodes on one slot [s]."""
    priority: int = 0

    @property
    def total_seconds(self) -> float:
        """Expected work of all episodes on one slot [s]."""
        return self.episodes * float(np.mean(self.seconds))


@dataclass(frozen=True, kw_only=True)
class ClusterForecast:
    """Forecast of a job on a number of slots."""

    slots: int
    nodes: int
    wall_seconds: float
    """Time from the start of the nodes to the last result [s]."""
    efficiency: float
    """Useful work divided by slots times time."""
    faulty_wall_seconds: float
    """Time under the faults of :data:`nimbus.runner.cluster.simulated_run.FAULTY` [s]."""
    faulty_efficiency: float
    node_hours: float
    cost: float = 0.0
    """Cost of the node hours, if a price is known."""


def forecast_cluster(
    tasks: Sequence[TaskCosts], slots: int, *, node_slots: int, startup: float, price_per_hour: float = 0.0
) -> ClusterForecast:
    """Simulate a job with and without faults.

    Args:
        tasks: Tasks of the job.
        slots: Number of slots of the cluster.
        node_slots: Slots of a node; the last node has the rest.
        startup: Time that a node needs to start, and again to load a task [s].
        price_per_hour: Price of a node hour.
    """
    nodes = [min(node_slots, slots - begin) for begin in range(0, slots, node_slots)]
    work = sum(task.total_seconds for task in tasks)
    calm, rest = _simulate(tasks, nodes, Conditions(start=startup, load=startup))
    faulty, _ = _simulate(tasks, nodes, replace(FAULTY, start=startup, load=startup))
    times = [calm.seconds + rest / slots, faulty.seconds + rest / (slots * faulty.efficiency)]
    hours = times[0] * len(nodes) / 3600
    return ClusterForecast(
        slots=slots,
        nodes=len(nodes),
        wall_seconds=times[0],
        efficiency=work / (slots * times[0]),
        faulty_wall_seconds=times[1],
        faulty_efficiency=work / (slots * times[1]),
        node_hours=hours,
        cost=hours * price_per_hour,
    )


def slot_counts(least: int, most: int) -> list[int]:
    """Return numbers of slots from the smallest to the largest, each twice the previous one."""
    counts = [least]
    while 2 * counts[-1] < most:
        counts.append(2 * counts[-1])
    return counts if counts[-1] == most else [*counts, most]


def _simulate(tasks: Sequence[TaskCosts], nodes: Sequence[int], conditions: Conditions) -> tuple[SimulatedRun, float]:
    """Simulate the last part of a job; return its result, and the work of the part before it [s on one slot]."""
    count = sum(task.episodes for task in tasks)
    share = min(1.0, max(_LEAST, _PER_SLOT * sum(nodes)) / count)
    random = np.random.Generator(np.random.Philox(key=count))
    costs: dict[str, Sequence[float]] = {}
    rest = 0.0
    for task in tasks:
        simulated = max(1, round(share * task.episodes))
        costs[task.name] = random.choice(np.array(task.seconds), simulated).tolist()
        rest += task.total_seconds * (1 - simulated / task.episodes)
    groups = [WorkGroup(name=task.name, count=len(costs[task.name]), priority=task.priority) for task in tasks]
    return Simulation(Balance(groups), costs, nodes, conditions=conditions).run(), rest
