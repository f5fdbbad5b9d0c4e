"""Job of a run: everything that the spec names, loaded and checked once, ready to build components from."""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.registry import lookup, names
from nimbus.datagen.stages import SceneLoader
from nimbus.runner.cell.transport.spec import CellSpec, Origin

if TYPE_CHECKING:
    from nimbus.datagen.episode.credits import AssetCredit
    from nimbus.datagen.episode.meaning import TaskMeaning
    from nimbus.datagen.pipeline import Pipeline, RunContext
    from nimbus.datagen.stages import Chain
    from nimbus.datagen.tasks.task import BaseTask


@dataclass(frozen=True, kw_only=True)
class Job:
    """Loaded spec, ready to build chains of components."""

    origin: Origin
    pipeline: Pipeline
    context: RunContext
    load_time: float
    """CPU time of loading [s]."""
    head_count: int
    """Number of components of planners; 0: each worker takes an episode through all stages."""

    @property
    def has_cameras(self) -> bool:
        """True when images may be rendered: the task has cameras, or a pipeline without a task decides itself."""
        task = self.context.task
        return task is None or bool(task.cameras)

    def chain(self, dataset: object, *, overlap: bool = False, coupled: bool = False) -> Chain:
        """Build the pipeline's components for one process.

        Args:
            dataset: Destination of the writer.
            overlap: Store the end of an episode while the next one is made.
            coupled: Run the coupled baseline: one world per launch, every attempt rendered before it is evaluated, each
                image written before the next is made.
        """
        from nimbus.datagen.pipeline import build

        context = replace(self.context, dataset=dataset, overlap=overlap)
        if coupled:
            context = replace(context, stack=1, render_failures=True, synchronous=True)
        return build(self.pipeline, context)


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Pause garbage collection: loading creates no garbage, and searching for it takes a second."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_no_collecting()
def load_job(spec: CellSpec) -> Job:
    """Load and check everything that a spec names, before its folder is created.

    Raises:
        InputError: An input is missing, invalid, or incompatible with another.
    """
    from nimbus.runner.system.threads import prepare_libraries

    folders = [Path(folder) for folder in spec.skills]
    if not spec.task:
        return _without_task(spec, folders)
    from nimbus.datagen.store.dataset import check_folder
    from nimbus.datagen.tasks.task import load_any_task

    task = load_any_task(spec.task, skill_folders=folders, robot=spec.robot)
    own = {"task": task.name, "task_hash": task.content_hash, "collection": spec.collection}
    # Before the simulator is loaded: a folder of another task is refused in a fraction of a second.
    check_folder(Path(spec.folder), seed=spec.seed, **own)
    prepare_libraries(device=spec.device)
    return job_of(spec, task)


def job_of(spec: CellSpec, task: BaseTask, *, assets: object | None = None) -> Job:
    """Load and check everything that a task names; call :func:`prepare_libraries` before.

    Args:
        spec: The run.
        task: The task.
        assets: Assets loaded by an earlier job of the same task.

    Raises:
        InputError: An input is missing, invalid, or incompatible with another.
    """
    from nimbus.datagen.pipeline import check_components, load_pipeline
    from nimbus.datagen.store.episode_file.videos import NO_IMAGES
    from nimbus.datagen.tasks.task import randomize_task

    if level := spec.choices.get("randomize"):
        task = randomize_task(task, level, only=tuple(filter(None, spec.choices.get("only", "").split(","))))
    if spec.settings.get("images") == NO_IMAGES:
        task = replace(task, cameras={})
    if not task.cameras:
        _refuse_renderer_of_nothing(spec, task)
    pipeline = load_pipeline(spec.pipeline or task.pipeline, where="" if spec.pipeline else task.where("pipeline"))
    if spec.simulator == "isaacsim":
        from nimbus.runner.cell.worker.pipeline_split import with_isaacsim

        pipeline = with_isaacsim(pipeline)
    if spec.physics == "isaacsim":
        from nimbus.datagen.load.engines import refuse_unsupported

        refuse_unsupported(task, pipeline)
    begin = time.thread_time()
    context = task_context(spec, task, pipeline, assets=assets)
    load_time = time.thread_time() - begin
    check_components(pipeline, context)
    origin = Origin(
        task=task.name,
        task_hash=task.content_hash,
        seed=spec.seed,
        robot=_robot(task, context),
        inputs=_inputs(task, pipeline, context),
        collection=spec.collection,
        task_text=task.text,
        credits=_credits(task, context),
        meaning=_meaning(task, context),
        reach=_reach(task, context),
    )
    head_count = count_head(spec, pipeline)
    return Job(origin=origin, pipeline=pipeline, context=context, load_time=load_time, head_count=head_count)


def _without_task(spec: CellSpec, folders: list[Path]) -> Job:
    """Build a job of a pipeline whose components need no task file: the spec's settings define everything.

    Simulator and renderer take seconds to load, and are loaded only when a component comes from outside the folders.
    """
    from nimbus.datagen.pipeline import RunContext, check_components, load_pipeline
    from nimbus.datagen.store import writer as writer  # registers the writer, which every pipeline may name
    from nimbus.datagen.tasks.plugins import import_folders
    from nimbus.runner.system.threads import prepare_libraries

    import_folders(folders)
    pipeline = load_pipeline(spec.pipeline)
    if any(component.name not in names(component.kind) for component in pipeline.components):
        prepare_libraries(device=spec.device)
    context = RunContext(
        seed=spec.seed,
        device=spec.device,
        stack=spec.stack,
        keep_failures=bool(spec.settings.get("keep_failures", False)),
        settings=spec.settings,
    )
    check_components(pipeline, context)
    content = to_json([pipeline.content, {name: str(value) for name, value in spec.settings.items()}])
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    origin = Origin(task=pipeline.name, task_hash=digest, seed=spec.seed)
    head_count = count_head(spec, pipeline)
    return Job(origin=origin, pipeline=pipeline, context=context, load_time=0.0, head_count=head_count)


def count_head(spec: CellSpec, pipeline: Pipeline) -> int:
    """Return the number of components of planners; 0 where each worker takes an episode through all stages.

    Pipelines that fuse their stages do so on CPUs, which planning and rendering share. A GPU renders while CPUs plan.
    """
    from nimbus.runner.cell.worker.pipeline_split import cut

    has_other_resource = spec.device != "cpu" or spec.simulator == "isaacsim" or spec.physics == "isaacsim"
    is_fused = pipeline.is_fused and not has_other_resource
    if spec.resources.fused is not None:
        is_fused = spec.resources.fused and spec.simulator != "isaacsim"
    return 0 if is_fused else cut(pipeline)


def task_context(spec: CellSpec, task: BaseTask, pipeline: Pipeline, *, assets: object | None = None) -> RunContext:
    """Return the context of a pipeline's components; the scene is loaded here unless ``assets`` is given.

    Raises:
        InputError: An input is missing, or incompatible with another.
    """
    from nimbus.datagen.doctor.examine import refuse_hopeless
    from nimbus.datagen.pipeline import RunContext
    from nimbus.datagen.randomize.objects import check_room
    from nimbus.datagen.store.episode_file.videos import NO_IMAGES, check_cameras, image_settings
    from nimbus.datagen.tasks.scene_assets import SceneAssets
    from nimbus.datagen.tasks.task import Task

    choices = {"sim": spec.simulator, "planner": spec.planner, "device": spec.device}
    choices |= {"physics": spec.physics} if spec.simulator == "isaacsim" else {}
    choices |= image_settings(spec.settings.get("images", "lossless"))
    choices |= spec.choices
    settings = {name: value for name, value in spec.settings.items() if (name, value) != ("images", NO_IMAGES)}
    if "images" in settings:
        check_cameras(task)
    if assets is None and (loader := _loader(pipeline)) is not None:
        assets = loader.open_shared(task)
        if isinstance(assets, SceneAssets) and isinstance(task, Task):
            check_room(task, assets, seed=spec.seed)
            refuse_hopeless(task, assets)
    return RunContext(
        seed=spec.seed,
        split=spec.split,
        task=task,
        device=spec.device,
        stack=spec.stack,
        planner=spec.planner,
        physics=spec.physics,
        choices=choices,
        assets=assets,
        ancestors=spec.ancestors,
        keep_failures=bool(spec.settings.get("keep_failures", False)),
        settings=settings,
    )


def _loader(pipeline: Pipeline) -> type[SceneLoader] | None:
    """Return the class of the pipeline's load component; None when that component serves further stages."""
    for component in pipeline.components:
        if component.kind == "load" and component.name in names("load"):
            made = lookup("load", component.name)
            return made if isinstance(made, type) and issubclass(made, SceneLoader) else None
    return None


def _refuse_renderer_of_nothing(spec: CellSpec, task: BaseTask) -> None:
    """Refuse Isaac Sim and videos in a run without cameras.

    Raises:
        InputError: The run asks for one of them.
    """
    from nimbus.datagen.store.episode_file.videos import NO_IMAGES

    what, instead = "there are no cameras: nothing would be rendered", "leave it out, or give the task cameras"
    if spec.simulator == "isaacsim":
        raise InputError(what, where="--sim isaacsim", instead=instead)
    if (images := str(spec.settings.get("images", NO_IMAGES))) != NO_IMAGES:
        raise InputError(what, where=f"--images {images}", instead=instead)


def _robot(task: BaseTask, context: RunContext) -> str:
    from nimbus.datagen.load.scene_loader import assets_of

    assets = assets_of(context)
    return task.robot_name if assets is None else assets.robot.name


def _credits(task: BaseTask, context: RunContext) -> dict[str, AssetCredit]:
    from nimbus.datagen.load.credits import credits_of
    from nimbus.datagen.load.scene_loader import assets_of
    from nimbus.datagen.tasks.navigation_assets import NavigationAssets
    from nimbus.datagen.tasks.task import Task

    if isinstance(context.assets, NavigationAssets):
        return dict(context.assets.scene.credits)
    assets = assets_of(context)
    return credits_of(task, assets.libraries) if assets and isinstance(task, Task) else {}


def _meaning(task: BaseTask, context: RunContext) -> TaskMeaning | None:
    from nimbus.datagen.load.meaning import meaning_of
    from nimbus.datagen.load.scene_loader import assets_of
    from nimbus.datagen.tasks.task import Task

    assets = assets_of(context)
    return meaning_of(task, assets.libraries) if assets and isinstance(task, Task) else None


def _reach(task: BaseTask, context: RunContext) -> dict[str, Any]:
    from nimbus.datagen.load.scene_loader import assets_of
    from nimbus.datagen.tasks.task import Task

    if (assets := assets_of(context)) is None or not isinstance(task, Task):
        return {}
    return {name: found.to_plain(task.regions[name].size) for name, found in assets.reach.items()}


def _inputs(task: BaseTask, pipeline: Pipeline, context: RunContext) -> dict[str, str]:
    from nimbus.datagen.load.fingerprint import fingerprint_inputs
    from nimbus.datagen.tasks.own_tasks import record_run
    from nimbus.datagen.tasks.stored_pictures import hash_pictures

    loader = _loader(pipeline)
    hashes = loader.hashes_of(task, context.assets) if loader else {}
    if loader:  # a cluster's head describes the job, and its user opens the episodes of all nodes
        record_run(task, hashes | hash_pictures(task))
    return fingerprint_inputs(task, assets=hashes, settings=context.choices, pipeline=pipeline)
