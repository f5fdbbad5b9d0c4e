"""Preview of a task before a run: its scene, layouts, one planned attempt, and camera images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.examine import look_for
from nimbus.datagen.episode.layout import Camera, EpisodeKey, Layout, PhysicalLayout, VisualLayout
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.execute.planner import run_attempt, settle
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.render.render_parts import build_scene_parts
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.ui.scene_look import PreviewMotion, SceneLook, look_parts, motion_of
from nimbus.datagen.usd.stage import read_stage

_PLANNER = "ompl"
MakeSimulation = Callable[[SceneAssets, VisualLayout], NewtonSimulation]


class Preview:
    """Preview that draws layouts, plans and renders; every call computes in the caller's thread, for the given task."""

    def __init__(self) -> None:
        self._assets: tuple[str, SceneAssets] | None = None
        self._renderers: dict[str, SceneRenderer] = {}

    def assets(self, task: Task) -> SceneAssets:
        """Return scene, robot, libraries and reach of a task; they are opened again when their settings change.

        Raises:
            InputError: An asset is missing or incompatible, or a region is out of reach.
        """
        if self._assets is None or self._assets[0] != task.text:
            self._assets = task.text, load_assets(task)
        return self._assets[1]

    def bare(self, task: Task) -> SceneLook:
        """Return the scene and the robot in its home posture, without objects, which is fast.

        Raises:
            InputError: The scene or the robot cannot be loaded.
        """
        stage = read_stage(task.scene, where=task.where("scene"))
        robot = load_robot(task.robot, where=task.where("robot"))
        simulation = NewtonSimulation(stage, robot, rate=15.0)
        simulation.load(PhysicalLayout(objects=()))
        physical = PhysicalLayout(objects=())
        visual = draw_visual(task, stage, robot, physical, key=_key(task, 0, 0))
        layout = Layout(key=_key(task, 0, 0), physical=physical, visual=replace(visual, cameras=self.cameras(task)))
        return SceneLook(parts=build_scene_parts(stage, robot), layout=layout, motion=_still(simulation))

    def cameras(self, task: Task) -> tuple[Camera, ...]:
        """Return the task's cameras before randomization."""
        robot = load_robot(task.robot, where=task.where("robot"))
        return tuple(robot.mounted(settings.camera(name)) for name, settings in task.cameras.items())

    def heights(self, task: Task) -> dict[str, float]:
        """Return the heights of the scene's surfaces [m]."""
        surfaces = read_stage(task.scene, where=task.where("scene")).surfaces
        return {name: surface.upper[2] for name, surface in surfaces.items()}

    def examine(self, task: Task) -> list[Diagnostic]:
        """Return the doctor's findings, without its estimates."""
        return look_for(Case(task, self.assets(task)))

    def layout(self, task: Task, *, seed: int, index: int, settled: bool = True) -> SceneLook:
        """Return the layout of one episode, at rest or as drawn."""
        assets = self.assets(task)
        physical = draw_physical(task, assets, seed=seed, index=index)
        simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
        simulation.load(physical)
        if settled:
            settle(simulation)
        return self._look(task, assets, physical, _still(simulation), seed=seed, index=index)

    def samples(self, task: Task, *, seed: int, count: int) -> Iterator[PhysicalLayout]:
        """Yield the physical layouts of the first episodes."""
        assets = self.assets(task)
        for index in range(count):
            yield draw_physical(task, assets, seed=seed, index=index)

    def plan(self, task: Task, *, seed: int, index: int, simulate: MakeSimulation | None = None) -> SceneLook:
        """Plan one attempt at an episode, as the first attempt of a run.

        Args:
            task: The task.
            seed: Seed of the run.
            index: The episode.
            simulate: Function that creates the simulation from assets and visual layout; by default that of a run.
        """
        assets = self.assets(task)
        physical = draw_physical(task, assets, seed=seed, index=index)
        if simulate is None:
            simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
        else:
            key = _key(task, seed, index)
            simulation = simulate(assets, draw_visual(task, assets.stage, assets.robot, physical, key=key))
        streams = partial(generator, seed, index, "attempt", 0)
        trajectory = run_attempt(task, simulation, physical, streams=streams, planner=_PLANNER)
        return self._look(task, assets, physical, motion_of(trajectory), seed=seed, index=index)

    def pictures(self, task: Task, look: SceneLook, step: int) -> dict[str, CameraFrames]:
        """Render the images of the task's cameras in one step."""
        if look.layout is None:
            return {}
        key = f"{task.scene} {task.robot}"
        if key not in self._renderers:
            stage, robot = read_stage(task.scene), load_robot(task.robot)
            self._renderers = {key: SceneRenderer(stage, robot, stack=1)}
        renderer, motion = self._renderers[key], look.motion
        renderer.load(look.layout)
        return renderer.render(motion.names, motion.positions[step : step + 1], motion.wxyz[step : step + 1])

    def _look(
        self, task: Task, assets: SceneAssets, physical: PhysicalLayout, motion: PreviewMotion, *, seed: int, index: int
    ) -> SceneLook:
        key = _key(task, seed, index)
        visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
        parts = look_parts(assets.stage, assets.robot, physical)
        return SceneLook(parts=parts, layout=Layout(key=key, physical=physical, visual=visual), motion=motion)


def _still(simulation: NewtonSimulation) -> PreviewMotion:
    return PreviewMotion(
        rate=simulation.rate,
        names=simulation.body_names,
        positions=simulation.body_positions()[None],
        wxyz=simulation.body_wxyz()[None],
    )


def _key(task: Task, seed: int, index: int) -> EpisodeKey:
    return EpisodeKey(task=task.name, task_hash=task.content_hash, seed=seed, index=index)
