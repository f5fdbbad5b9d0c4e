"""Job of a cluster: its tasks, each with a specification of its cells, a priority and needed resources."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.random_streams import episode_generator
from nimbus.runner.cell.transport.spec import CellSpec, Origin
from nimbus.runner.cluster.demand import NodeBounds
from nimbus.runner.cluster.messages import Capabilities

_MOST_CLASSES = 64
"""Largest number of cost classes of a task; episodes with still more objects are in the last class."""


@dataclass(frozen=True, kw_only=True)
class NodeNeeds:
    """Free resources that a node must have to work on a task."""

    simulator: str = "newton"
    engine: str = "ompl"
    """Motion planner."""
    cuda: bool = False
    rt: bool = False
    """A GPU with ray-tracing cores."""
    gpu_bytes: int = 0
    """Free memory of one GPU [bytes]."""
    memory_bytes: int = 0
    """Available memory [bytes]."""

    def lacking(self, node: Capabilities) -> str:
        """Return the first need that a node does not satisfy, as text; empty if it satisfies all."""
        if self.simulator not in node.simulators:
            return f"simulator {self.simulator}"
        if self.engine not in node.engines:
            return f"planner {self.engine}"
        if self.cuda and not node.cuda:
            return "CUDA"
        if self.rt and not node.rt:
            return "a GPU with ray-tracing cores"
        if self.gpu_bytes > node.gpu_bytes:
            return f"{self.gpu_bytes / 1e9:.1f} GB of free GPU memory (it has {node.gpu_bytes / 1e9:.1f})"
        if self.memory_bytes > node.memory_bytes:
            return f"{self.memory_bytes / 1e9:.1f} GB of free memory (it has {node.memory_bytes / 1e9:.1f})"
        return ""


@dataclass(frozen=True, kw_only=True)
class CountDraw:
    """Uniform draw of the number of objects in a group of a task; this number determines most of an episode's cost."""

    address: tuple[str, ...]
    """Address of its random stream."""
    low: int
    high: int
    """Largest number, inclusive."""


@dataclass(frozen=True, kw_only=True)
class JobTask:
    """Task of a job."""

    name: str
    spec: CellSpec
    """Specification of the task's cells; its folder is that of the dataset."""
    origin: Origin
    priority: int = 0
    needs: NodeNeeds = field(default_factory=NodeNeeds)
    address: str = ""
    """Address of the dataset in a store; empty for a dataset in a folder."""
    count_draws: tuple[CountDraw, ...] = ()

    @property
    def cost_class(self) -> Callable[[int], int]:
        """Function from the index of an episode to its cost class: its number of objects minus the smallest number."""
        return partial(_objects_beyond, self.spec.seed, self.spec.split, self.count_draws)

    @property
    def weights(self) -> tuple[float, ...]:
        """Relative cost of each cost class before measurements: the number of objects."""
        fewest = sum(draw.low for draw in self.count_draws)
        most = sum(draw.high for draw in self.count_draws)
        return tuple(max(1.0, fewest + beyond) for beyond in range(min(most - fewest + 1, _MOST_CLASSES)))


@dataclass(frozen=True, kw_only=True)
class ClusterJob:
    """Job of one cluster run."""

    folder: str
    """Folder of the dataset; for several tasks, the folder that contains their datasets."""
    tasks: tuple[JobTask, ...]
    price_per_hour: dict[str, float] = field(default_factory=dict)
    """Price of a node hour by price class."""
    bounds: NodeBounds | None = None
    """Bounds on the number of nodes; None for all available ones."""
    gpus: str | None = None
    """Value of ``--gpus``, which each node applies to its own GPUs; None if the flag is not given."""

    def to_text(self) -> str:
        """Encode as JSON."""
        return to_json(self)

    @property
    def digest(self) -> str:
        """Hash that is equal for equal commands; it excludes the size of the spool, which depends on the free disk."""
        specs = (replace(task.spec, resources=replace(task.spec.resources, spool_bytes=0)) for task in self.tasks)
        tasks = tuple(replace(task, spec=spec) for task, spec in zip(self.tasks, specs, strict=True))
        return hashlib.sha256(to_json(replace(self, tasks=tasks)).encode()).hexdigest()

    @classmethod
    def from_text(cls, text: str) -> ClusterJob:
        """Decode from JSON; raise ``ValueError`` for other texts."""
        return from_json(cls, text)


@dataclass(frozen=True, kw_only=True)
class HeadEnd:
    """Result of a cluster run, printed by the head as its last line."""

    state: str
    """``done``, ``short``, ``interrupted`` or ``failed``."""
    line: str = ""
    """Reason of a failure."""


def _objects_beyond(seed: int, split: str, draws: tuple[CountDraw, ...], index: int) -> int:
    beyond = sum(
        int(episode_generator(seed, split, index, *draw.address).integers(draw.low, draw.high + 1)) - draw.low
        for draw in draws
    )
    return min(beyond, _MOST_CLASSES - 1)
