"""Default renderer as a pipeline stage."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Self

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.observation import Labels, Observation
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.render.camera_model.sensor import shown_poses
from nimbus.datagen.render.scene_renderer import SceneLight, SceneRenderer, load_scene
from nimbus.datagen.render.stacked import find_device
from nimbus.datagen.stages import Planned, Rendered, Renderer
from nimbus.datagen.tasks.scene_assets import SceneAssets, VisibleAssets


class NewtonRendererSettings(StrictModel):
    """Settings of :class:`NewtonRenderer`."""

    shadows: bool = True
    light: SceneLight = "auto"


class NewtonRenderer(Renderer["VisibleAssets"]):
    """Renders trajectories in chunks of K steps, on the writer's demand.

    Args:
        stack: K; chosen for the device by default.
        device: ``cpu`` or ``cuda``.
        shadows: Let the light cast shadows.
        light: Light on static parts: ``baked``, ``direct``, or ``auto``, which bakes it in rooms.
        render_failures: Also render failed attempts, as required by a pipeline that evaluates after rendering.
        keep_failures: Also render failed attempts, because they are kept.

    Raises:
        InputError: The device does not exist.
    """

    version: ClassVar[int] = 5

    @classmethod
    def create(cls, context: RunContext, settings: NewtonRendererSettings) -> Self:
        """Create the renderer of a run."""
        return cls(
            stack=context.stack,
            device=context.device,
            shadows=settings.shadows,
            light=settings.light,
            render_failures=context.render_failures,
            keep_failures=context.keep_failures,
        )

    @classmethod
    def preload(cls, context: RunContext) -> None:
        """Read the visible meshes of stage and robot if there are cameras, and bake the light of a room."""
        if isinstance(context.assets, SceneAssets) and context.need_task().cameras:
            load_scene(context.assets.stage, context.assets.robot)

    def __init__(
        self,
        *,
        stack: int | None = None,
        device: str = "cpu",
        shadows: bool = True,
        light: SceneLight = "auto",
        render_failures: bool = False,
        keep_failures: bool = False,
    ) -> None:
        self._render_failures, self._keep_failures = render_failures or keep_failures, keep_failures
        self._make = partial(SceneRenderer, stack=stack, device=find_device(device), shadows=shadows, light=light)
        self._renderer: SceneRenderer | None = None
        self._loaded: Layout | None = None

    def process(self, item: Planned[VisibleAssets]) -> Iterator[Rendered[VisibleAssets]]:
        """Yield one result for each layout; a failed attempt has no observations, unless they are requested.

        A layout without cameras has neither labels nor observations, and nothing is loaded for it.
        """
        failed = not item.trajectory.outcome.success
        for layout in item.layouts:
            is_labelled = bool(layout.visual.cameras) and (self._keep_failures or not failed)
            is_shown = bool(layout.visual.cameras) and (self._render_failures or not failed)
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=self._load(self._renderer_of(item), layout) if is_labelled else None,
                observations=self._observe(self._renderer_of(item), layout, item.trajectory) if is_shown else iter(()),
                attempt=item.attempt,
                final=item.final,
            )

    def _renderer_of(self, item: Planned[VisibleAssets]) -> SceneRenderer:
        """Return the renderer of the scene, created at first use."""
        if self._renderer is None:
            assets = item.scene.assets
            self._renderer = self._make(assets.stage, assets.robot, libraries=tuple(assets.libraries))
        return self._renderer

    def _observe(self, renderer: SceneRenderer, layout: Layout, trajectory: Trajectory) -> Iterator[Observation]:
        """Render the steps of a trajectory, one chunk at a time on demand."""
        start = 0
        motion = trajectory.body_positions, trajectory.body_wxyz
        positions, wxyz = shown_poses(*motion, rate=trajectory.rate, latency=layout.visual.latency)
        while start < trajectory.step_count:
            # The layout is loaded again if another one was rendered meanwhile: observations are rendered only when the
            # writer asks for them.
            self._load(renderer, layout)
            steps, later = (slice(start + ahead, start + ahead + renderer.stack) for ahead in (0, 1))
            following = positions[later], wxyz[later]
            cameras = renderer.render(
                trajectory.body_names, positions[steps], wxyz[steps], first_step=start, following=following
            )
            yield Observation(start=start, cameras=cameras)
            start += len(positions[steps])

    def _load(self, renderer: SceneRenderer, layout: Layout) -> Labels:
        """Load a layout, unless it is already loaded."""
        if self._loaded is not layout:
            renderer.load(layout)
            self._loaded = layout
        return renderer.labels


register_component("render", "newton", NewtonRenderer, NewtonRendererSettings)
