"""Job file: several tasks with their counts, priorities, and needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.quantities import Quantity
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.files.strict_yaml import Document, FileName, StrictModel, read
from nimbus.datagen.tasks.task import check_form
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cluster.job import NodeNeeds

RESERVED = ("nodes", "nodes.json", "nodes.json.tmp", "status.json", "status.json.tmp")
"""Reserved names in the folder of a job."""
ByteCount = Annotated[float, Quantity("a size", "'8 GB'", (("B", 1.0), ("MB", 1e6), ("GB", 1e9))), Field(ge=0)]


class NeedsEntry(StrictModel):
    """Free resources that a node must have to work on a task."""

    simulator: Literal["", "newton", "isaacsim"] = ""
    """Simulator of the task; empty for the value of ``--sim``."""
    engine: Literal["", "ompl", "curobo"] = ""
    """Motion planner of the task; empty for the value of ``--planner``."""
    gpu: Literal["", "cuda", "rt"] = ""
    """``cuda`` for any GPU, ``rt`` for one with ray-tracing cores."""
    gpu_memory: ByteCount = 0.0
    """Free memory of one GPU [bytes]."""
    memory: ByteCount = 0.0
    """Available memory [bytes]."""


class JobEntry(StrictModel):
    """Task of a job, as written in the job file."""

    task: Annotated[str, Field(min_length=1)]
    """Name of a task, or path of its file relative to the job file."""
    episodes: Annotated[int, Field(ge=1, le=10**7)]
    name: FileName | None = None
    """Name of its dataset; by default the name of the task."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Priority; tasks with a higher number come first."""
    needs: NeedsEntry = NeedsEntry()


class JobFile(StrictModel):
    """Content of a job file."""

    tasks: Annotated[tuple[JobEntry, ...], Field(min_length=1, max_length=1000)]


@dataclass(frozen=True, kw_only=True)
class JobItem:
    """Task of a job, prepared for the run."""

    name: str
    """Name of its dataset, and of the folder of the dataset."""
    spec: CellSpec
    priority: int
    needs: NodeNeeds


def is_job(text: str) -> bool:
    """Return True if a command-line argument is a job file rather than a task."""
    path = Path(text)
    if path.suffix != ".yaml" or not path.is_file():
        return False
    data = read(path).data
    return isinstance(data, dict) and "tasks" in data


def load_job(path: Path, spec: CellSpec) -> list[JobItem]:
    """Read a job file.

    Args:
        path: Path of the file.
        spec: Settings common to all tasks.

    Raises:
        InputError: The file is missing or is not a job, names an unknown task, or gives two datasets the same name.
    """
    document = read(path)
    entries = document.validate(JobFile).tasks
    names = [entry.name or Path(entry.task).stem for entry in entries]
    for number, (entry, name) in enumerate(zip(entries, names, strict=True)):
        if name in RESERVED or Counter(name.lower() for name in names)[name.lower()] > 1:
            what = (
                f"'{name}' is the name of the run's own files"
                if name in RESERVED
                else f"two tasks have the name '{name}'"
            )
            raise document.error(("tasks", number), what, instead="give each task its own 'name:'")
        _check_task(document, number, _task(entry, path))
    return [_item(entry, name, path, spec) for entry, name in zip(entries, names, strict=True)]


def _check_task(document: Document, number: int, task: str) -> None:
    try:
        check_form(task)
    except InputError as error:
        found = error.diagnostic
        what = f"{found.where}: {found.what}" if found.where else found.what
        raise document.error(("tasks", number, "task"), what, instead=found.instead) from None


def _task(entry: JobEntry, path: Path) -> str:
    """Return the name of a shipped task, or an absolute path that begins at the job file."""
    return resolve_from(path.parent.absolute(), entry.task)


def _item(entry: JobEntry, name: str, path: Path, spec: CellSpec) -> JobItem:
    needs = entry.needs
    simulator, engine = needs.simulator or spec.simulator, needs.engine or spec.planner
    own = replace(
        spec,
        folder=name,
        task=_task(entry, path),
        episodes=entry.episodes,
        seed=spec.seed if entry.seed is None else entry.seed,
        simulator=simulator,
        planner=engine,
        resources=replace(spec.resources, fixed_roles=spec.resources.fixed_roles or simulator == "isaacsim"),
    )
    wanted = needs_of(own)
    wanted = replace(
        wanted,
        cuda=wanted.cuda or needs.gpu in ("cuda", "rt"),
        rt=wanted.rt or needs.gpu == "rt",
        gpu_bytes=int(needs.gpu_memory),
        memory_bytes=int(needs.memory),
    )
    return JobItem(name=name, spec=own, priority=entry.priority, needs=wanted)


def needs_of(spec: CellSpec) -> NodeNeeds:
    """Return the resources that a node needs for a spec, given its simulator, planner and device."""
    has_isaac = spec.simulator == "isaacsim"
    has_cuda = has_isaac or spec.device == "cuda" or spec.planner == "curobo"
    return NodeNeeds(simulator=spec.simulator, engine=spec.planner, cuda=has_cuda, rt=has_isaac)
