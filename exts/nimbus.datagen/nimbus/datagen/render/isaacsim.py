"""Stacked rendering in Isaac Sim: K steps stand in K regions of one stage, and are rendered together by RTX.

Loaded by workers that run in Isaac Sim's Python. Kit is imported where it is used, when it has been started.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.layout import Camera, Layout
from nimbus.datagen.liveness import progress
from nimbus.datagen.observation import CameraFrames, Observation
from nimbus.datagen.registry import register
from nimbus.datagen.render.flow import flow_to_next
from nimbus.datagen.render.latency import shown_poses
from nimbus.datagen.render.lens import Lens
from nimbus.datagen.render.readback import body_indices, frames_from_buffers, instance_indices
from nimbus.datagen.render.sensor import SensorModel
from nimbus.datagen.render.stack_layout import StackLayout, most_in_memory, stack_layout
from nimbus.datagen.render.stack_stage import RegionPaths, region_poses, write_stacked_stage
from nimbus.datagen.stages import Planned, Rendered, Renderer
from nimbus.datagen.trajectory import Trajectory
from nimbus.datagen.usd.stage import StageInfo
from nimbus.datagen.usd.visual_assets import VisualAssets, seen_bounds, write_visual_assets

if TYPE_CHECKING:
    from isaacsim.core.experimental.prims import XformPrim
    from isaacsim.sensors.experimental.rtx import TiledCameraSensor

    from nimbus.datagen.robot import Robot

Float = NDArray[np.float64]

ANNOTATORS = ["rgb", "distance_to_image_plane", "normals", "instance_id_segmentation"]
_STACK, _MOST = 16, 64
"""K where nothing is known of the GPU's memory, and the largest that is taken unasked."""
_MESHES = 64 << 20
"""[bytes] That one region's copy of the scene may take on the GPU: an estimate, to be replaced by a measurement."""
logger = logging.getLogger("nimbus.isaacsim")


@register("render", "isaacsim")
class IsaacSimRenderer(Renderer):
    """Renders trajectories in chunks of K steps, as the writer asks for them.

    Args:
        stack: K; as many as fit into the memory when not given.
        free_bytes: Of the GPU's memory; 0: not known.
        warm_up: Updates after a stage was loaded, before the first frame counts.
        settle: Frames that each batch is rendered, so that what the denoiser remembers of the last one is gone.
        flow: Also make the optical flow to the next step.
    """

    NOT_APPLIED: ClassVar[frozenset[str]] = frozenset({"table_height"})
    """Randomizers that this renderer does not honour: its floor lies where the scene's file says."""

    def __init__(
        self,
        *,
        stack: int | None = None,
        free_bytes: int = 0,
        warm_up: int = 16,
        settle: int = 4,
        flow: bool = False,
    ) -> None:
        self._given, self._free_bytes, self._warm_up, self._settle = stack, free_bytes, warm_up, settle
        self._flow = flow
        self._stack = stack or _STACK
        self._folder = tempfile.TemporaryDirectory(prefix="nimbus-isaacsim-")
        self._shown: tuple[Layout, RegionRenderer] | None = None
        self._count = 0

    def process(self, item: Planned) -> Iterator[Rendered]:
        """Yield one result for each layout; a failed attempt has no observations."""
        for layout in item.layouts:
            failed = not item.trajectory.outcome.success
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=None if failed else self._load(item, layout).labels,
                observations=iter(()) if failed else self._observe(item, layout),
                attempt=item.attempt,
                final=item.final,
            )

    def close(self) -> None:
        """Remove the stages that were written."""
        self._shown = None
        self._folder.cleanup()

    def _observe(self, item: Planned, layout: Layout) -> Iterator[Observation]:
        trajectory, start = item.trajectory, 0
        motion = trajectory.body_positions, trajectory.body_wxyz
        shown_positions, shown_wxyz = shown_poses(*motion, rate=trajectory.rate, latency=layout.visual.latency)
        sensors = {camera.name: SensorModel(camera) for camera in layout.visual.cameras}
        while start < trajectory.step_count:
            steps, next_steps = (slice(start + later, start + later + self._stack) for later in (0, 1))
            positions, wxyz = shown_positions[steps], shown_wxyz[steps]
            following = shown_positions[next_steps], shown_wxyz[next_steps]
            progress()
            seen = self._load(item, layout).render(positions, wxyz, following=following if self._flow else None)
            taken = {name: sensors[name].take(frames, first_step=start) for name, frames in seen.items()}
            yield Observation(start=start, cameras=taken)
            start += len(positions)

    def _load(self, item: Planned, layout: Layout) -> RegionRenderer:
        """Prepare a layout, unless it is the one that was shown last."""
        if self._shown is None or self._shown[0] is not layout:
            self._count += 1
            assets = item.scene.assets
            self._shown = None
            self._stack = self._given or stack_in_memory(layout.visual.cameras, free_bytes=self._free_bytes)
            renderer = RegionRenderer(
                assets.stage,
                assets.robot,
                layout,
                item.trajectory,
                libraries=tuple(assets.libraries),
                stack=self._stack,
                folder=Path(self._folder.name) / f"{self._count:05d}",
                settle=self._settle,
            )
            placed, gib = renderer.layout, self._free_bytes / 2**30
            logger.info("K %d, regions %g m apart, %.1f GiB of memory", placed.count, placed.spacing, gib)
            renderer.open(warm_up=self._warm_up)
            self._shown = layout, renderer
        return self._shown[1]


def stack_in_memory(cameras: Sequence[Camera], *, free_bytes: int) -> int:
    """K for a GPU's free memory."""
    if not free_bytes:
        return _STACK
    return min(_MOST, most_in_memory(cameras, free_bytes=free_bytes, region_bytes=_MESHES))


class RegionRenderer:
    """One episode's stage of K regions, and its sensors.

    Args:
        stage: The scene.
        robot: The robot.
        layout: Objects, cameras and light.
        trajectory: Everything that will be shown; regions stand as far apart as it reaches.
        libraries: Object libraries of the task, in its order.
        stack: K.
        folder: Where the stage is written.
        settle: Frames rendered for each batch.
    """

    def __init__(
        self,
        stage: StageInfo,
        robot: Robot,
        layout: Layout,
        trajectory: Trajectory,
        *,
        libraries: Sequence[str],
        stack: int,
        folder: Path,
        settle: int,
    ) -> None:
        from nimbus.datagen.render.region_labels import make_region_labels
        from nimbus.datagen.usd.robot import robot_usd

        self._lenses = {camera.name: Lens(camera) for camera in layout.visual.cameras if any(camera.distortion)}
        self.cameras = tuple(
            self._lenses[camera.name].pinhole if camera.name in self._lenses else camera
            for camera in layout.visual.cameras
        )
        self.settle = settle
        self._names = trajectory.body_names
        fixtures = {name: fixture.prim_path for name, fixture in stage.fixtures.items()}
        usd = robot_usd(robot)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
        objects = layout.physical.objects
        self.assets: VisualAssets = write_visual_assets(
            stage.path, usd, fixtures, objects, folder, surfaces=layout.visual.surfaces, roles=stage.roles
        )
        self.labels, self._instance_of = make_region_labels(stage, layout, self.assets, libraries=libraries)
        positions, wxyz = trajectory.body_positions, trajectory.body_wxyz
        _, _, eyes, _ = region_poses(self.cameras, self._names, positions, wxyz)
        self.layout: StackLayout = stack_layout(
            stack,
            bounds=seen_bounds(self.assets, self._names, positions, wxyz),
            eyes=eyes.reshape(-1, 3),
            cameras=self.cameras,
        )
        self.path = folder / "stacked.usda"
        first = np.zeros(stack, dtype=int)
        self.regions: list[RegionPaths] = write_stacked_stage(
            self.path,
            self.assets,
            self.layout,
            names=self._names,
            positions=positions[first],
            wxyz=wxyz[first],
            cameras=self.cameras,
            light=layout.visual.light,
            dome=layout.visual.dome,
        )

    def open(self, *, warm_up: int) -> None:
        """Load the stage, make the sensors, and render until what is loaded late is there."""
        import isaacsim.core.experimental.utils.app as app_utils
        import omni.replicator.core as rep
        from isaacsim.core.experimental.prims import XformPrim
        from isaacsim.sensors.experimental.rtx import TiledCameraSensor

        from nimbus.datagen.simulate.kit_app import open_stage

        open_stage(str(self.path))
        rep.orchestrator.set_capture_on_play(False)
        self._bodies = [name for name in self._names if name in self.assets.bodies]
        self._body_prims: XformPrim = XformPrim(
            [region.bodies[name] for region in self.regions for name in self._bodies]
        )
        self._eye_prims: XformPrim = XformPrim(
            [region.cameras[camera.name] for region in self.regions for camera in self.cameras]
        )
        self._sensors: dict[str, TiledCameraSensor] = {}
        for camera in self.cameras:
            paths = [region.cameras[camera.name] for region in self.regions]
            sensor = TiledCameraSensor(paths, resolution=(camera.height, camera.width), annotators=ANNOTATORS)
            self._sensors[camera.name] = sensor
        app_utils.update_app(steps=warm_up)

    def render(
        self, positions: Float, wxyz: Float, *, following: tuple[Float, Float] | None = None
    ) -> dict[str, CameraFrames]:
        """Render up to K steps with every camera.

        Args:
            positions: (K, B, 3) [m], world frame.
            wxyz: (K, B, 4)
            following: The same one step later, for the optical flow; K - 1 of them where the episode ends.
        """
        import omni.replicator.core as rep

        count = len(positions)
        every = np.minimum(np.arange(len(self.regions)), count - 1)  # regions left over show the last step
        bodies, turns, eyes, views = region_poses(self.cameras, self._names, positions[every], wxyz[every])
        self._place(bodies, turns, eyes, views)
        rep.orchestrator.step(rt_subframes=self.settle, pause_timeline=False, delta_time=0.0)
        shown = {}
        for column, camera in enumerate(self.cameras):
            sensor: TiledCameraSensor = self._sensors[camera.name]
            frames, body = self._read(sensor, camera, eyes[:count, column], views[:count, column])
            if following is not None:
                flow = flow_to_next(frames, body, camera, self._names, (positions, wxyz), following)
                frames = replace(frames, flow=flow)
            lens = self._lenses.get(camera.name)
            shown[camera.name] = lens.bend(frames) if lens else frames
        return shown

    def _place(self, bodies: Float, turns: Float, eyes: Float, views: Float) -> None:
        """Write all poses at once, in the frames of the regions."""
        import isaacsim.core.experimental.utils.backend as backend_utils

        rows = [self._names.index(name) for name in self._bodies]
        with backend_utils.use_backend("fabric"):
            self._body_prims.set_local_poses(bodies[:, rows].reshape(-1, 3), turns[:, rows].reshape(-1, 4))
            self._eye_prims.set_local_poses(eyes.reshape(-1, 3), views.reshape(-1, 4))

    def _read(
        self, sensor: TiledCameraSensor, camera: Camera, eyes: Float, turns: Float
    ) -> tuple[CameraFrames, NDArray[np.int16]]:
        """The frames, and (K, H, W) which body is seen."""
        count = len(eyes)
        rgb, _ = sensor.get_data("rgb")
        depth, _ = sensor.get_data("distance_to_image_plane")
        normals, _ = sensor.get_data("normals")
        buffers = {
            "rgb": rgb.numpy()[:count],
            "distance_to_image_plane": depth.numpy()[:count],
            "normals": normals.numpy()[:count],
        }
        numbers, info = sensor.get_data("instance_id_segmentation")
        ids, paths = numbers.numpy()[:count], info["idToLabels"]
        instance = instance_indices(ids, paths, self.regions, self.labels, instance_of=self._instance_of)
        frames = frames_from_buffers(
            buffers, instance, self.labels, camera, eyes=eyes, turns=turns, far=self.layout.far
        )
        return frames, body_indices(ids, paths, self.regions, self._names)
