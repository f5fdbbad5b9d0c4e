"""Balance of a cluster in simulated time, with measured costs of episodes; prints a table as Markdown.

``python -m benchmarks.cluster_balance`` takes a minute. The costs are those of 27 episodes of ``sort_trash``
(``episode_costs.json``: index, objects, CPU seconds), drawn with replacement; the class of an episode is its number of
objects. *Faulty* adds deaths of nodes every six hours, 3 % slow nodes, 10 % late ones, partitions and hangs;
*tail* makes 0.5 % of the episodes 20 s longer, which cannot be predicted from their drawn values.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.node_record import EPOCH_BITS, Item, NodeLease
from nimbus.runner.cluster.pending_work import WorkGroup
from nimbus.runner.cluster.simulated_run import FAULTY, Conditions, SimulatedPolicy, SimulatedRun
from nimbus.runner.cluster.simulation import Simulation

COSTS = Path(__file__).with_name("episode_costs.json")
NODE_SLOTS = 8
REPEATED, TAIL, TAIL_SECONDS = 0.03, 0.005, 20.0
"""Fraction of episodes that are made twice, fraction of long episodes, and additional duration of a long episode [s].
"""


class StaticSplit:
    """Equal parts fixed at the start, as ``--part K/N`` makes them; the balance is compared with them."""

    def __init__(self, count: int, nodes: int) -> None:
        self._count, self._nodes, self._names = count, nodes, list[str]()
        self._left = set(range(count))

    def join(self, cell: str, slots: int, now: float) -> None:
        """Give the node the next part."""
        self._names.append(cell)

    def pull(self, cell: str, idle: int, now: float, *, ahead: int = 0) -> NodeLease | None:
        """Hand out the whole part at once."""
        number = self._names.index(cell)
        part = tuple(index for index in range(number, self._count, self._nodes) if index in self._left)
        if not part or self._names.count(cell) > 1:
            return None
        self._names.append(cell)
        return NodeLease(number=1 << EPOCH_BITS, group="task", indices=part)

    def settled(self, cell: str, number: int, group: str, index: int, now: float, *, seconds: float = 0.0) -> bool:
        """Settle an episode."""
        is_new = index in self._left
        self._left.discard(index)
        return is_new

    def beat(self, cell: str, now: float, held: Iterable[Item] | None = None) -> None:
        """Do nothing."""

    def gave_back(self, cell: str, items: Iterable[Item], now: float) -> None:
        """Do nothing."""

    def leave(self, cell: str, *, is_lost: bool = False) -> None:
        """Do nothing."""

    def look(self, now: float) -> list[str]:
        """Find nothing."""
        return []

    def take_recall(self, cell: str) -> int:
        """Recall nothing."""
        return 0

    @property
    def done(self) -> bool:
        """True if all episodes are settled."""
        return not self._left


def simulate(slots: int, per_slot: int, *, seed: int, is_faulty: bool = False, is_static: bool = False) -> SimulatedRun:
    """Simulate one run."""
    rows = json.loads(COSTS.read_text())
    random = np.random.Generator(np.random.Philox(key=[seed, 7]))
    drawn = random.integers(0, len(rows), slots * per_slot)
    costs = np.array([row[2] for row in rows])[drawn]
    classes = np.array([row[1] for row in rows])[drawn] - 2
    costs = np.where(random.random(len(costs)) < REPEATED, 1.6 * costs, costs)
    if is_faulty:
        costs = costs + TAIL_SECONDS * (random.random(len(costs)) < TAIL)
    nodes = [NODE_SLOTS] * (slots // NODE_SLOTS)
    group = WorkGroup(name="task", count=len(costs), weights=(2.0, 3.0, 4.0))
    policy: SimulatedPolicy = Balance([group], cost_classes={"task": lambda index: int(classes[index])})
    if is_static:
        policy = StaticSplit(len(costs), len(nodes))
    conditions = FAULTY if is_faulty else Conditions()
    return Simulation(policy, {"task": costs.tolist()}, nodes, conditions=conditions, seed=seed).run()


def main() -> int:
    """Print the table."""
    sys.stdout.write(
        "| slots | static, calm | balance, calm | balance, faulty with tail | leases | CPU-s |\n"
        "|---|---|---|---|---|---|\n"
    )
    for slots in (8, 32, 128, 1024):
        begin = time.process_time()
        seeds = range(3 if slots < 1024 else 1)
        static = [simulate(slots, 100, seed=seed, is_static=True).efficiency for seed in seeds]
        calm = [simulate(slots, 100, seed=seed) for seed in seeds]
        faulty = [simulate(slots, 100, seed=seed, is_faulty=True) for seed in seeds]
        shares = [static, [run.efficiency for run in calm], [run.efficiency for run in faulty]]
        cells = [f"{slots}", *(f"{100 * float(np.mean(share)):.1f} %" for share in shares)]
        cells += [f"{calm[0].leases}", f"{time.process_time() - begin:.0f}"]
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
