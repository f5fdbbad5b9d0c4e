"""Render stage of navigation through splats: colors of the splats, with depth and labels of their proxy geometry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from nimbus.datagen.arrays import Float32Array, FloatArray
from nimbus.datagen.episode.layout import Camera, Layout, Sensor
from nimbus.datagen.episode.observation import CameraFrames, Observation
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry import cameras
from nimbus.datagen.navigate.splat_source import PlacedSplats, SplatSource
from nimbus.datagen.pipeline import register_component
from nimbus.datagen.progress import allow
from nimbus.datagen.render.camera_model.lens import Lens
from nimbus.datagen.render.camera_model.sensor import SensorModel, shown_poses
from nimbus.datagen.render.scene_views import SceneViewRenderer, SceneViewSettings, render_parts
from nimbus.datagen.render.splat_light import light_samples
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.rasterizer import SplatRasterizer
from nimbus.datagen.stages import Planned, Rendered
from nimbus.datagen.tasks.navigation_assets import NavigationAssets

_SLOW = 240.0
"""Upper bound of sampling and lighting a home, or of preparing 3 million splats [s]."""


class SplatViewRenderer(SceneViewRenderer):
    """Renders the splats of a scene; masks, normals and boxes are those of its proxy.

    Depth is that of the proxy if it is a mesh of the place, and the expected depth of the splats where it has none. If
    the proxy was made from the splats, their own depth has priority, because voxels are coarser. It is 0 where there is
    neither.
    """

    version: ClassVar[int] = 1

    def process(self, item: Planned[NavigationAssets]) -> Iterator[Rendered[NavigationAssets]]:
        """Yield one result for each layout; a failed attempt has no observations, unless they are requested."""
        self._drawn = self._prepare(item.scene.assets)
        for rendered in super().process(item):
            shown = self._with_splats(rendered.observations, rendered.layout, item.trajectory)
            yield replace(rendered, observations=shown)

    def _prepare(self, assets: NavigationAssets) -> SplatRasterizer:
        """Return the rasterizer of the scene; the latest one is cached."""
        source = assets.task.source
        if not isinstance(source, SplatSource):
            what = "the pipeline draws splats, and the task's scenes have none"
            instead = "write splats: or splat_homes:, or pipeline: nav_mesh"
            raise InputError(what, where=f"{assets.task.path}: scene", instead=instead)
        key = source.model_dump_json(), assets.number
        if getattr(self, "_key", None) != key:
            with allow(_SLOW):
                placed = source.placed(assets.number)
                cloud = _lit(placed)
                self._has_mesh = placed.has_mesh
                self._kept = SplatRasterizer(cloud, world_T_cloud=placed.world_T_cloud, device=self._renderer.device)
            self._key = key
        return self._kept

    def _with_splats(
        self, observations: Iterator[Observation], layout: Layout, trajectory: Trajectory
    ) -> Iterator[Observation]:
        drawn = self._drawn
        motion = trajectory.body_positions, trajectory.body_wxyz
        positions, wxyz = shown_poses(*motion, rate=trajectory.rate, latency=layout.visual.latency)
        rows = {name: row for row, name in enumerate(trajectory.body_names)}
        for seen in observations:
            shown = {}
            for camera in layout.visual.cameras:
                frames = seen.cameras[camera.name]
                steps = slice(seen.start, seen.start + len(frames.rgb))
                places, turns = cameras.camera_poses(camera, rows, positions[steps], wxyz[steps])
                made = _draw(drawn, camera, places, turns, frames, first=seen.start)
                shown[camera.name] = replace(
                    frames, rgb=made.rgb, depth=first_depth(frames, made, has_mesh=self._has_mesh)
                )
            yield replace(seen, cameras=shown)


register_component("render", "splats", SplatViewRenderer, SceneViewSettings)


def _lit(placed: PlacedSplats) -> SplatCloud:
    if placed.samples is None:
        return placed.cloud
    return light_samples(placed.scene, render_parts(placed.scene), placed.cloud, placed.samples)


def _draw(
    drawn: SplatRasterizer, camera: Camera, places: FloatArray, turns: FloatArray, frames: CameraFrames, *, first: int
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
    """Return (K, H, W) the depth of the finer of proxy and splats, or of the other one where that has none [m]."""
    if not len(frames.depth):
        return frames.depth
    first, other = (frames.depth, made.depth) if has_mesh else (made.depth, frames.depth)
    return np.where(first > 0, first, other)
