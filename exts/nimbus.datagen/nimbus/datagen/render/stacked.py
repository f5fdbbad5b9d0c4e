"""Stacked rendering with Newton's ray tracer: K steps of an episode as K worlds, one launch for each camera."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp
from newton.sensors import SensorCamera
from numpy.typing import NDArray

from nimbus.datagen import rotations
from nimbus.datagen.errors import InputError
from nimbus.datagen.layout import Camera, Layout
from nimbus.datagen.observation import CameraFrames, Labels
from nimbus.datagen.render import frames, views
from nimbus.datagen.render.labels import make_labels
from nimbus.datagen.render.parts import Part, object_parts, scene_parts
from nimbus.datagen.render.silhouette import outline_points, silhouette_areas
from nimbus.datagen.render.worlds import Worlds
from nimbus.datagen.robot import Robot
from nimbus.datagen.usd.stage import StageInfo

Float = NDArray[np.float64]

_STACK_ON_CPU = 16
"""On a CPU stacking saves no time; this many views keep the buffers small."""
_BYTES_PER_PIXEL = 4 + 4 + 4 + 12
_SKY = 0x00D0CCC8
"""Packed BGR seen where a ray leaves the scene."""


class StackedRenderer:
    """Renders states of one episode at a time; knows nothing of stages and trajectories.

    Args:
        stage: The scene.
        robot: The robot on its mount.
        stack: K, the number of steps rendered together; chosen for the device when not given.
        device: ``cpu`` or ``cuda``.
        shadows: Let the light cast shadows.
        samples: Rays per pixel; more than one smooths edges of ``rgb`` at nearly as many times the cost.

    Raises:
        InputError: The device is not there.
    """

    def __init__(
        self,
        stage: StageInfo,
        robot: Robot,
        *,
        stack: int | None = None,
        device: str = "cpu",
        shadows: bool = True,
        samples: int = 1,
    ) -> None:
        self.stage, self.robot, self.shadows, self.samples = stage, robot, shadows, samples
        self.device = _device(device)
        self._stack = stack
        self._scene_parts = scene_parts(stage, robot)
        self._config = SensorCamera.RenderConfig(
            enable_global_world=False,
            enable_textures=True,
            enable_shadows=shadows,
            enable_particles=False,
            render_order=SensorCamera.RenderOrder.VIEW_PRIORITY,
            anti_aliasing=SensorCamera.AntiAliasing.MSAA if samples > 1 else SensorCamera.AntiAliasing.NONE,
        )
        self._clear = SensorCamera.ClearData(clear_color=_SKY, clear_shape_index=frames.MISS)
        self._kernels: dict = {}
        self._rays: dict[tuple, wp.array] = {}
        self._images: dict[tuple, dict[str, wp.array]] = {}

    def load(self, layout: Layout) -> None:
        """Prepare the objects, looks, light and cameras of an episode."""
        visual = layout.visual
        self.cameras = visual.cameras
        self.stack = self._stack or self._choose_stack(visual.cameras)
        parts = [part for item in layout.physical.objects for part in object_parts(item)] + list(self._scene_parts)
        self.labels: Labels = make_labels(self.stage, layout.physical.objects, parts)
        self._worlds = Worlds(parts, visual.surfaces, count=self.stack, device=self.device)
        index = {name: place for place, name in enumerate(self.labels.instance_names)}
        shape_instances = np.array([index[part.instance] for part in parts], dtype=np.uint8)
        self._instance_table = frames.instance_table(shape_instances, self.stack)
        self._outlines = self._find_outlines(parts)
        self._sensor = SensorCamera(self._worlds.model)
        # A sensor compiles its own kernels; equal settings give equal ones.
        self._sensor._render_context._kernel_cache = self._kernels
        light = visual.light
        self._sensor.create_default_light(
            enable_shadows=self.shadows, direction=wp.vec3f(*light.direction), color=wp.vec3f(*light.color)
        )
        self._sensor.set_ambient_light(light.sky, light.ground)

    def render(self, body_names: Sequence[str], body_positions: Float, body_wxyz: Float) -> dict[str, CameraFrames]:
        """Render up to ``stack`` steps with every camera.

        Args:
            body_names: B names; every body of the scene is among them.
            body_positions: (K, B, 3) [m], world frame.
            body_wxyz: (K, B, 4)

        Returns:
            Frames by camera name.
        """
        count = len(body_positions)
        if not 0 < count <= self.stack:
            raise ValueError(f"expected 1 to {self.stack} steps, got {count}")
        rows = {name: place for place, name in enumerate(body_names)}
        self._worlds.place([rows[name] for name in self._worlds.body_names], body_positions, body_wxyz)
        shown = {}
        for camera in self.cameras:
            positions, wxyz = views.camera_poses(camera, rows, body_positions, body_wxyz)
            images = self._launch(camera, positions, wxyz)
            shown[camera.name] = self._frames(camera, positions, wxyz, images, rows, body_positions, body_wxyz)
        return shown

    def _launch(self, camera: Camera, positions: Float, wxyz: Float) -> dict[str, NDArray]:
        count, device = len(positions), self.device
        poses = np.zeros((self.stack, 7), dtype=np.float32)
        poses[:count, :3], poses[:count, 3:] = positions, np.roll(wxyz, -1, axis=-1)
        worlds = np.full(self.stack, int(SensorCamera.WorldRenderFlag.DISABLE_PRESERVE), dtype=np.int32)
        worlds[:count] = np.arange(count)
        images = self._buffers(camera)
        self._sensor.update(
            self._worlds.state,
            wp.array(poses, dtype=wp.transformf, device=device),
            self._ray_bundle(camera),
            world_indices=wp.array(worlds, dtype=wp.int32, device=device),
            clear_data=self._clear,
            render_config=self._config,
            **images,
        )
        return {name: image.numpy()[:count] for name, image in images.items()}

    def _frames(
        self,
        camera: Camera,
        positions: Float,
        wxyz: Float,
        images: dict[str, NDArray],
        rows: dict[str, int],
        body_positions: Float,
        body_wxyz: Float,
    ) -> CameraFrames:
        shape = images["shape_index_image"]
        instance = self._instance_table[shape]
        count = len(self.labels.instance_names)
        boxes, pixels = frames.visible_boxes(instance, count)
        matrix, pose = views.intrinsics(camera), views.world_T_camera(positions, wxyz)
        visibility = np.full(pixels.shape, np.nan, dtype=np.float32)
        for place, (body, points) in self._outlines.items():
            row = rows[body]
            world = points @ np.swapaxes(rotations.to_matrix(body_wxyz[:, row]), -1, -2) + body_positions[:, None, row]
            area = silhouette_areas(world, pose, matrix, width=camera.width, height=camera.height)
            visibility[:, place] = np.clip(pixels[:, place] / np.maximum(area, 1.0), 0.0, 1.0)
        color = images["color_image"].view(np.uint8).reshape(*shape.shape, 4)
        return CameraFrames(
            rgb=np.ascontiguousarray(color[..., :3]),
            depth=images["forward_depth_image"].copy(),
            instance=instance,
            semantic=self.labels.instance_semantics[instance],
            normals=frames.pack_normals(images["normal_image"]),
            boxes_2d=boxes,
            visibility=visibility,
            intrinsics=matrix,
            world_T_camera=pose,
        )

    def _find_outlines(self, parts: Sequence[Part]) -> dict[int, tuple[str, Float]]:
        """Body and outline points by instance, of what moves as one."""
        found = {}
        for place, body in enumerate(self.labels.instance_bodies):
            if body:
                name = self.labels.instance_names[place]
                vertices = np.concatenate([part.triangles.vertices for part in parts if part.instance == name])
                found[place] = body, outline_points(vertices)
        return found

    def _ray_bundle(self, camera: Camera) -> wp.array:
        key = (camera.width, camera.height, camera.vertical_fov)
        if key not in self._rays:
            if len(self._rays) >= 8:
                self._rays.clear()
            bundle = views.rays(camera, samples=self.samples)
            self._rays[key] = wp.array(bundle, dtype=wp.vec3f, device=self.device)
        return self._rays[key]

    def _buffers(self, camera: Camera) -> dict[str, wp.array]:
        shape = (self.stack, camera.height, camera.width)
        if shape not in self._images:
            types = {
                "color_image": wp.uint32,
                "forward_depth_image": wp.float32,
                "shape_index_image": wp.uint32,
                "normal_image": wp.vec3f,
            }
            self._images[shape] = {
                name: wp.zeros(shape, dtype=dtype, device=self.device) for name, dtype in types.items()
            }
        return self._images[shape]

    def _choose_stack(self, cameras: Sequence[Camera]) -> int:
        """On a GPU as many views as a quarter of the free memory holds, at most 256."""
        if not self.device.is_cuda:
            return _STACK_ON_CPU
        pixels = max(camera.width * camera.height for camera in cameras)
        return int(np.clip(self.device.free_memory // 4 // (pixels * _BYTES_PER_PIXEL), 1, 256))


def _device(name: str) -> wp.Device:
    try:
        return wp.get_device(name)
    except (ValueError, RuntimeError):
        raise InputError(
            f"no device '{name}' on this machine", where="--device", instead="write cpu, or run on a host with a GPU"
        ) from None
