"""Render stage of navigation through splats: colors of the splats, with depth and labels of their proxy geometry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np

from nimbus.datagen.arrays import Float32Array, FloatArray
from nimbus.datagen.episode.layout import Camera, Layout, Sensor
from nimbus.datagen.episode.observation import CameraFrames, Observation
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry import cameras
from nimbus.datagen.navigate.splat_source import PlacedSplats, SplatSource
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.progress import allow
from nimbus.datagen.render.camera_model.lens import Lens
from nimbus.datagen.render.camera_model.sensor import SensorModel, shown_poses
from nimbus.datagen.render.scene_views import (
    SceneViewRenderer,
    SceneViews,
    SceneViewSettings,
    render_parts,
)
from nimbus.datagen.render.splat_light import light_samples
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.gsplat_engine import GsplatRasterizer
from nimbus.datagen.splats.rasterizer import SplatRasterizer
from nimbus.datagen.stages import Planned, Rendered
from nimbus.datagen.tasks.navigation_assets import NavigationAssets

_SLOW = 240.0
"""Upper bound of the time to sample and light a home, or to prepare 3 million splats [s]."""


class SplatViewSettings(SceneViewSettings):
    """Settings of :class:`SplatViewRenderer`."""

    engine: Literal["warp", "gsplat"] = "warp"
    """Rasterizer of the splats; gsplat is for GPUs, and not reproducible to the bit."""


class SplatViewRenderer(SceneViewRenderer):
    """Renderer of the splats of a scene; masks, normals and boxes are those of its proxy.

    If the proxy is a mesh of the place, depth is the depth of the proxy, and the median depth of the splats where the
    proxy has none. If the proxy was made from the splats, the depth of the splats has priority, because voxels are
    coarser. Depth is 0 where neither has any.
    """

    version: ClassVar[int] = 3
    engine: Literal["warp", "gsplat"] = "warp"

    @classmethod
    def create(cls, context: RunContext, settings: SceneViewSettings) -> Self:
        """Create the renderer of a run."""
        made = super().create(context, settings)
        if isinstance(settings, SplatViewSettings):
            made.engine = settings.engine
        return made

    def process(self, item: Planned[NavigationAssets]) -> Iterator[Rendered[NavigationAssets]]:
        """Yield one result for each layout; a failed attempt has no observations, unless they are requested."""
        self.prepare(item.scene.assets)
        for rendered in super().process(item):
            shown = self._with_splats(rendered.observations, rendered.layout, item.trajectory)
            yield replace(rendered, observations=shown)

    def prepare(self, assets: NavigationAssets) -> None:
        """Select the scene whose splats are drawn; the latest one is cached.

        Raises:
            InputError: The scene has no splats.
        """
        source = assets.task.source
        if not isinstance(source, SplatSource):
            what = "the pipeline draws splats, but the task's scenes have none"
            instead = "write splats: or splat_homes:, or pipeline: nav_mesh"
            raise InputError(what, where=f"{assets.task.path}: scene", instead=instead)
        key = source.model_dump_json(), assets.number
        if getattr(self, "_key", None) != key:
            with allow(_SLOW):
                placed = source.placed(assets.number)
                cloud = _lit(placed)
                self._has_mesh = placed.has_mesh
                self._drawn = self._make_rasterizer(cloud, placed.world_T_cloud)
            self._key = key

    def _make_rasterizer(self, cloud: SplatCloud, world_T_cloud: FloatArray) -> SplatRasterizer | GsplatRasterizer:
        device = self._renderer.device
        if self.engine == "gsplat":
            return GsplatRasterizer(cloud, world_T_cloud=world_T_cloud, device=device.alias)
        return SplatRasterizer(cloud, world_T_cloud=world_T_cloud, device=device)

    def paint(
        self,
        frames: Mapping[str, CameraFrames],
        layout: Layout,
        names: Sequence[str],
        positions: FloatArray,
        wxyz: FloatArray,
        *,
        first_step: int,
    ) -> dict[str, CameraFrames]:
        """Replace the colors and depths of views of the proxy by those of the splats.

        Args:
            frames: Views of K steps by camera.
            layout: The cameras.
            names: B bodies.
            positions: (K, B, 3) [m]
            wxyz: (K, B, 4)
            first_step: Number of the first step, for the noise of the sensors.
        """
        rows = cameras.BodyRows(names)
        shown = {}
        for camera in layout.visual.cameras:
            proxy = frames[camera.name]
            places, turns = cameras.camera_poses(camera, rows, positions, wxyz)
            made = _draw(self._drawn, camera, places, turns, proxy, first=first_step)
            depth = first_depth(proxy, made, has_mesh=self._has_mesh)
            shown[camera.name] = replace(proxy, rgb=made.rgb, depth=depth)
        return shown

    def _with_splats(
        self, observations: Iterator[Observation], layout: Layout, trajectory: Trajectory
    ) -> Iterator[Observation]:
        motion = trajectory.body_positions, trajectory.body_wxyz
        positions, wxyz = shown_poses(*motion, rate=trajectory.rate, latency=layout.visual.latency)
        for seen in observations:
            steps = slice(seen.start, seen.start + len(next(iter(seen.cameras.values())).rgb))
            poses = positions[steps], wxyz[steps]
            painted = self.paint(seen.cameras, layout, trajectory.body_names, *poses, first_step=seen.start)
            yield replace(seen, cameras=painted)


class SplatViews(SceneViews):
    """Renderer of the states of navigation episodes through splats, for checks of stored images.

    Args:
        device: ``cpu`` or ``cuda``.
    """

    def __init__(self, *, device: str = "cpu") -> None:
        super().__init__(device=device)
        self._splats = SplatViewRenderer(stack=1, device=device)

    def load_episode(self, assets: NavigationAssets, layout: Layout, trajectory: Trajectory) -> None:
        """Prepare an episode."""
        super().load_episode(assets, layout, trajectory)
        self._splats.prepare(assets)
        self._layout = layout

    def render(
        self,
        body_names: Sequence[str],
        body_positions: FloatArray,
        body_wxyz: FloatArray,
        *,
        first_step: int = 0,
        following: tuple[FloatArray, FloatArray] | None = None,
    ) -> dict[str, CameraFrames]:
        """Render steps as :meth:`StackedRenderer.render` does, with the colors of the splats."""
        bodies = body_names, body_positions, body_wxyz
        frames = super().render(*bodies, first_step=first_step, following=following)
        return self._splats.paint(frames, self._layout, *bodies, first_step=first_step)


register_component("render", "splats", SplatViewRenderer, SplatViewSettings)


def _lit(placed: PlacedSplats) -> SplatCloud:
    if placed.samples is None:
        return placed.cloud
    return light_samples(placed.scene, render_parts(placed.scene), placed.cloud, placed.samples)


def _draw(
    drawn: SplatRasterizer | GsplatRasterizer,
    camera: Camera,
    places: FloatArray,
    turns: FloatArray,
    frames: CameraFrames,
    *,
    first: int,
) -> CameraFrames:
    """Draw the color and depth of splats, with the camera's lens and sensor applied."""
    lens = Lens(camera) if any(camera.distortion) else None
    made = drawn.render(lens.pinhole if lens else camera, places, turns)
    none = {name: getattr(frames, name)[:0] for name in ("instance", "semantic", "normals")}
    shown = replace(frames, rgb=made.rgb, depth=made.depth, **none)
    if lens:
        shown = lens.bend(shown)
    return SensorModel(camera).take(shown, first_step=first) if camera.sensor != Sensor() else shown


def first_depth(frames: CameraFrames, made: CameraFrames, *, has_mesh: bool) -> Float32Array:
    """Return the finer of the depths (K, H, W) of proxy and splats [m], with its holes filled by the other one."""
    if not len(frames.depth):
        return frames.depth
    first, other = (frames.depth, made.depth) if has_mesh else (made.depth, frames.depth)
    return np.where(first > 0, first, other)
