"""Job of a worker inside Isaac Sim, built from a description of the loaded job; it renders and stores.

A renderer imports neither the default simulator nor the planner, and does not parse the task: their libraries may
conflict with Isaac Sim's. With ``--physics isaacsim`` an instance also plans, and therefore loads the whole job.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.stages import (
    Chain,
    Planned,
    Planner,
    Randomized,
    Randomizer,
    Request,
    Scene,
    SceneLoader,
)
from nimbus.runner.cell.transport.spec import CellSpec, Origin
from nimbus.runner.cell.worker.job import Job, load_job
from nimbus.runner.cell.worker.pipeline_split import cut, with_isaacsim
from nimbus.runner.isaac.instance import FREE

if TYPE_CHECKING:
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.robots.robot import Robot
    from nimbus.datagen.usd.stage import StageInfo


@dataclass(frozen=True, kw_only=True)
class RenderHandover:
    """Description of a job for a renderer, in plain values."""

    origin: Origin
    pipeline: str
    scene: str
    robot: str
    libraries: tuple[str, ...]
    assets: dict[str, str]
    """Content hashes by name."""
    run_settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RenderAssets:
    """Visible assets of a loaded scene."""

    stage: StageInfo
    robot: Robot
    libraries: Mapping[str, ObjectLibrary]


class RenderJob(Job):
    """A job of which only the second half runs in this process."""

    def chain(self, dataset: object, *, overlap: bool = False, coupled: bool = False) -> Chain:
        """Build the renderer's components; the earlier stages are placeholders, because other workers run them."""
        elsewhere = {"load": "handed over", "randomize": "elsewhere", "plan": "elsewhere"}
        components = tuple(
            replace(part, name=elsewhere[part.kind], settings={}) if part.kind in elsewhere else part
            for part in self.pipeline.components
        )
        job = Job(
            origin=self.origin,
            pipeline=replace(self.pipeline, components=components),
            context=self.context,
            load_time=self.load_time,
            head_count=self.head_count,
        )
        return job.chain(dataset, overlap=overlap, coupled=coupled)


def hand_over(job: Job, spec: CellSpec) -> str:
    """Describe a loaded job for instances as JSON; empty if they load it themselves."""
    from nimbus.datagen.load.scene_loader import assets_of
    from nimbus.datagen.tasks.stored_files import asset_fingerprints
    from nimbus.datagen.tasks.stored_pictures import hash_pictures

    if not spec.task or spec.physics == "isaacsim":
        return ""  # a planner needs the whole job
    assets, task = assets_of(job.context), job.context.need_task()
    if assets is None:
        raise TypeError("a job for Isaac Sim has a scene that was loaded from USD")
    here = Path.cwd()  # the instances start in another folder
    told = RenderHandover(
        origin=job.origin,
        pipeline=resolve_from(here, spec.pipeline or task.pipeline),
        scene=str(assets.stage.path),
        robot=resolve_from(here, task.robot),
        libraries=tuple(resolve_from(here, name) for name in assets.libraries),
        assets=asset_fingerprints(assets.stage, assets.robot, assets.libraries.values()) | hash_pictures(task),
        run_settings=dict(job.context.choices),
    )
    return to_json(told)


def render_job(spec: CellSpec, handover: str) -> Job:
    """Build the job of an instance in which Isaac Sim already runs.

    Raises:
        InputError: An input is missing.
    """
    free_bytes = int(os.environ.get(FREE, "0"))
    if not handover:  # the user's components and planners load the job themselves
        job = load_job(spec)
        return replace(job, context=replace(job.context, free_bytes=free_bytes))
    import nimbus.datagen.render.isaacsim.renderer
    import nimbus.datagen.store.writer  # noqa: F401 (both register themselves)
    from nimbus.datagen.objects.libraries import open_library
    from nimbus.datagen.pipeline import load_pipeline
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.usd.stage import read_stage

    told = from_json(RenderHandover, handover)
    stage, robot = read_stage(told.scene), load_robot(told.robot)
    libraries = {name: open_library(name) for name in told.libraries}
    provenance = Provenance(
        task_text=told.origin.task_text,
        task_hash=told.origin.task_hash,
        assets=told.assets,
        settings=told.run_settings,
    )
    context = RunContext(
        assets=RenderAssets(stage=stage, robot=robot, libraries=libraries),
        provenance=provenance,
        stack=spec.stack,
        free_bytes=free_bytes,
        keep_failures=bool(spec.settings.get("keep_failures", False)),
        settings=spec.settings,
    )
    pipeline = with_isaacsim(load_pipeline(told.pipeline))
    return RenderJob(origin=told.origin, pipeline=pipeline, context=context, load_time=0.0, head_count=cut(pipeline))


class HandedOver(SceneLoader[RenderAssets]):
    """Scene loader that returns the scene handed over to this process.

    Args:
        assets: Visible assets of the scene.
        provenance: Provenance of the scene.
    """

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        """Create the loader of an instance."""
        if not isinstance(context.assets, RenderAssets) or context.provenance is None:
            raise TypeError("no scene was handed over to this instance of Isaac Sim")
        return cls(context.assets, context.provenance)

    def __init__(self, assets: RenderAssets, provenance: Provenance) -> None:
        self._assets, self._provenance = assets, provenance

    def process(self, item: Request) -> Iterator[Scene[RenderAssets]]:
        """Yield one scene for one request."""
        yield Scene(request=item, assets=self._assets, provenance=self._provenance)


register_component("load", "handed over", HandedOver, NoSettings)


class RandomizedElsewhere(Randomizer):
    """Placeholder for the randomizer, which runs in other workers."""

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        """Create the placeholder."""
        return cls()

    def process(self, item: Scene) -> Iterator[Randomized]:
        """Raise an error, because only planners randomize."""
        raise _misled("randomize", item.label)


register_component("randomize", "elsewhere", RandomizedElsewhere, NoSettings)


class PlannedElsewhere(Planner):
    """Placeholder for the planner, which runs in other workers."""

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        """Create the placeholder."""
        return cls()

    def process(self, item: Randomized) -> Iterator[Planned]:
        """Raise an error, because only planners plan."""
        raise _misled("plan", item.label)


register_component("plan", "elsewhere", PlannedElsewhere, NoSettings)


def _misled(stage: str, label: str) -> RuntimeError:
    """Return the error for a bug in the scheduler: instances that render must only receive trajectories."""
    return RuntimeError(f"{label} was sent to a renderer in Isaac Sim for the stage '{stage}', which only planners run")
