"""``nimbus rerender``: renders stored motions again, with other looks, cameras, light or instructions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nimbus.datagen.errors import InputError
from nimbus.runner.commands.options import DatasetFolder, Device, Images, Skills, Stack, whole
from nimbus.runner.commands.parser import new_path
from nimbus.runner.system.output import shown_path, write_out

if TYPE_CHECKING:
    from nimbus.datagen.episode.layout import EpisodeKey, Layout, PhysicalLayout, VisualLayout
    from nimbus.datagen.episode.trajectory import Trajectory
    from nimbus.datagen.pipeline import Component, Pipeline
    from nimbus.datagen.stages import Renderer
    from nimbus.datagen.store.dataset import Dataset
    from nimbus.datagen.store.episode_file.jobs import Images as ImageStorage
    from nimbus.datagen.store.info import DatasetInfo
    from nimbus.datagen.tasks.task import BaseTask


@dataclass(frozen=True, kw_only=True)
class ShownScene:
    """Scene of a manipulation or navigation task, with the functions that draw and render its layouts."""

    robot_name: str
    hashes: dict[str, str]
    """Content hash of each asset, by name."""
    components: tuple[tuple[str, str], ...]
    """Components that make the new layouts and images, by kind and name."""
    of_index: Callable[[int], Any]
    """Function that returns the assets of an episode by its index."""
    draw: Callable[[PhysicalLayout, EpisodeKey], VisualLayout]
    """Function that draws the visual layout of an episode."""
    instruct: Callable[[Layout, Trajectory], Layout]
    """Function that adds the instruction to a layout, given its motion."""
    renderer: Callable[[int | None, str], Renderer[Any]]
    """Function that makes the renderer for a number of stacked steps and a device."""


@dataclass(frozen=True, kw_only=True)
class RerenderSettings:
    """Settings of the renderings, from the flags of the command."""

    device: str
    stack: int | None
    variant: int | None
    images: ImageStorage


def command(
    folder: DatasetFolder,
    ids: Annotated[list[str], typer.Argument(metavar="ID", parser=str, help="ids of the episodes")],
    *,
    task_name: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="NAME",
            parser=str,
            help="take cameras, visual ranges and wording from this task (the dataset's)",
        ),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            "--pipeline",
            metavar="NAME",
            parser=str,
            help="render with the component of this pipeline, such as manipulation_blender (the task's own)",
        ),
    ] = None,
    variant: Annotated[
        int | None,
        typer.Option(
            "--variant",
            metavar="N",
            parser=whole(0, 10**6),
            help="draw the look and wording of this variant (each episode's own)",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", parser=new_path, help="folder of the new dataset")],
    images: Images = "lossless",
    device: Device = "cpu",
    stack: Stack = None,
    skills: Skills = None,
) -> int:
    """Render stored episodes into a new dataset; episodes that it already has are kept."""
    from nimbus.datagen.load.fingerprint import fingerprint_inputs
    from nimbus.datagen.store.dataset import Dataset
    from nimbus.datagen.store.dataset_origin import refuse_source_hashes
    from nimbus.datagen.store.episode_file.read import EpisodeFile
    from nimbus.datagen.store.episode_file.videos import NO_IMAGES, image_settings
    from nimbus.datagen.store.info import read_single_task_info
    from nimbus.datagen.tasks.plugins import discover_components
    from nimbus.datagen.tasks.stored_files import names_files
    from nimbus.datagen.tasks.stored_pictures import check_pictures
    from nimbus.datagen.tasks.task import load_any_task
    from nimbus.runner.checks.replay import check_assets, episode_paths, stored_task
    from nimbus.runner.media.preview import write_previews
    from nimbus.runner.monitor.output_summary import report_foreign_files
    from nimbus.runner.report import write_report
    from nimbus.runner.system.threads import prepare_libraries

    if images == NO_IMAGES:
        what = "rendering needs cameras"
        raise InputError(what, where="--images none", instead="write --images lossless, video or both")
    paths = episode_paths(folder, ids)
    if out.resolve() == folder.resolve():
        raise InputError("the folder is the source dataset", where=f"--out {out}", instead="choose another folder")
    prepare_libraries(skill_folders=skills or [], device=device)
    discover_components()
    if task_name:
        task = load_any_task(task_name, skill_folders=skills or [])
    else:
        with EpisodeFile(paths[0]) as episode:
            task = stored_task(episode, draws=True)
            check_pictures(task, episode.provenance, where=str(episode.path))
            if names_files(task):  # a foreign dataset must not name arbitrary files of this user
                check_assets(task, episode)
    assets = _shown_scene(task, pipeline, is_stored=not task_name)
    if not task.cameras:
        instead = "give a task with cameras: --task NAME"
        raise InputError("the task has no cameras: nothing would be rendered", where=task.path, instead=instead)
    source = read_single_task_info(folder)
    if assets.robot_name != source.robot:
        what = f"the episodes are of robot '{source.robot}', the task is for '{assets.robot_name}'"
        raise InputError(what, where=f"--task {task_name}", instead=f"write robot: {source.robot}")
    hashes = assets.hashes
    settings = {"device": device, "plans": plans_hash(source)} | image_settings(images)
    inputs = fingerprint_inputs(task, assets=hashes, settings=settings, components=assets.components)
    refuse_source_hashes(source.inputs, inputs, where=str(folder), instead="render it again with that version")
    with Dataset.create_or_open(
        out,
        task=task.name,
        task_hash=task.content_hash,
        seed=source.seed,
        robot=assets.robot_name,
        inputs=inputs,
        credits=source.credits,
        meaning=source.meanings.get(source.task),
    ) as dataset:
        report_foreign_files(dataset)
        rendered = RerenderSettings(device=device, stack=stack, variant=variant, images=images)
        _render(paths, dataset, task, assets, hashes, rendered)
    write_previews(out)
    write_out(f"dataset: {shown_path(out)}\nreport:  {shown_path(write_report(out))}\n")
    return 0


def _shown_scene(task: BaseTask, pipeline: str | None, *, is_stored: bool) -> ShownScene:
    """Open the scene of a task, and select the renderer.

    Args:
        task: The task.
        pipeline: Name or path of the pipeline whose renderer is used. None selects the task's own pipeline. If
            that one fuses rendering with another stage, the default pipeline for this kind of task is used.
        is_stored: True if the task comes from an episode. A pipeline file that it names is ignored, because a pipeline
            can start programs.

    Raises:
        InputError: An input is missing, or inputs do not fit together.
    """
    from nimbus.datagen.files.scene_files import is_path
    from nimbus.datagen.load.navigation_loader import NavigationLoader
    from nimbus.datagen.load.scene_loader import UsdSceneLoader, load_assets
    from nimbus.datagen.navigate.instruct.compose import instruct
    from nimbus.datagen.pipeline import load_pipeline
    from nimbus.datagen.randomize.goals import draw_views
    from nimbus.datagen.randomize.tabletop import draw_visual
    from nimbus.datagen.tasks.task import NavigationTask, manipulation_of

    is_navigation = isinstance(task, NavigationTask)
    if pipeline:
        drawn = load_pipeline(pipeline, where="--pipeline")
    else:
        usual = "nav_mesh" if is_navigation else "manipulation"
        own = usual if is_stored and is_path(task.pipeline) else task.pipeline
        drawn = load_pipeline(own, where=task.where("pipeline"))
        drawn = drawn if _renderers(drawn) else load_pipeline(usual)
    if isinstance(task, NavigationTask):
        loader = NavigationLoader(task)
        shown = ShownScene(
            robot_name=task.robot_name,
            hashes=NavigationLoader.hashes_of(task, None),
            components=(("randomize", "goals"), ("store", "hdf5")),
            of_index=loader.of_index,
            draw=lambda physical, key: draw_views(task, loader.of_index(key.index).scene, physical, key=key),
            instruct=lambda layout, trajectory: instruct(loader.of_index(layout.key.index).place, layout, trajectory),
            renderer=partial(_make_renderer, drawn, task),
        )
    else:
        made = manipulation_of(task)
        assets = load_assets(made)
        shown = ShownScene(
            robot_name=assets.robot.name,
            hashes=UsdSceneLoader.hashes_of(made, assets),
            components=(("randomize", "tabletop"), ("store", "hdf5")),
            of_index=lambda index: assets,
            draw=lambda physical, key: draw_visual(made, assets.stage, assets.robot, physical, key=key),
            instruct=lambda layout, trajectory: layout,
            renderer=partial(_make_renderer, drawn, task),
        )
    return _with_modalities(shown, drawn)


def _renderers(pipeline: Pipeline) -> tuple[Component, ...]:
    """Return the component that only renders; empty if rendering is fused with another stage."""
    return tuple(component for component in pipeline.components if component.kind == "render")


def _make_renderer(pipeline: Pipeline, task: BaseTask, stack: int | None, device: str) -> Renderer[Any]:
    from nimbus.datagen.pipeline import RunContext, build
    from nimbus.datagen.stages import Renderer

    head = replace(pipeline, components=_renderers(pipeline))
    (renderer,) = build(head, RunContext(task=task, stack=stack, device=device)).stages
    assert isinstance(renderer, Renderer)
    return renderer


def _with_modalities(shown: ShownScene, pipeline: Pipeline) -> ShownScene:
    """Restrict the modalities of cameras to those that the renderer of a pipeline provides.

    Raises:
        InputError: The pipeline has no component that only renders.
    """
    from nimbus.datagen import registry
    from nimbus.datagen.episode.layout import MODALITIES

    if not (chosen := _renderers(pipeline)):
        what = f"in pipeline '{pipeline.name}', rendering is fused with another stage"
        raise InputError(what, where=f"--pipeline {pipeline.name}", instead="name a pipeline with render: COMPONENT")
    given = getattr(registry.lookup("render", chosen[0].name), "modalities", MODALITIES)

    def draw(physical: PhysicalLayout, key: EpisodeKey) -> VisualLayout:
        visual = shown.draw(physical, key)
        cameras = (
            replace(camera, modalities=tuple(one for one in camera.modalities if one in given))
            for camera in visual.cameras
        )
        return replace(visual, cameras=tuple(cameras))

    return replace(shown, components=(*shown.components, ("render", chosen[0].name)), draw=draw)


def plans_hash(source: DatasetInfo) -> str:
    """Return one hash of all inputs of a dataset's plans."""
    text = json.dumps([source.task_hash, source.seed, source.inputs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _render(
    paths: list[Path],
    dataset: Dataset,
    task: BaseTask,
    assets: ShownScene,
    hashes: dict[str, str],
    settings: RerenderSettings,
) -> None:
    from nimbus.datagen.stages import Chain
    from nimbus.datagen.store.episode_file.videos import image_settings
    from nimbus.datagen.store.writer import Hdf5Writer

    writer = Hdf5Writer(dataset, images=settings.images)
    renderer = assets.renderer(settings.stack, settings.device)
    already = {attempt.episode_id for attempt in dataset.ledger.stored()}
    with Chain([renderer, writer]) as chain:
        planned = _planned(
            paths,
            task,
            assets,
            hashes,
            device=settings.device,
            variant=settings.variant,
            images=image_settings(settings.images),
        )
        for stored in chain.run(item for item in planned if item.label not in already):
            write_out(f"{stored.episode_id}: {stored.step_count} steps, {stored.byte_count / 1e6:.1f} MB\n")


def _planned(
    paths: list[Path],
    task: BaseTask,
    assets: ShownScene,
    hashes: dict[str, str],
    *,
    device: str,
    variant: int | None,
    images: dict[str, str],
) -> Iterator[Any]:
    """Yield stored trajectories with the layouts to render.

    A new episode has its own provenance. Its ``source`` is the id of the episode with the motion; the file of that
    episode describes the planning and execution.
    """
    from nimbus.datagen.episode.layout import Layout
    from nimbus.datagen.episode.provenance import Provenance
    from nimbus.datagen.stages import Planned, Request, Scene
    from nimbus.datagen.store.episode_file.read import EpisodeFile
    from nimbus.datagen.store.episode_file.videos import IMAGE_SETTINGS
    from nimbus.datagen.tasks.own_tasks import record_run
    from nimbus.datagen.tasks.stored_pictures import hash_pictures

    stated = hashes | hash_pictures(task)
    record_run(task, stated)
    for path in paths:
        with EpisodeFile(path) as episode:
            before, trajectory = episode.layout(), episode.trajectory()
            settings = {key: value for key, value in episode.provenance.settings.items() if key not in IMAGE_SETTINGS}
        key = replace(
            before.key,
            task=task.name,
            task_hash=task.content_hash,
            variant=before.key.variant if variant is None else variant,
        )
        if key.plan_id != before.key.plan_id:
            key = replace(key, plan=before.key.plan_id)
        layout = Layout(
            key=key,
            physical=before.physical,
            visual=assets.draw(before.physical, key),
        )
        layout = assets.instruct(layout, trajectory)
        scene = Scene(
            request=Request(index=key.index, variants=(key.variant,)),
            assets=assets.of_index(key.index),
            provenance=Provenance(
                task_text=task.text,
                task_hash=task.content_hash,
                assets=stated,
                settings=settings | {"device": device, "source": before.key.id} | images,
            ),
        )
        yield Planned(scene=scene, layouts=(layout,), trajectory=trajectory)
