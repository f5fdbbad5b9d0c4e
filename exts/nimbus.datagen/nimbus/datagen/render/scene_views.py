"""Render stage of navigation: views of a scene along a path, with labels and baked light."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.observation import Labels, Observation
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.navigate.navigation_scene import NavigationScene, SceneThing
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.progress import tick
from nimbus.datagen.render.camera_model.sensor import shown_poses
from nimbus.datagen.render.labels import BACKGROUND
from nimbus.datagen.render.render_inputs import RenderInputs, RenderPart
from nimbus.datagen.render.scene_light import UNLIT, bake_scene, light_scene
from nimbus.datagen.render.stacked import StackedRenderer
from nimbus.datagen.stages import Planned, Rendered, Renderer
from nimbus.datagen.tasks.navigation_assets import NavigationAssets

_MOST = 253
"""Largest number of things with a separate index; 8-bit masks also encode the background and ``other``."""
OTHER = "other"
"""Instance of all things without a separate index."""


class SceneViewSettings(StrictModel):
    """Settings of :class:`SceneViewRenderer`."""

    baked: bool = True


class SceneViewRenderer(Renderer["NavigationAssets"]):
    """Renderer of the views of a body along its path.

    Args:
        stack: Number of steps rendered together; it is chosen for the device when it is not given.
        device: ``cpu`` or ``cuda``.
        baked: Bake the light of lamps; when False, a single sun lights the scene.
        render_failures: Also render failed attempts.
    """

    version: ClassVar[int] = 3

    @classmethod
    def create(cls, context: RunContext, settings: SceneViewSettings) -> Self:
        """Create the renderer of a run."""
        shown = context.render_failures or context.keep_failures
        return cls(stack=context.stack, device=context.device, baked=settings.baked, render_failures=shown)

    def __init__(
        self, *, stack: int | None = None, device: str = "cpu", baked: bool = True, render_failures: bool = False
    ) -> None:
        # No shadows are cast while rendering: only the camera moves, and baked light contains the shadows.
        self._renderer = StackedRenderer(stack=stack, device=device, shadows=False)
        self._baked, self._render_failures = baked, render_failures
        self._loaded: Layout | None = None

    def process(self, item: Planned[NavigationAssets]) -> Iterator[Rendered[NavigationAssets]]:
        """Yield one result for each layout; a failed attempt has no observations, unless they are requested."""
        success = item.trajectory.outcome.success
        for layout in item.layouts:
            is_shown = bool(layout.visual.cameras) and (success or self._render_failures)
            scene = item.scene.assets.scene
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=self._load(scene, layout, item.trajectory) if is_shown else None,
                observations=self._observe(scene, layout, item.trajectory) if is_shown else iter(()),
                attempt=item.attempt,
                final=item.final,
            )

    def _observe(self, scene: NavigationScene, layout: Layout, trajectory: Trajectory) -> Iterator[Observation]:
        motion = trajectory.body_positions, trajectory.body_wxyz
        positions, wxyz = shown_poses(*motion, rate=trajectory.rate, latency=layout.visual.latency)
        start = 0
        while start < trajectory.step_count:
            self._load(scene, layout, trajectory)
            steps, later = (slice(start + ahead, start + ahead + self._renderer.stack) for ahead in (0, 1))
            following = positions[later], wxyz[later]
            cameras = self._renderer.render(
                trajectory.body_names, positions[steps], wxyz[steps], first_step=start, following=following
            )
            yield Observation(start=start, cameras=cameras)
            start += len(positions[steps])

    def _load(self, scene: NavigationScene, layout: Layout, trajectory: Trajectory) -> Labels:
        if self._loaded is not layout:
            tick("render")
            self._renderer.load_inputs(scene_inputs(scene, layout, trajectory, baked=self._baked))
            self._loaded = layout
        return self._renderer.labels


class SceneViews(StackedRenderer):
    """Renderer of the states of navigation episodes, for checks of stored images.

    Args:
        device: ``cpu`` or ``cuda``.
    """

    def __init__(self, *, device: str = "cpu") -> None:
        super().__init__(stack=1, device=device, shadows=False)

    def load_episode(self, assets: NavigationAssets, layout: Layout, trajectory: Trajectory) -> None:
        """Prepare an episode."""
        self.load_inputs(scene_inputs(assets.scene, layout, trajectory))


register_component("render", "views", SceneViewRenderer, SceneViewSettings)


def scene_inputs(scene: NavigationScene, layout: Layout, trajectory: Trajectory, *, baked: bool = True) -> RenderInputs:
    """Return the parts, labels and light of one episode in a scene."""
    things = _named_things(scene, trajectory)
    parts = render_parts(scene)
    light, visual = None, layout.visual
    if scene.is_lit:
        visual = replace(visual, light=UNLIT)
    elif baked:
        parts, basis = bake_scene(scene, parts)
        light = light_scene(basis, parts, layout.visual)
    known = {thing.name for thing in things}
    if len(known) < len(scene.things):
        parts = _with_others(parts, tuple(sorted(known)))
    labels = scene_labels(scene, things)
    return RenderInputs(parts=parts, labels=labels, visual=visual, baked=light)


@lru_cache(maxsize=2)
def render_parts(scene: NavigationScene) -> tuple[RenderPart, ...]:
    """Return the parts of a scene for the rasterizer; vertex colors become a palette texture."""
    found = []
    for part in scene.parts:
        triangles, image = part.triangles, part.image
        if image is None:
            triangles, image = triangles.with_palette()
        found.append(RenderPart(instance=part.name, body="", triangles=triangles, image=image, is_furnishing=True))
    return tuple(found)


@lru_cache(maxsize=2)
def _with_others(parts: tuple[RenderPart, ...], known: tuple[str, ...]) -> tuple[RenderPart, ...]:
    named = frozenset(known)
    return tuple(part if part.instance in named else replace(part, instance=OTHER) for part in parts)


def _named_things(scene: NavigationScene, trajectory: Trajectory) -> list[SceneThing]:
    """Return the things with a separate index, in the scene's order: all, or those nearest to the path."""
    if len(scene.things) <= _MOST:
        return list(scene.things)
    # Every fifth row is enough to rank things by distance.
    path = trajectory.body_positions[::5, 0]
    boxes = np.array([thing.bounds for thing in scene.things])
    nearest = np.clip(path[:, None], boxes[None, :, 0], boxes[None, :, 1])
    distance = np.linalg.norm(nearest - path[:, None], axis=-1).min(axis=0)
    chosen = np.sort(np.argsort(distance, kind="stable")[:_MOST])
    return [scene.things[place] for place in chosen]


def scene_labels(scene: NavigationScene, things: Sequence[SceneThing]) -> Labels:
    """Return the names of the indices in masks; boxes are in the world frame, because everything is static."""
    others = (OTHER,) if len(things) < len(scene.things) else ()
    classes = scene.classes or tuple(sorted({thing.object_class for thing in scene.things}))
    semantics = list(dict.fromkeys([BACKGROUND, OTHER, *classes]))[:255]
    names = (BACKGROUND, *(thing.name for thing in things), *others)
    kinds = [BACKGROUND, *(thing.object_class for thing in things), *others]
    index = {name: place for place, name in enumerate(semantics)}
    none = np.full((2, 3), np.nan)
    boxes = [none, *(thing.bounds for thing in things), *(none for _ in others)]
    return Labels(
        instance_names=names,
        instance_bodies=("",) * len(names),
        instance_semantics=np.array([index.get(kind, index[OTHER]) for kind in kinds], dtype=np.uint8),
        semantic_names=tuple(semantics),
        boxes_3d=np.stack(boxes),
    )
