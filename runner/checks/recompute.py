"""Recomputation of stored layouts and plans from their seeds, compared bit for bit with the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.scene_files import is_path
from nimbus.datagen.stages import Planned, Request
from nimbus.datagen.store.dataset_origin import find_difference, refuse_source_hashes
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import DatasetInfo, read_info
from nimbus.datagen.store.ledger.ledger import Attempt, Ledger
from nimbus.datagen.tasks.control_flow.recover import Retry, Try
from nimbus.datagen.tasks.control_flow.repeat import Repeat
from nimbus.datagen.tasks.steps import Step, Steps
from nimbus.datagen.tasks.task import BaseTask, Task
from nimbus.datagen.teleoperate.recording import SPLIT

if TYPE_CHECKING:
    from nimbus.datagen.episode.trajectory import Trajectory
    from nimbus.runner.cell.worker.job import Job

MOST_STEPS = 500
"""Largest number of steps of a recomputed attempt, which takes minutes of CPU time; tasks have about ten."""
_NUMBERS = ("time", "joint_positions", "joint_velocities", "actions", "body_positions", "body_wxyz")
_VALUES = ("rate", "joint_names", "action_names", "body_names", "segments", "outcome")


@dataclass(frozen=True, kw_only=True)
class Recomputation:
    """Result of recomputing stored episodes."""

    equal: tuple[str, ...] = ()
    """Episodes whose recomputed layout and plan equal the stored ones."""
    problems: tuple[str, ...] = ()
    """Differences, one line each."""
    notes: tuple[str, ...] = ()
    """Reasons why episodes cannot be recomputed on this machine, one line each; they are not faults of the dataset."""


def recompute(
    folder: Path,
    count: int,
    *,
    skills: Sequence[Path] = (),
    pipeline: Path | None = None,
    without: Iterable[str] = (),
) -> Recomputation:
    """Recompute the layouts and plans of a sample of episodes, evenly spread over a dataset.

    Args:
        folder: Folder of the dataset.
        count: Number of episodes.
        skills: Folders with custom skills.
        pipeline: Trusted pipeline file, for tasks that name a file; None to recompute no episode of such a task.
        without: Paths of damaged episode files, which are omitted.

    Raises:
        InputError: The folder has no dataset.
    """
    info = read_info(folder)
    ledger = Ledger(folder, read_only=True)
    try:
        stored = [attempt for attempt in ledger.stored() if attempt.path not in set(without)]
    finally:
        ledger.close()
    chosen = np.unique(np.linspace(0, len(stored) - 1, min(count, len(stored))).round().astype(int))
    maker = _Maker(folder, info, skills, pipeline)
    equal, problems, notes = [], [], []
    for row in chosen:
        attempt = stored[row]
        try:
            differences = list(maker.compare(attempt))
        except InputError as error:
            notes.append(f"not recomputed: {error}")
            continue
        problems += [f"{attempt.path}: recomputed from its seed, {what}" for what in differences]
        equal += [] if differences else [attempt.episode_id]
    return Recomputation(equal=tuple(equal), problems=tuple(problems), notes=tuple(dict.fromkeys(notes)))


class _Maker:
    """Recomputes episodes; their inputs are loaded once."""

    def __init__(self, folder: Path, info: DatasetInfo, skills: Sequence[Path], pipeline: Path | None) -> None:
        self._folder, self._info, self._skills, self._pipeline = folder, info, skills, pipeline
        self._jobs: dict[str, Job] = {}

    def compare(self, attempt: Attempt) -> Iterator[str]:
        """Yield the differences; raises ``InputError`` for an episode that cannot be recomputed."""
        with EpisodeFile(self._folder / attempt.path) as episode:
            layout, trajectory = episode.layout(), episode.trajectory()
            if layout.key.plan:
                raise InputError(
                    "the episode has the plan of another task",
                    where=attempt.path,
                    instead="recompute the dataset of that task",
                )
            made = self._make(self._job(episode), attempt)
            item = made[-1] if made else None
            if item is None:
                yield "the pipeline returns no result"
                return
            if to_json(asdict(item.layouts[0])) != to_json(asdict(layout)):
                yield "the layout differs"
            if isinstance(item, Planned):
                if item.attempt != attempt.attempt:
                    yield f"the last attempt is number {item.attempt + 1}, but {attempt.attempt + 1} in the ledger"
                yield from _differences(item.trajectory, trajectory)

    def _make(self, job: Job, attempt: Attempt) -> list[Any]:
        from nimbus.datagen.pipeline import build
        from nimbus.runner.cell.worker.pipeline_split import cut, run_one

        count = cut(job.pipeline)
        if not count:
            raise InputError(
                "its pipeline plans and renders in one step",
                where=attempt.path,
                instead="compare two runs with 'nimbus hash'",
            )
        head = replace(job.pipeline, components=job.pipeline.components[:count])
        with build(head, job.context) as chain:
            return list(run_one(chain.stages, Request(index=attempt.idx, variants=(attempt.variant,))))

    def _job(self, episode: EpisodeFile) -> Job:
        """Return the job of an episode with this machine's versions.

        Raises:
            InputError: The inputs differ from the episode's, or are missing.
        """
        provenance, key = episode.provenance, episode.layout().key
        address = to_json([provenance.task_text, provenance.settings, key.task, key.seed])
        if address not in self._jobs:
            self._jobs[address] = self._load(episode)
        return self._jobs[address]

    def _load(self, episode: EpisodeFile) -> Job:
        from nimbus.datagen.tasks.own_tasks import is_named
        from nimbus.datagen.tasks.stored_files import check_stored_files
        from nimbus.datagen.tasks.stored_pictures import check_pictures
        from nimbus.runner.checks.replay import stored_task
        from nimbus.runner.system.threads import prepare_libraries

        provenance, key = episode.provenance, episode.layout().key
        if not provenance.task_text:
            raise InputError(
                "the episode has no task file",
                where=str(episode.path),
                instead="recompute a dataset made by this version",
            )
        if key.split == SPLIT:
            raise InputError(
                "demonstrations come from recordings, not from seeds",
                where=str(self._folder),
                instead="nimbus certify executes their commands again",
            )
        prepare_libraries(skill_folders=self._skills)
        settings = provenance.settings
        task = stored_task(episode, draws=True, runs=True)
        trusted = str(self._pipeline) if self._pipeline and is_path(task.pipeline) else ""
        if not trusted:
            check_pipeline(task, where=str(episode.path))
        if not is_named(task):
            check_pictures(task, provenance, where=str(episode.path))
        check_stored_files(task, provenance.assets, where=str(episode.path))

        from nimbus.runner.cell.transport.spec import CellSpec
        from nimbus.runner.cell.worker.job import job_of

        spec = CellSpec(
            folder=str(self._folder),
            task=key.task,
            seed=key.seed,
            simulator=settings.get("sim", "newton"),
            planner=settings.get("planner", "ompl"),
            device=settings.get("device", "cpu"),
            pipeline=trusted,
            settings={"images": settings["images"]} if "images" in settings else {},
        )
        if isinstance(task, Task):
            check_length(task.steps, members=len(episode.layout().physical.objects), where=str(episode.path))
        job = job_of(spec, task)
        found = self._info.inputs_of(key.task)
        wanted, fine = job.origin.inputs, "the dataset is not at fault"
        refuse_source_hashes(found, wanted, where=str(self._folder), instead=f"recompute it with that version; {fine}")
        if difference := find_difference(found, wanted):
            raise InputError(f"made with another {difference}", where=str(self._folder), instead=fine)
        return job


def check_pipeline(task: BaseTask, *, where: str) -> None:
    """Refuse a stored task that names a pipeline by path: its file can name a policy, which is code, and programs.

    Raises:
        InputError: The pipeline is a file.
    """
    if is_path(task.pipeline):
        what = f"its pipeline '{PurePath(task.pipeline).name}' is a file, and such a file can start foreign programs"
        raise InputError(what, where=where, instead="give it to 'nimbus verify' as --pipeline if you trust it")


def check_length(steps: Steps, *, members: int, where: str) -> None:
    """Refuse a stored task that could run for hours; nested loops multiply their steps.

    Raises:
        InputError: The steps may exceed :data:`MOST_STEPS`.
    """
    if (count := count_steps(steps, members=members)) > MOST_STEPS:
        what = f"its loops may execute {count:,} steps; a comparison executes at most {MOST_STEPS:,}"
        raise InputError(what, where=where, instead="the dataset is not at fault")


def count_steps(steps: Steps, *, members: int, tried: int = 0) -> int:
    """Return the largest number of skills and conditions that steps can expand to.

    Args:
        steps: Steps of a task.
        members: Number of objects of the layout; no group is larger.
        tried: Number of steps that a ``retry`` among them repeats.
    """
    total = 0
    for step in steps:
        if isinstance(step, Step):
            total += 1
        elif isinstance(step, Retry):
            total += tried
        elif isinstance(step, Try):
            body = count_steps(step.body, members=members, tried=tried)
            longest = max(count_steps(one.steps, members=members, tried=body) for one in step.recoveries)
            total += body + step.count * longest
        else:
            rounds = step.count if isinstance(step, Repeat) else members if step.group else 1
            total += rounds * sum(count_steps(block, members=members, tried=tried) for block in step.blocks())
    return total


def _differences(made: Trajectory, stored: Trajectory) -> Iterator[str]:
    """Yield the fields in which two trajectories differ."""
    for name in _VALUES:
        if getattr(made, name) != getattr(stored, name):
            yield f"{name} differs"
    if stored.scene_graph is not None and made.scene_graph != stored.scene_graph:
        yield "scene_graph differs"
    arrays = {name: (getattr(made, name), getattr(stored, name)) for name in _NUMBERS}
    arrays |= {
        f"start.{name}": (getattr(made.start, name), getattr(stored.start, name))
        for name in ("joint_positions", "joint_velocities")
    }
    empty = np.zeros(0)
    if made.executed_actions is not None or stored.executed_actions is not None:
        again, before = (empty if one.executed_actions is None else one.executed_actions for one in (made, stored))
        arrays["executed_actions"] = again, before
    for group in ("contacts", "signals"):
        again, before = getattr(made, group), getattr(stored, group)
        for name in sorted({*again, *before}):
            arrays[f"{group}.{name}"] = again.get(name, empty), before.get(name, empty)
    for name, (one, other) in arrays.items():
        if one.shape != other.shape:
            yield f"{name} has the shape {one.shape}, not {other.shape}"
        elif np.ascontiguousarray(one).tobytes() != np.ascontiguousarray(other).tobytes():
            yield f"{name} differs by up to {np.abs(one - other).max():.2g}"
