"""Rendering of one episode in Isaac Sim: the stage of K regions, its sensors, and images of K steps at a time.

Kit is imported inside functions, after it has been started.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Layout
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.render.camera_model.flow import flow_to_next
from nimbus.datagen.render.camera_model.keypoint_places import with_keypoints
from nimbus.datagen.render.camera_model.lens import Lens
from nimbus.datagen.render.isaacsim.readback import body_indices, frames_from_buffers, instance_indices
from nimbus.datagen.render.keypoints import find_keypoints
from nimbus.datagen.usd.stack_layout import StackLayout, stack_layout
from nimbus.datagen.usd.stacked_stage import RegionPaths, region_poses, write_stacked_stage
from nimbus.datagen.usd.stage import StageInfo
from nimbus.datagen.usd.visual_assets import VisualAssets, seen_bounds, write_visual_assets

if TYPE_CHECKING:
    from isaacsim.core.experimental.prims import XformPrim
    from isaacsim.sensors.experimental.rtx import TiledCameraSensor

    from nimbus.datagen.robots.robot import Robot


ANNOTATORS = ["rgb", "distance_to_image_plane", "normals", "instance_id_segmentation"]
_IDS = "instance_id_segmentation"
_TRIES = 4
"""Largest number of steps until every annotator has returned an image; the first steps may return none."""
_UNDONE = "STEPPING"
"""Replicator's status while it renders a frame. It also keeps this status after it has given up on a frame."""
_WRITTEN = 1e-3
"""Tolerance of a pose that is read back [m]."""
_AFTER_STOP = 3
"""Number of updates for a stop and the following destruction to take effect."""


Images = dict[str, tuple[NDArray[Any], dict[str, Any]]]
"""(K, H, W, C) and its metadata, by annotator."""


class NoImageError(RuntimeError):
    """Raised when an annotator returns no image, or the previous one again."""


class RegionRenderer:
    """Stage of K regions for one episode, and its sensors.

    Args:
        stage: The scene.
        robot: The robot.
        layout: Objects, cameras and light.
        trajectory: Trajectory to be shown; its extent decides the distance between regions.
        libraries: Object libraries of the task, in its order.
        stack: K, the number of regions.
        folder: Folder for the stage.
        settle: Number of frames rendered for each batch.
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
        from nimbus.datagen.render.isaacsim.region_labels import make_region_labels
        from nimbus.datagen.usd.robot import robot_usd

        self._lenses = {camera.name: Lens(camera) for camera in layout.visual.cameras if any(camera.distortion)}
        self.cameras = tuple(
            self._lenses[camera.name].pinhole if camera.name in self._lenses else camera
            for camera in layout.visual.cameras
        )
        self.settle = settle
        self._names = trajectory.body_names
        self._sensors: dict[str, TiledCameraSensor] = {}
        fixtures = {name: fixture.prim_path for name, fixture in stage.fixtures.items()}
        usd = robot_usd(robot)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
        objects = layout.physical.objects
        self.assets: VisualAssets = write_visual_assets(
            stage.path, usd, fixtures, objects, folder, surfaces=layout.visual.surfaces, roles=stage.roles
        )
        self.labels, self._instance_of = make_region_labels(stage, layout, self.assets, libraries=libraries)
        if any("keypoints" in camera.modalities for camera in layout.visual.cameras):
            self.labels = replace(self.labels, keypoints=find_keypoints(objects, robot, self.labels))
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
        """Load the stage, create the sensors, and render until assets that load late are present."""
        import isaacsim.core.experimental.utils.app as app_utils
        import omni.replicator.core as rep
        from isaacsim.core.experimental.prims import XformPrim
        from isaacsim.sensors.experimental.rtx import TiledCameraSensor

        from nimbus.datagen.simulate.kit_app import open_stage, refresh_places

        open_stage(str(self.path))
        rep.orchestrator.set_capture_on_play(False)
        self._bodies = [name for name in self._names if name in self.assets.bodies]
        self._body_prims: XformPrim = XformPrim(
            [region.bodies[name] for region in self.regions for name in self._bodies]
        )
        self._eye_prims: XformPrim = XformPrim(
            [region.cameras[camera.name] for region in self.regions for camera in self.cameras]
        )
        self._is_placed = False
        for camera in self.cameras:
            paths = [region.cameras[camera.name] for region in self.regions]
            sensor = TiledCameraSensor(paths, resolution=(camera.height, camera.width), annotators=ANNOTATORS)
            self._sensors[camera.name] = sensor
        app_utils.update_app(steps=warm_up)
        refresh_places()

    def close(self) -> None:
        """Release everything: first the timeline and the sensors, because closing a stage that they use crashes Kit."""
        import isaacsim.core.experimental.utils.app as app_utils
        import omni.replicator.core as rep

        rep.orchestrator.stop()  # otherwise the next line waits forever for a failed step
        rep.orchestrator.wait_until_complete()
        app_utils.stop()
        self._sensors.clear()
        app_utils.update_app(steps=_AFTER_STOP)

    def render(
        self,
        positions: FloatArray,
        wxyz: FloatArray,
        *,
        following: tuple[FloatArray, FloatArray] | None = None,
        flow: bool = False,
    ) -> dict[str, CameraFrames]:
        """Render up to K steps with every camera.

        Args:
            positions: (K, B, 3) [m], world frame.
            wxyz: (K, B, 4) unit quaternions.
            following: Poses one step later, for optical flow; K - 1 of them at the end of an episode.
            flow: Also compute optical flow for cameras that do not list it.
        """
        following = following or (positions[:0], wxyz[:0])
        rows = {name: row for row, name in enumerate(self._names)}
        count = len(positions)
        every = np.minimum(np.arange(len(self.regions)), count - 1)  # surplus regions repeat the last step
        bodies, turns, eyes, views = region_poses(self.cameras, self._names, positions[every], wxyz[every])
        self._place(bodies, turns, eyes, views)
        images = self._step()
        shown = {}
        for column, camera in enumerate(self.cameras):
            frames, body = self._read(images[camera.name], camera, eyes[:count, column], views[:count, column])
            if flow or "flow" in camera.modalities:
                made = flow_to_next(frames, body, camera, self._names, (positions, wxyz), following)
                frames = replace(frames, flow=made)
            if "keypoints" in camera.modalities and self.labels.keypoints is not None:
                frames = with_keypoints(frames, self.labels.keypoints, rows, positions, wxyz)
            lens = self._lenses.get(camera.name)
            shown[camera.name] = (lens.bend(frames) if lens else frames).only(camera.modalities)
        return shown

    def _place(self, bodies: FloatArray, turns: FloatArray, eyes: FloatArray, views: FloatArray) -> None:
        """Write all poses at once, in the frames of the regions."""
        import isaacsim.core.experimental.utils.backend as backend_utils

        rows = [self._names.index(name) for name in self._bodies]
        places = bodies[:, rows].reshape(-1, 3)
        with backend_utils.use_backend("fabric"):
            self._body_prims.set_local_poses(places, turns[:, rows].reshape(-1, 4))
            self._eye_prims.set_local_poses(eyes.reshape(-1, 3), views.reshape(-1, 4))
            if not self._is_placed:
                _check_written(self._body_prims.get_local_poses(), places)
                _check_written(self._eye_prims.get_local_poses(), eyes)
                self._is_placed = True

    def _step(self) -> dict[str, Images]:
        """Render one batch; return the images of every camera.

        Raises:
            NoImageError: There is no image after several steps, or no new one.
        """
        import omni.replicator.core as rep

        missing: list[str] = []
        for _ in range(_TRIES):
            rep.orchestrator.step(rt_subframes=self.settle, pause_timeline=False, delta_time=0.0)
            if _UNDONE in (status := str(rep.orchestrator.get_status())):
                raise NoImageError(f"Isaac Sim has not rendered a new frame ({status}); see its log")
            seen: dict[str, Images] = {}
            for camera in self.cameras:
                sensor: TiledCameraSensor = self._sensors[camera.name]
                seen[camera.name] = _images(sensor)
            missing = [
                f"{name} of {camera}" for camera, images in seen.items() for name in ANNOTATORS if name not in images
            ]
            if not missing:
                return seen
        raise NoImageError(f"Isaac Sim gave no image in {_TRIES} steps: {', '.join(missing)}")

    def _read(
        self, images: Images, camera: Camera, eyes: FloatArray, turns: FloatArray
    ) -> tuple[CameraFrames, NDArray[np.int16]]:
        """Return the frames, and the row (K, H, W) of the visible body."""
        count = len(eyes)
        buffers = {name: image[:count] for name, (image, _) in images.items()}
        ids, paths = buffers.pop(_IDS), images[_IDS][1]["idToLabels"]
        instance = instance_indices(ids, paths, self.regions, self.labels, instance_of=self._instance_of)
        frames = frames_from_buffers(
            buffers, instance, self.labels, camera, eyes=eyes, turns=turns, far=self.layout.far
        )
        return frames, body_indices(ids, paths, self.regions, self._names)


def _check_written(found: Any, wanted: FloatArray) -> None:
    """Verify a write by reading it back: if a write finds no prims, Kit only logs that, and renders the old poses."""
    places = found[0].numpy() if found else np.full(wanted.shape, np.nan)  # an empty result means that no prims matched
    if not np.allclose(np.reshape(places, (-1, 3)), wanted.reshape(-1, 3), atol=_WRITTEN):
        raise RuntimeError("Isaac Sim did not apply the written poses; see its log")


def _images(sensor: TiledCameraSensor) -> Images:
    """Return the images of a sensor; annotators without an image are omitted."""
    given = {
        "rgb": sensor.get_data("rgb"),
        "distance_to_image_plane": sensor.get_data("distance_to_image_plane"),
        "normals": sensor.get_data("normals"),
        "instance_id_segmentation": sensor.get_data("instance_id_segmentation"),
    }
    return {name: (image.numpy(), info) for name, (image, info) in given.items() if image is not None}
