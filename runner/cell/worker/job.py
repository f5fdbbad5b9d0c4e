"""What a run's components are made from: everything that the spec names, loaded and checked once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.runner.cell.transport.spec import CellSpec, Origin

if TYPE_CHECKING:
    from nimbus.datagen.pipeline import Pipeline
    from nimbus.datagen.stages import Chain
    from nimbus.datagen.tasks.task import Task


OFFERED = ("dataset", "overlap", "synchronous", "render_failures", "keep_failures")
"""What only the way of running decides: no pipeline file may set it."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A loaded spec, ready to make chains of components."""

    origin: Origin
    pipeline: Pipeline
    context: Mapping[str, Any]
    load_time: float
    """[s] CPU"""

    def chain(self, dataset: object, **further: object) -> Chain:
        """The pipeline's components, made for one process.

        Args:
            dataset: Where the writer puts what is made.
            further: More of what components may ask for, by parameter name.
        """
        from nimbus.datagen.pipeline import build

        return build(self.pipeline, **{**self.context, "dataset": dataset, **further})


def load_job(spec: CellSpec) -> Job:
    """Load and check everything that a spec names, before its folder is made.

    Raises:
        InputError: Something is missing, wrong, or does not fit together.
    """
    from nimbus.runner.system.threads import prepare_libraries

    folders = [Path(folder) for folder in spec.skills]
    if not spec.task:
        return _without_task(spec, folders)
    from nimbus.datagen.store.dataset import check_folder
    from nimbus.datagen.tasks.task import load_task

    task = load_task(spec.task, skill_folders=folders)
    check_folder(Path(spec.folder), task=task.name, task_hash=task.content_hash, seed=spec.seed)
    prepare_libraries(device=spec.device)
    return job_of(spec, task)


def job_of(spec: CellSpec, task: Task) -> Job:
    """Load and check what a task names; call :func:`prepare_libraries` before.

    Raises:
        InputError: Something is missing, wrong, or does not fit together.
    """
    from nimbus.datagen.pipeline import check_components, load_pipeline

    pipeline = load_pipeline(spec.pipeline or task.pipeline, where="" if spec.pipeline else task.where("pipeline"))
    if spec.simulator == "isaacsim":
        from nimbus.runner.cell.worker.pipeline_split import with_isaacsim

        pipeline = with_isaacsim(pipeline)
    begin = time.thread_time()
    context = task_context(spec, task, pipeline)
    load_time = time.thread_time() - begin
    check_components(pipeline, offered=(*context, *OFFERED))
    origin = Origin(
        task=task.name,
        task_hash=task.content_hash,
        seed=spec.seed,
        robot=context["robot"].name if "robot" in context else task.robot,
        inputs=_inputs(task, pipeline, context),
        task_text=task.text,
        reach=_reach(task, context),
    )
    return Job(origin=origin, pipeline=pipeline, context=context, load_time=load_time)


def _without_task(spec: CellSpec, folders: list[Path]) -> Job:
    """A pipeline whose components need no task file: the spec's settings say everything.

    Simulator and renderer are loaded only when a component is not the folders' own: they take seconds.
    """
    from nimbus.datagen.pipeline import check_components, load_pipeline
    from nimbus.datagen.registry import names
    from nimbus.datagen.store import writer as writer  # the writer is everybody's
    from nimbus.datagen.store.json_text import to_json
    from nimbus.datagen.tasks.plugins import import_folders
    from nimbus.runner.system.threads import prepare_libraries

    import_folders(folders)
    pipeline = load_pipeline(spec.pipeline)
    if any(component.name not in names(component.kind) for component in pipeline.components):
        prepare_libraries(device=spec.device)
    context = {"seed": spec.seed, "device": spec.device, "stack": spec.stack} | spec.settings
    check_components(pipeline, offered=(*context, *OFFERED))
    content = to_json([pipeline.document.data, {name: str(value) for name, value in spec.settings.items()}])
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    origin = Origin(task=pipeline.name, task_hash=digest, seed=spec.seed)
    return Job(origin=origin, pipeline=pipeline, context=context, load_time=0.0)


def task_context(spec: CellSpec, task: Task, pipeline: Pipeline) -> dict[str, Any]:
    """What components of a pipeline may ask for, by parameter name."""
    from nimbus.datagen.doctor.examine import refuse_hopeless
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.randomize.room import check_room
    from nimbus.datagen.store.episode_file.videos import check_cameras, image_settings

    context: dict[str, Any] = {
        "task": task,
        "seed": spec.seed,
        "device": spec.device,
        "stack": spec.stack,
        "planner": spec.planner,
        "run_settings": {"sim": spec.simulator, "planner": spec.planner, "device": spec.device}
        | ({"physics": "newton"} if spec.simulator == "isaacsim" else {})
        | image_settings(spec.settings.get("images", "lossless")),
    }
    if "images" in spec.settings:
        check_cameras(task)
    if any((component.kind, component.name) == ("load", "usd") for component in pipeline.components):
        assets = load_assets(task)
        check_room(task, assets, seed=spec.seed)
        refuse_hopeless(task, assets)
        context |= {"assets": assets, "stage": assets.stage, "robot": assets.robot}
    return context | spec.settings


def _reach(task: Task, context: Mapping[str, Any]) -> dict[str, Any]:
    maps = context["assets"].reach if "assets" in context else {}
    return {name: found.to_plain(task.regions[name].size) for name, found in maps.items()}


def _inputs(task: Task, pipeline: Pipeline, context: Mapping[str, Any]) -> dict[str, str]:
    from nimbus.datagen.load.fingerprint import asset_fingerprints, fingerprint_inputs

    assets = context.get("assets")
    hashes = asset_fingerprints(assets.stage, assets.robot, assets.libraries.values()) if assets else {}
    return fingerprint_inputs(task, assets=hashes, settings=context["run_settings"], pipeline=pipeline)
