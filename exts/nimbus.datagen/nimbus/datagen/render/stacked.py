"""Stacked rendering: K steps of an episode side by side, in one launch of the ray tracer per camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Modality, Sensor
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry import cameras, transforms
from nimbus.datagen.render.boxes import visible_boxes
from nimbus.datagen.render.camera_model.flow import flow_to_next
from nimbus.datagen.render.camera_model.keypoint_places import with_keypoints
from nimbus.datagen.render.camera_model.lens import Lens
from nimbus.datagen.render.camera_model.sensor import SensorModel
from nimbus.datagen.render.raytracer import culling, rasterize
from nimbus.datagen.render.raytracer.geometry import build_geometry
from nimbus.datagen.render.raytracer.image_renderer import ImageRenderer
from nimbus.datagen.render.raytracer.kernel_data import DeviceLight, Steps, Views
from nimbus.datagen.render.raytracer.still import Shown
from nimbus.datagen.render.render_inputs import RenderInputs, RenderPart
from nimbus.datagen.render.silhouette import outline_points, silhouette_areas
from nimbus.datagen.textures.color import encoded, linear

_STACK_ON_CPU = 8
"""Number of steps per stack on a CPU, where stacking saves no time and a small number keeps the buffers small."""
_BYTES_PER_PIXEL = 3 + 4 + 1 + 1 + 3
"""Size of a pixel in all images: color, depth, instance, class and normal [bytes]."""
LIGHT_OF_BYTE = linear(np.arange(256) / 255.0).astype(np.float32)
"""(256,) linear light of sRGB bytes."""


class StackedRenderer:
    """Renders states of one episode at a time; independent of stages and trajectories.

    Args:
        stack: K, the number of steps rendered together; chosen for the device by default.
        device: ``cpu`` or ``cuda``.
        shadows: Let the light cast shadows.
        modalities: Modalities of every camera, in place of its own.
        reuse: Keep pixels of a static camera that do not change from step to step; results are bit-identical either
            way. Chosen for the device by default: a GPU renders all steps at once.

    Raises:
        InputError: The device does not exist.
    """

    def __init__(
        self,
        *,
        stack: int | None = None,
        device: str | wp.Device = "cpu",
        shadows: bool = True,
        modalities: Sequence[Modality] | None = None,
        reuse: bool | None = None,
    ) -> None:
        self.shadows, self._modalities = shadows, modalities
        self.device = find_device(device)
        reuse = not self.device.is_cuda if reuse is None else reuse
        self._renderer = ImageRenderer(self.device, reuse=reuse)
        self._stack = stack

    def load_inputs(self, inputs: RenderInputs) -> None:
        """Prepare the parts, looks, light and cameras of an episode."""
        parts, visual, self.labels = inputs.parts, inputs.visual, inputs.labels
        self.cameras = visual.cameras
        self._lenses = {camera.name: Lens(camera) for camera in visual.cameras if any(camera.distortion)}
        self._sensors = {camera.name: SensorModel(camera) for camera in visual.cameras if camera.sensor != Sensor()}
        self.stack = self._stack or self._choose_stack(visual.cameras)
        self._geometry = build_geometry(parts, visual.surfaces, self.labels, device=self.device, baked=inputs.baked)
        self._outlines = self._find_outlines(parts)
        self._renderer.forget()
        self._light = light = DeviceLight()
        towards = -np.asarray(visual.light.direction, dtype=float)
        # Any two axes across the light will do; the second reference avoids a cross product of nearly parallel vectors.
        across = np.cross(towards, (0.0, 0.0, 1.0) if abs(towards[2]) < 0.9 else (1.0, 0.0, 0.0))
        across /= np.linalg.norm(across)
        self._towards, self._light_axes = towards, (across, np.cross(towards, across))
        light.towards, light.color = wp.vec3(*towards), wp.vec3(*visual.light.color)
        light.sky, light.ground = wp.vec3(*visual.light.sky), wp.vec3(*visual.light.ground)
        light.across, light.along = (wp.vec3(*axis) for axis in self._light_axes)
        light.shadows = self.shadows
        lamps = visual.light.lamps
        light.lamp_count = len(lamps)
        light.lamps_towards = self._upload(-np.array([lamp.direction for lamp in lamps], dtype=float), wp.vec3)
        light.lamp_colors = self._upload(np.array([lamp.color for lamp in lamps], dtype=float), wp.vec3)

    def render(
        self,
        body_names: Sequence[str],
        body_positions: FloatArray,
        body_wxyz: FloatArray,
        *,
        first_step: int = 0,
        following: tuple[FloatArray, FloatArray] | None = None,
    ) -> dict[str, CameraFrames]:
        """Render up to ``stack`` steps with every camera.

        Args:
            body_names: B names, which include every body of the scene.
            body_positions: (K, B, 3) [m], world frame.
            body_wxyz: (K, B, 4) unit quaternions.
            first_step: Index of the first step in the episode, for sensor noise.
            following: Poses one step later, for optical flow: one fewer at the end of an episode, and none by default.

        Returns:
            Frames by camera name.
        """
        following = following or (body_positions[:0], body_wxyz[:0])
        count = len(body_positions)
        if not 0 < count <= self.stack:
            raise ValueError(f"expected 1 to {self.stack} steps, got {count}")
        bodies = _Bodies(body_names, body_positions, body_wxyz)
        placed = self._place(bodies)
        shown = {}
        for camera in self.cameras:
            positions, wxyz = cameras.camera_poses(camera, bodies.rows, body_positions, body_wxyz)
            lens, sensor = self._lenses.get(camera.name), self._sensors.get(camera.name)
            pinhole = lens.pinhole if lens else camera
            frames = self._render(pinhole, positions, wxyz, placed, bodies, following=following)
            frames = (lens.bend(frames) if lens else frames).only(self._made_by(camera))
            shown[camera.name] = sensor.take(frames, first_step=first_step) if sensor else frames
        return shown

    def _place(self, bodies: _Bodies) -> _Placed:
        """Compute the poses of meshes and rectangles from those of their bodies, and upload them."""
        geometry, count = self._geometry, len(bodies.positions)
        meshes = len(geometry.bodies)
        position, wxyz = np.zeros((count, meshes, 3)), np.zeros((count, meshes, 4))
        wxyz[..., 0] = 1.0
        moving = [mesh for mesh, body in enumerate(geometry.bodies) if body]
        rows = [bodies.rows[geometry.bodies[mesh]] for mesh in moving]
        position[:, moving], wxyz[:, moving] = bodies.positions[:, rows], bodies.wxyz[:, rows]
        rotation = transforms.quat_to_matrix(wxyz)
        turned = np.swapaxes(rotation, -1, -2)
        flat = geometry.flat
        rectangles = np.zeros((count, meshes, 4, 3))
        rectangles[:, flat] = np.matmul(geometry.rectangles, turned[:, flat])
        rectangles[:, flat, 0] += position[:, flat]
        casts = np.broadcast_to(geometry.casts_shadow, (count, meshes)).copy()
        # A rectangle casts its shadow from the front only, so that a ray meets one caster of a closed box and not two.
        casts[:, flat] &= rectangles[:, flat, 1] @ self._towards > 0
        casts &= self.shadows
        steps, upload = Steps(), self._upload
        steps.world_R_mesh, steps.positions = upload(rotation, wp.mat33), upload(position, wp.vec3)
        steps.light_in_mesh = upload(turned @ self._towards, wp.vec3)
        steps.normals = upload(rectangles[:, :, 1], wp.vec3)
        steps.shades = upload(cameras.light_planes(rectangles, self._towards), wp.vec4)
        # The support of the bounding box along the light is an upper bound for all points of the mesh.
        turned_light = turned @ self._towards
        middle, half = geometry.bounds.mean(axis=1), 0.5 * np.ptp(geometry.bounds, axis=1)
        reach = np.sum(turned_light * middle + np.abs(turned_light) * half, axis=-1) + position @ self._towards
        steps.tops = upload(reach, wp.float32)
        across, along = self._light_axes
        shown, axes = casts & ~geometry.flat, np.stack([across, along, self._towards])
        extents = rasterize.draw_heights(geometry, steps, position, rotation, shown, axes, draw=self.shadows)
        culling.cover_light(geometry.boxes, casts, steps, (along, across), extents, rectangles=int(flat.sum()))
        steps.corners, steps.edges = upload(rectangles[:, :, 0], wp.vec3), upload(rectangles[:, :, 2:], wp.vec3)
        moves = geometry.casts_shadow & [bool(body) for body in geometry.bodies]
        if geometry.scene.is_baked and self.shadows and moves.any():
            corners = np.stack([geometry.bounds[:, bits, (0, 1, 2)] for bits in np.ndindex(2, 2, 2)], axis=1)
            around = corners @ turned + position[:, :, None]
            culling.cover_near(geometry.boxes, np.tile(moves, (count, 1)), steps, around)
        return _Placed(position, rotation, rectangles, casts, extents, steps)

    def _render(
        self,
        camera: Camera,
        positions: FloatArray,
        wxyz: FloatArray,
        placed: _Placed,
        bodies: _Bodies,
        *,
        following: tuple[FloatArray, FloatArray],
    ) -> CameraFrames:
        count, width, height = len(positions), camera.width, camera.height
        matrix, pose = cameras.intrinsics(camera), cameras.world_T_camera(positions, wxyz)
        made, turned = self._made_by(camera), transforms.quat_to_matrix(wxyz)
        rgb = self._smooth_colors(camera, positions, turned, placed)
        images = self._draw(camera, positions, turned, placed, normals="normals" in made, meshes="flow" in made)
        shape = (self.stack, height, width)
        instances = len(self.labels.instance_names)
        boxes = np.full((count, instances, 4), np.nan, dtype=np.float32)
        visibility = np.full((count, instances), np.nan, dtype=np.float32)
        if {"boxes", "visibility"} & {*made}:
            boxes, pixels = visible_boxes(images.instance, count, width, height, count=instances)
            if "visibility" in made:
                visibility = self._visibility(pixels, pose, matrix, camera, bodies)
        frames = CameraFrames(
            rgb=images.rgb.numpy().reshape(*shape, 3)[:count].copy() if rgb is None else rgb,
            depth=images.depth.numpy().reshape(shape)[:count].copy(),
            instance=images.instance.numpy().reshape(shape)[:count].copy(),
            semantic=images.semantic.numpy().reshape(shape)[:count].copy(),
            normals=images.normals.numpy().reshape(-1, height, width, 3)[:count].copy(),
            boxes_2d=boxes,
            visibility=visibility,
            intrinsics=matrix,
            world_T_camera=pose,
        )
        if "flow" in made:
            # The last entry is that of pixels without a mesh, which have the number -1.
            row_of_mesh = np.array([bodies.rows.get(body, -1) for body in (*self._geometry.bodies, "")], dtype=np.int16)
            body = row_of_mesh[images.mesh.numpy().reshape(shape)[:count]]
            now = bodies.positions, bodies.wxyz
            frames = replace(frames, flow=flow_to_next(frames, body, camera, bodies.names, now, following))
        if "keypoints" in made and self.labels.keypoints is not None:
            frames = with_keypoints(frames, self.labels.keypoints, bodies.rows, bodies.positions, bodies.wxyz)
        return frames

    def _draw(
        self,
        camera: Camera,
        positions: FloatArray,
        rotation: FloatArray,
        placed: _Placed,
        *,
        normals: bool,
        meshes: bool = False,
    ) -> Any:
        """Render images of a camera into buffers on the device, which the next call overwrites."""
        view = self._view(camera, positions, rotation, placed)
        shown = Shown(
            positions=placed.position,
            rotations=placed.rotation,
            casts=placed.casts,
            extents=placed.extents,
            steps=placed.steps,
            view=view,
        )
        return self._renderer.render(
            self._geometry, self._light, camera, shown, stack=self.stack, normals=normals, meshes=meshes
        )

    def _smooth_colors(
        self, camera: Camera, positions: FloatArray, rotation: FloatArray, placed: _Placed
    ) -> NDArray[np.uint8] | None:
        """Return antialiased colors (K, H, W, 3) from a larger image; None when the sensor has no antialiasing."""
        if (samples := camera.sensor.antialiasing) == 1:
            return None
        fine = replace(camera, width=samples * camera.width, height=samples * camera.height)
        images = self._draw(fine, positions, rotation, placed, normals=False)
        shape = self.stack, camera.height, samples, camera.width, samples, 3
        # Colors are averaged as linear light, as in a sensor; averages of sRGB bytes would darken edges.
        light = LIGHT_OF_BYTE[images.rgb.numpy().reshape(shape)[: len(positions)]]
        return np.rint(255.0 * encoded(light.mean(axis=(2, 4)))).astype(np.uint8)

    def _view(self, camera: Camera, positions: FloatArray, rotation: FloatArray, placed: _Placed) -> Any:
        """Return the kernel's data of a camera at K steps."""
        width, height, focal = camera.width, camera.height, float(cameras.intrinsics(camera)[0, 0])
        geometry, upload = self._geometry, self._upload
        flat = geometry.flat
        toward = positions[:, None] - placed.rectangles[:, :, 0]
        seen = np.sum(toward * placed.rectangles[:, :, 1], axis=-1) > 0
        view = Views()
        view.width, view.height, view.focal = width, height, focal
        view.positions, view.world_R_camera = upload(positions, wp.vec3), upload(rotation, wp.mat33)
        turned = np.swapaxes(placed.rotation, -1, -2)
        view.origins = upload(np.matmul(turned, (positions[:, None] - placed.position)[..., None]), wp.vec3)
        view.mesh_R_camera = upload(np.matmul(turned, rotation[:, None]), wp.mat33)
        planes = cameras.image_planes(placed.rectangles, positions, rotation, focal=focal, width=width, height=height)
        view.planes = upload(planes, wp.vec3)
        culling.cover_image(geometry.boxes, seen & flat, view, count=len(geometry.rectangles))
        view.meshes = rasterize.draw_view(geometry, camera, positions, rotation, placed.position, placed.rotation)
        return view

    def _upload(self, values: NDArray[Any], dtype: Any) -> wp.array:
        """Upload values as one flat array."""
        shape = getattr(dtype, "_shape_", ())
        rows = np.ascontiguousarray(values).reshape(-1, *shape)
        return wp.array(rows, dtype=dtype, device=self.device)

    def _visibility(
        self, pixels: NDArray[np.int64], pose: FloatArray, matrix: FloatArray, camera: Camera, bodies: _Bodies
    ) -> NDArray[np.float32]:
        visibility = np.full(pixels.shape, np.nan, dtype=np.float32)
        if not self._outlines:
            return visibility
        places, outlines = [*self._outlines], self._outlines.values()
        rows = [bodies.rows[body] for body, _ in outlines]
        turned = np.swapaxes(transforms.quat_to_matrix(bodies.wxyz[:, rows]), -1, -2)
        world = np.stack([points for _, points in outlines]) @ turned + bodies.positions[:, rows, None]
        count, things, corners, _ = world.shape
        poses = np.repeat(pose, things, axis=0)
        areas = silhouette_areas(
            world.reshape(-1, corners, 3), poses, matrix, width=camera.width, height=camera.height
        ).reshape(count, things)
        visibility[:, places] = np.clip(pixels[:, places] / np.maximum(areas, 1.0), 0.0, 1.0)
        return visibility

    def _find_outlines(self, parts: Sequence[RenderPart]) -> dict[int, tuple[str, FloatArray]]:
        """Return body and outline points (n, 3) [m] of each rigid instance; all have the same n, by repetition."""
        found = {}
        for place, body in enumerate(self.labels.instance_bodies):
            if body:
                name = self.labels.instance_names[place]
                vertices = np.concatenate([part.triangles.vertices for part in parts if part.instance == name])
                found[place] = body, outline_points(vertices)
        most = max((len(points) for _, points in found.values()), default=0)
        return {place: (body, np.resize(points, (most, 3))) for place, (body, points) in found.items()}

    def _made_by(self, camera: Camera) -> Sequence[Modality]:
        """Return the modalities of a camera."""
        return camera.modalities if self._modalities is None else self._modalities

    def _choose_stack(self, cameras: Sequence[Camera]) -> int:
        """Return the number of views that fit into a quarter of a GPU's free memory, at most 256."""
        if not self.device.is_cuda:
            return _STACK_ON_CPU
        pixels = max(camera.width * camera.height * camera.sensor.antialiasing**2 for camera in cameras)
        return int(np.clip(self.device.free_memory // 4 // (pixels * _BYTES_PER_PIXEL), 1, 256))


@dataclass(frozen=True)
class _Placed:
    """K steps of G meshes on the host; ``steps`` holds the arrays on the device.

    Poses are (K, G, …), rectangles (K, G, 4, 3), casters of shadows (K, G), extents across the light (K, G, 2, 2).
    """

    position: FloatArray
    rotation: FloatArray
    rectangles: FloatArray
    casts: NDArray[np.bool_]
    extents: FloatArray
    steps: Any


class _Bodies:
    """Poses by body name."""

    def __init__(self, names: Sequence[str], positions: FloatArray, wxyz: FloatArray) -> None:
        self.names, self.rows = names, {name: row for row, name in enumerate(names)}
        self.positions, self.wxyz = positions, wxyz


def find_device(name: str | wp.Device) -> wp.Device:
    """Return the Warp device of a name.

    Raises:
        InputError: The device does not exist.
    """
    try:
        return wp.get_device(name)
    except (ValueError, RuntimeError):
        raise InputError(
            f"no device '{name}' on this machine", where="--device", instead="write cpu, or run on a host with a GPU"
        ) from None
