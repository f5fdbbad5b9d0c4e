"""What a cell is asked to do: plain values, which a launcher here or a scheduler of a cluster can hand over."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.episode.credits import AssetCredit
from nimbus.datagen.episode.meaning import TaskMeaning

if TYPE_CHECKING:
    from nimbus.datagen.store.dataset import Dataset

MOST_WORKERS = 64
"""That a cell can have at once."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a cell may use."""

    workers: tuple[int, int] | None = None
    """Planners and renderers to start with; from the cores when not given."""
    fixed_roles: bool = False
    """Workers keep the role they start with."""
    slots: int = 16
    """Plans that wait in shared memory."""
    slot_bytes: int = 2 << 20
    spill: int = 64
    """Plans that may wait in files beside, when no slot is free."""
    memory_limit: int = 0
    """[bytes] A worker that holds more is renewed after its orders; 0: a share of the machine's memory."""
    grace: float = 30.0
    """[s] What is under way may take this long after a request to stop."""
    disk_patience: float = 60.0
    """[s] How long a full disk is waited for."""
    exec_workers: bool = False
    """Workers load the job themselves, as where a process cannot be forked."""
    deadlines: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By phase, [s] since the last heartbeat and in the phase; replaces the table's and is not learned."""


@dataclass(frozen=True, kw_only=True)
class Instances:
    """Isaac Sim, as it was found: what its instances, which are the renderers of a cell, are started with."""

    executable: str = ""
    """Its Python; empty: the cell has none."""
    environment: dict[str, str] = field(default_factory=dict)
    """What its own start script sets."""
    libraries: tuple[str, ...] = ()
    """Folders behind all of its own, for what it has not."""
    gpus: tuple[str, ...] = ()
    """UUIDs, as the driver names them; instances take them in turn."""
    gpu_numbers: tuple[int, ...] = ()
    """Of the same, in the order of the bus."""
    gpu_free_bytes: tuple[int, ...] = ()
    """Free memory of the same, when the run began."""
    folder: str = ""
    """Of the instances' roots: settings, caches, logs."""


@dataclass(frozen=True, kw_only=True)
class CudaDevices:
    """GPUs that the workers of a run are spread over; none for a run on the CPU."""

    uuids: tuple[str, ...] = ()
    worker_counts: tuple[int, ...] = ()
    """Largest number of workers of each, by its free memory."""


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """One run: which pipeline, of which task, which episodes, into which folder."""

    folder: str
    task: str = ""
    """Name or path of a task file; a pipeline of somebody's own may need none."""
    collection: str = ""
    """Name of the folder of tasks that it comes from, whose dataset has several tasks."""
    pipeline: str = ""
    """Name or path of a pipeline file; the task's own when empty."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Given to components by parameter name, beside what the run has to offer."""
    choices: dict[str, str] = field(default_factory=dict)
    """Further choices of the command line that decide the content, by name."""
    ancestors: dict[str, str] = field(default_factory=dict)
    """Ancestors of its episodes, for their provenance."""
    skills: tuple[str, ...] = ()
    """Folders with skills and components of somebody's own."""
    seed: int = 0
    split: str = "run"
    """Set of episodes to draw from: those of runs, or those that policies are evaluated on."""
    episodes: int = 10
    indices: tuple[int, ...] = ()
    """Indices of the episodes, in order; the first ``episodes`` when empty."""
    part: tuple[int, int] = (1, 1)
    """Number of the part, from 1, and how many parts share the first ``episodes``: of n parts, k makes every n-th."""
    variants: int = 1
    simulator: str = "newton"
    planner: str = "ompl"
    device: str = "cpu"
    gpus: CudaDevices = field(default_factory=CudaDevices)
    stack: int | None = None
    resources: Resources = field(default_factory=Resources)
    instances: Instances = field(default_factory=Instances)

    @property
    def target(self) -> int:
        """Episodes asked for, variants counted."""
        number, parts = self.part
        return (len(self.indices) or len(range(number - 1, self.episodes, parts))) * self.variants

    @property
    def worker_environment(self) -> dict[str, str]:
        """What the processes of this run have in their environment, to be found by it when nothing else is left."""
        return {"NIMBUS_CELL": os.path.realpath(self.folder)}

    def to_text(self) -> str:
        """As JSON."""
        from nimbus.datagen.files.codec import to_json

        return to_json(self)

    @classmethod
    def from_text(cls, text: str) -> CellSpec:
        """From JSON; ``ValueError`` when it is none."""
        from nimbus.datagen.files.codec import from_json

        return from_json(cls, text)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a dataset is made from; one dataset has one origin."""

    task: str
    task_hash: str
    seed: int
    robot: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    """What else decides the content: assets, code, settings and versions by name."""
    collection: str = ""
    """Name of the folder of tasks that the task comes from; empty in a dataset of one task."""
    task_text: str = ""
    credits: dict[str, AssetCredit] = field(default_factory=dict)
    """Sources and licences of imported objects that the episodes may show, by ``library/kind``."""
    meaning: TaskMeaning | None = None
    reach: dict[str, Any] = field(default_factory=dict)
    """Where in its regions the robot can work, by region: ``origin`` and ``size`` [m], ``cell`` [m], and ``reached``,
    a text for each row of cells along x, 1 for those within reach."""

    def open(self, folder: Path | str) -> Dataset:
        """Make the dataset, or go on with it; raises what :meth:`Dataset.create_or_open` raises."""
        from nimbus.datagen.store.dataset import Dataset

        return Dataset.create_or_open(
            folder,
            task=self.task,
            task_hash=self.task_hash,
            seed=self.seed,
            robot=self.robot,
            inputs=self.inputs,
            collection=self.collection,
            credits=self.credits,
            meaning=self.meaning,
        )
