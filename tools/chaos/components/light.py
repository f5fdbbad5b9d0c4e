"""A pipeline that takes a few milliseconds per episode, has a component for each stage, and fails as configured.

Its results depend only on seed, index and variant. One episode in ten has no plan, and one in five needs two attempts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from nimbus.datagen.episode.layout import Camera, EpisodeKey, Layout, Light, PhysicalLayout, VisualLayout
from nimbus.datagen.episode.observation import CameraFrames, Labels, Observation
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome, Reason, StartState, Trajectory
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.random_streams import generator
from nimbus.datagen.stages import (
    Planned,
    Planner,
    Randomized,
    Randomizer,
    Rendered,
    Renderer,
    Request,
    Scene,
    SceneLoader,
    Stored,
)
from nimbus.datagen.store.episode_sink import shelf_of
from nimbus.datagen.store.writer import Hdf5Writer
from tools.chaos.trouble import strike

STEPS, CHUNK, SIZE = 16, 8, 8
TASK = "walk"
PROVENANCE = Provenance(task_text="", task_hash=TASK)


def work(seconds: float) -> None:
    """Keep a core busy for a CPU time [s]."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class LightPlannerSettings(StrictModel):
    """Settings of :class:`LightPlanner`."""

    plan_seconds: float = 0.0
    fails: bool = True


class LightRendererSettings(StrictModel):
    """Settings of :class:`LightRenderer`."""

    render_seconds: float = 0.0


class LightLoader(SceneLoader):
    """Loads nothing."""

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        return cls()

    def process(self, item: Request) -> Iterator[Scene]:
        strike("load", item.index)
        yield Scene(request=item, assets=None, provenance=PROVENANCE)


class LightRandomizer(Randomizer):
    """Draws a goal, and a color for each variant."""

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        return cls(context.seed)

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def process(self, item: Scene) -> Iterator[Randomized]:
        index = item.request.index
        goal = generator(self._seed, index, "goal").uniform(-1, 1, 3)
        yield Randomized(scene=item, layouts=tuple(self._layout(index, v, goal) for v in item.request.variants))

    def _layout(self, index: int, variant: int, goal: np.ndarray) -> Layout:
        tint = generator(self._seed, index, variant, "tint").uniform(0, 1, 3)
        light = Light(direction=(0, 0, -1), color=tuple(tint.tolist()), sky=(0, 0, 0), ground=(0, 0, 0))
        camera = Camera(
            name="top", mount="", position=(0, 0, 1), wxyz=(1, 0, 0, 0), vertical_fov=1.0, width=SIZE, height=SIZE
        )
        return Layout(
            key=EpisodeKey(task=TASK, task_hash=TASK, seed=self._seed, index=index, variant=variant),
            physical=PhysicalLayout(objects=(), drawn={"goal": goal.tolist()}),
            visual=VisualLayout(light=light, cameras=(camera,)),
        )


class LightPlanner(Planner):
    """Walks to the goal.

    Args:
        plan_seconds: CPU time per attempt [s].
        fails: True if some attempts fail.
    """

    @classmethod
    def create(cls, context: RunContext, settings: LightPlannerSettings) -> Self:
        return cls(settings.plan_seconds, settings.fails)

    def __init__(self, plan_seconds: float = 0.0, fails: bool = True) -> None:
        self._seconds, self._fails = plan_seconds, fails

    def process(self, item: Randomized) -> Iterator[Planned]:
        key = item.layouts[0].key
        strike("plan", key.index)
        for attempt, outcome in enumerate(outcomes(key.index) if self._fails else (Outcome(success=True),)):
            work(self._seconds / 2)
            strike("plan_late", key.index)
            work(self._seconds / 2)
            trajectory = walk(generator(key.seed, key.index, attempt), item.layouts[0].physical.drawn["goal"], outcome)
            final = outcome.success or attempt == 1
            yield Planned(scene=item.scene, layouts=item.layouts, trajectory=trajectory, attempt=attempt, final=final)


def outcomes(index: int) -> tuple[Outcome, ...]:
    """Return the outcomes of the attempts at an episode."""
    failed = Outcome(success=False, phase="walk", reason=Reason.NO_PATH)
    if index % 10 == 7:
        return failed, failed
    return (failed, Outcome(success=True)) if index % 5 == 3 else (Outcome(success=True),)


def walk(random: np.random.Generator, goal: Any, outcome: Outcome) -> Trajectory:
    """Return a noisy path from the origin to a goal."""
    share = np.linspace(0, 1, STEPS)[:, None]
    positions = share * np.asarray(goal) + 0.01 * random.normal(size=(STEPS, 3)) * share * (1 - share)
    return Trajectory(
        rate=10.0,
        time=np.arange(STEPS) / 10.0,
        joint_names=("x", "y", "z"),
        joint_positions=positions,
        joint_velocities=np.gradient(positions, axis=0) * 10.0,
        action_names=("x", "y", "z"),
        actions=np.roll(positions, -1, axis=0),
        body_names=("walker",),
        body_positions=positions[:, None],
        body_wxyz=np.tile([1.0, 0.0, 0.0, 0.0], (STEPS, 1, 1)),
        segments=(),
        outcome=outcome,
        start=StartState(joint_positions=positions[0], joint_velocities=np.zeros(3)),
    )


class LightRenderer(Renderer):
    """Renders noise in the color of the light.

    Args:
        render_seconds: CPU time per variant [s].
    """

    @classmethod
    def create(cls, context: RunContext, settings: LightRendererSettings) -> Self:
        return cls(settings.render_seconds)

    def __init__(self, render_seconds: float = 0.0) -> None:
        self._seconds = render_seconds

    def process(self, item: Planned) -> Iterator[Rendered]:
        shown = item.trajectory.outcome.success
        for layout in item.layouts:
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=LABELS if shown else None,
                observations=self._views(layout, item.trajectory) if shown else iter(()),
                attempt=item.attempt,
                final=item.final,
            )

    def _views(self, layout: Layout, trajectory: Trajectory) -> Iterator[Observation]:
        for start in range(0, STEPS, CHUNK):
            work(self._seconds * CHUNK / STEPS)
            if start:
                strike("render", layout.key.index)
            random = generator(layout.key.seed, layout.key.index, layout.key.variant, start)
            yield Observation(start=start, cameras={"top": frames(random, layout, trajectory, start)})


def frames(random: np.random.Generator, layout: Layout, trajectory: Trajectory, start: int) -> CameraFrames:
    """Make the camera's frames of one chunk; they encode the plan."""
    noise = random.uniform(0, 127, (CHUNK, SIZE, SIZE, 3)) * np.asarray(layout.visual.light.color)
    place = 64 * (1 + np.clip(trajectory.body_positions[start : start + CHUNK, 0], -1, 1))
    flat = (CHUNK, SIZE, SIZE)
    return CameraFrames(
        rgb=(noise + place[:, None, None]).clip(0, 255).astype(np.uint8),
        depth=np.ones(flat, np.float32),
        instance=np.zeros(flat, np.uint8),
        semantic=np.zeros(flat, np.uint8),
        normals=np.zeros((*flat, 3), np.int8),
        boxes_2d=np.full((CHUNK, 1, 4), np.nan, np.float32),
        visibility=np.full((CHUNK, 1), np.nan, np.float32),
        intrinsics=np.eye(3),
        world_T_camera=np.tile(np.eye(4), (CHUNK, 1, 1)),
    )


LABELS = Labels(
    instance_names=("background",),
    instance_bodies=("",),
    instance_semantics=np.zeros(1, np.uint8),
    semantic_names=("background",),
    boxes_3d=np.full((1, 2, 3), np.nan),
)


class LightWriterComponent:
    """Makes the writer."""

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> LightWriter:
        return LightWriter(shelf_of(context), overlap=context.overlap)


class LightWriter(Hdf5Writer):
    """The real writer, with a possible fault while the end of an episode is being written."""

    def __init__(self, dataset: Any, *, overlap: bool = False) -> None:
        super().__init__(dataset, overlap=overlap)

    def process(self, item: Rendered) -> Iterator[Stored]:
        yield from super().process(item)
        if item.trajectory.outcome.success:
            strike("store", item.layout.key.index)


register_component("load", "light", LightLoader, NoSettings)
register_component("randomize", "light", LightRandomizer, NoSettings)
register_component("plan", "light", LightPlanner, LightPlannerSettings)
register_component("render", "light", LightRenderer, LightRendererSettings)
register_component("store", "light", LightWriterComponent, NoSettings)
