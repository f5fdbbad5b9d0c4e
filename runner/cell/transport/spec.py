"""Specification of a run: plain values that a launcher on this machine or a cluster's scheduler passes on."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nimbus.datagen.episode.credits import AssetCredit
from nimbus.datagen.episode.meaning import TaskMeaning

MOST_WORKERS = 64
"""Largest number of workers of a cell."""


_FEWEST_SLOTS = 16


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Resources that a cell may use."""

    workers: tuple[int, int] | None = None
    """Initial planners and renderers; derived from the number of cores when None."""
    fixed_roles: bool = False
    """True when workers keep the role they start with."""
    fused: bool | None = None
    """True when each worker takes an episode through all stages; None: the choice of the pipeline."""
    moves_instances: bool = False
    """True when planners make room for renderer instances, and back, where that ends the run sooner."""
    slots: int = 0
    """Number of plans that can be in shared memory, including those being made and rendered; 0 for
    :attr:`slot_count`."""
    slot_bytes: int = 2 << 20
    spill: int = 64
    """Number of further plans that can wait in files when no slot is free."""
    memory_limit: int = 0
    """Memory above which a worker is replaced after its orders [bytes]; 0 for a share of the machine's memory."""
    grace: float = 30.0
    """Longest time for work in progress to finish after a request to stop [s]."""
    spool_bytes: int = 0
    """Largest size of the files that wait to be sent to a store [bytes]; 0 when the folder is the dataset."""
    disk_patience: float = 60.0
    """Longest wait for space on a full disk [s]."""
    exec_workers: bool = False
    """True when each worker loads the job itself, for example because a process cannot be forked."""
    deadlines: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Limits by phase: time since the last heartbeat and time in the phase [s]; they replace the table's and are not
    learned."""

    def slot_count(self, worker_count: int) -> int:
        """Return the number of slots: each worker holds one, and as many plans can wait.

        Args:
            worker_count: Number of workers of the cell.
        """
        return self.slots or max(_FEWEST_SLOTS, 2 * worker_count + 2)


INSTANCE_BYTES = 8 << 30
"""Free memory of a GPU that an instance is assumed to need for Kit, a stage and images [bytes]; not measured."""


@dataclass(frozen=True, kw_only=True)
class Instances:
    """Installation of Isaac Sim from which the renderer instances of a cell are started."""

    executable: str = ""
    """Path of its Python; empty when the cell uses none."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables set by its start script."""
    libraries: tuple[str, ...] = ()
    """Folders appended to its Python path for packages that it lacks."""
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs as reported by the driver; instances take them in turn."""
    gpu_numbers: tuple[int, ...] = ()
    """Numbers of these GPUs in bus order."""
    gpu_free_bytes: tuple[int, ...] = ()
    """Free memory of these GPUs at the start of the run."""
    folder: str = ""
    """Folder of the instances' settings, caches and logs."""

    @property
    def fitting(self) -> tuple[int, ...]:
        """Numbers of the instances that fit into free memory; instance n runs on GPU n modulo the number of GPUs."""
        count = len(self.gpus)
        most = [max(1, free // INSTANCE_BYTES) for free in self.gpu_free_bytes]
        return tuple(number for number in range(MOST_WORKERS) if count and number // count < most[number % count])


@dataclass(frozen=True, kw_only=True)
class CudaDevices:
    """GPUs that the workers of a run are spread over; none for a run on the CPU."""

    uuids: tuple[str, ...] = ()
    worker_counts: tuple[int, ...] = ()
    """Largest number of workers of each, by its free memory."""


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """One run: pipeline, task, episodes and destination."""

    folder: str
    task: str = ""
    """Name or path of a task file; a custom pipeline may need none."""
    robot: str = ""
    """Name or path of a robot that replaces the task's own; empty for none."""
    collection: str = ""
    """Name of the task folder that the task belongs to; the dataset of a folder has several tasks."""
    pipeline: str = ""
    """Name or path of a pipeline file; empty for the task's own."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Values passed to components by parameter name, in addition to those of the run."""
    choices: dict[str, str] = field(default_factory=dict)
    """Other command-line choices that decide the content, by name."""
    ancestors: dict[str, str] = field(default_factory=dict)
    """Ancestors of its episodes, for their provenance."""
    skills: tuple[str, ...] = ()
    """Folders with custom skills and components."""
    seed: int = 0
    split: str = "run"
    """Set of seeds to draw episodes from: ``run``, or that of policy evaluations."""
    episodes: int = 10
    indices: tuple[int, ...] = ()
    """Indices of the episodes, in order; the first ``episodes`` when empty."""
    part: tuple[int, int] = (1, 1)
    """Number of this part, from 1, and number of parts: part k of n makes every n-th of the first ``episodes``, from
    the k-th."""
    feed: str = ""
    """Path of a file with the requested indices, which is replaced while the cell runs; used in place of ``episodes``,
    ``indices`` and ``part``."""
    variants: int = 1
    simulator: str = "newton"
    physics: str = "newton"
    """Registered name of the simulator that executes plans; with ``isaacsim``, planners are instances too."""
    planner: str = "ompl"
    device: str = "cpu"
    gpus: CudaDevices = field(default_factory=CudaDevices)
    stack: int | None = None
    resources: Resources = field(default_factory=Resources)
    instances: Instances = field(default_factory=Instances)

    @property
    def target(self) -> int:
        """Number of requested episodes, variants included; 0 where a feed has the indices."""
        if self.feed:
            return 0
        number, parts = self.part
        return (len(self.indices) or len(range(number - 1, self.episodes, parts))) * self.variants

    @property
    def unit(self) -> str:
        """Word for one requested episode in output: ``layout`` where indices are given, otherwise ``episode``."""
        return "layout" if self.indices else "episode"

    @property
    def used_gpus(self) -> tuple[str, ...]:
        """UUIDs of the GPUs on which workers or instances run."""
        return tuple(dict.fromkeys((*self.gpus.uuids, *self.instances.gpus)))

    @property
    def worker_environment(self) -> dict[str, str]:
        """Environment variables by which the processes of this run can be found after a crash."""
        return {"NIMBUS_CELL": os.path.realpath(self.folder)}

    def absolute(self) -> CellSpec:
        """Return the same run with absolute paths, for a process that starts in another folder."""
        from nimbus.datagen.files.scene_files import resolve_from

        here = Path.cwd()
        return replace(
            self,
            folder=str(here / self.folder),
            task=resolve_from(here, self.task),
            robot=resolve_from(here, self.robot),
            pipeline=resolve_from(here, self.pipeline),
            skills=tuple(str(here / folder) for folder in self.skills),
            feed=self.feed and str(here / self.feed),
        )

    def to_text(self) -> str:
        """Encode as JSON."""
        from nimbus.datagen.files.codec import to_json

        return to_json(self)

    @classmethod
    def from_text(cls, text: str) -> CellSpec:
        """Decode from JSON; raises ``ValueError`` for invalid text."""
        from nimbus.datagen.files.codec import from_json

        return from_json(cls, text)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Origin of a dataset's content; a dataset has exactly one."""

    task: str
    task_hash: str
    seed: int
    robot: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    """Further inputs that decide the content: assets, code, settings and versions by name."""
    collection: str = ""
    """Name of the task folder that the task belongs to; empty in a dataset of one task."""
    task_text: str = ""
    credits: dict[str, AssetCredit] = field(default_factory=dict)
    """Sources and licenses of imported objects that the episodes may show, by ``library/kind``."""
    meaning: TaskMeaning | None = None
    reach: dict[str, Any] = field(default_factory=dict)
    """Reach map of each region: ``origin`` and ``size`` [m], ``cell`` [m], and ``reached``, one text for each row of
    cells along x, with 1 for reachable cells."""
