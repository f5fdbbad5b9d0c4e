"""Job of a cluster: tasks with their cells, counts, priorities and needs."""

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
"""Number of cost classes of a task; larger numbers of objects share the last class."""


@dataclass(frozen=True, kw_only=True)
class NodeNeeds:
    """Free resources that a task needs on a node."""

    simulator: str = "newton"
    engine: str = "ompl"
    """Motion planner."""
    cuda: bool = False
    rt: bool = False
    """A GPU with ray-tracing cores."""
    gpu_bytes: int = 0
    memory_bytes: int = 0

    def lacking(self, node: Capabilities) -> str:
        """Return a short list of the needs that a node lacks; empty if it has all."""
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
    """Distribution of the number of objects of a group, which explains most of an episode's cost."""

    address: tuple[str, ...]
    low: int
    high: int


@dataclass(frozen=True, kw_only=True)
class JobTask:
    """Task of a job."""

    name: str
    spec: CellSpec
    """Cell of the task; its folder is the dataset's."""
    origin: Origin
    priority: int = 0
    needs: NodeNeeds = field(default_factory=NodeNeeds)
    address: str = ""
    """Address in a store that its folder represents; empty for a folder."""
    count_draws: tuple[CountDraw, ...] = ()

    @property
    def cost_class(self) -> Callable[[int], int]:
        """Return a function from an episode to its cost class: its number of objects above the smallest one."""
        return partial(_objects_beyond, self.spec.seed, self.spec.split, self.count_draws)

    @property
    def weights(self) -> tuple[float, ...]:
        """Expected ratio of the costs of the classes, by number of objects."""
        fewest = sum(draw.low for draw in self.count_draws)
        most = sum(draw.high for draw in self.count_draws)
        return tuple(max(1.0, fewest + beyond) for beyond in range(min(most - fewest + 1, _MOST_CLASSES)))


@dataclass(frozen=True, kw_only=True)
class ClusterJob:
    """Work of one cluster run."""

    folder: str
    """Folder of the dataset, or of the datasets of a job with several tasks."""
    tasks: tuple[JobTask, ...]
    price_per_hour: dict[str, float] = field(default_factory=dict)
    """Price of a node hour by price class."""
    bounds: NodeBounds | None = None
    """Bounds on the number of nodes; None for all available ones."""
    gpus: str | None = None
    """Text of ``--gpus``, by which each node chooses among its own GPUs; None by default."""

    def to_text(self) -> str:
        """Encode as JSON."""
        return to_json(self)

    @property
    def digest(self) -> str:
        """Hash that is equal for equal commands; the size of the spool, which follows the free disk, has no effect."""
        specs = (replace(task.spec, resources=replace(task.spec.resources, spool_bytes=0)) for task in self.tasks)
        tasks = tuple(replace(task, spec=spec) for task, spec in zip(self.tasks, specs, strict=True))
        return hashlib.sha256(to_json(replace(self, tasks=tasks)).encode()).hexdigest()

    @classmethod
    def from_text(cls, text: str) -> ClusterJob:
        """Decode from JSON; raise ``ValueError`` for other texts."""
        return from_json(cls, text)


@dataclass(frozen=True, kw_only=True)
class HeadEnd:
    """Last line of the head's standard output."""

    state: str
    """``done``, ``short``, ``interrupted`` or ``failed``."""
    line: str = ""


def _objects_beyond(seed: int, split: str, draws: tuple[CountDraw, ...], index: int) -> int:
    beyond = sum(
        int(episode_generator(seed, split, index, *draw.address).integers(draw.low, draw.high + 1)) - draw.low
        for draw in draws
    )
    return min(beyond, _MOST_CLASSES - 1)
