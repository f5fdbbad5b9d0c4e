"""Stacked rendering: states of one or several layouts side by side, in one launch of the ray tracer per camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Modality
from nimbus.datagen.episode.observation import CameraFrames, Labels
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry import cameras, transforms
from nimbus.datagen.render.bent import bend, has_flexible, join_steps, single_steps
from nimbus.datagen.render.camera_shots import CameraShot, ShotImages, finish_shot, needed_images
from nimbus.datagen.render.covered_areas import OutlineTable
from nimbus.datagen.render.host_buffers import HostBuffers
from nimbus.datagen.render.layout_states import LayoutStates, side_by_side
from nimbus.datagen.render.loaded_layout import LoadedLayout, load_layout
from nimbus.datagen.render.raytracer.image_renderer import ImageRenderer, ImageSize
from nimbus.datagen.render.raytracer.scene_table import PlacedSteps, PlacedViews, SceneTable
from nimbus.datagen.render.raytracer.tone_tables import TONE_STARTS
from nimbus.datagen.render.render_inputs import RenderInputs
from nimbus.datagen.textures.color import encoded, linear

_STACK_ON_CPU = 8
"""Number of steps per stack on a CPU, where stacking saves no time and a small number keeps the buffers small."""
_BYTES_PER_PIXEL = 3 + 4 + 1 + 1 + 3
"""Size of a pixel in all images: color, depth, instance, class and normal [bytes]."""
LIGHT_OF_BYTE = linear(np.arange(256) / 255.0).astype(np.float32)
"""(256,) linear light of sRGB bytes."""


class StackedRenderer:
    """Renderer of the states of one or several layouts at a time; it is independent of stages and trajectories.

    The images of a state do not depend on the other states that are rendered with it.

    Args:
        stack: K, the number of steps of a layout rendered together; chosen for the device by default.
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
        self._buffers = HostBuffers() if self.device.is_cuda else None

    def load_inputs(self, inputs: RenderInputs) -> None:
        """Prepare the parts, looks, light and cameras of an episode."""
        self.load_layouts([load_layout(inputs, self.device, shadows=self.shadows)])

    def load_layouts(self, layouts: Sequence[LoadedLayout]) -> None:
        """Prepare layouts that were loaded on the device of this renderer; states refer to them by number."""
        self._layouts = tuple(layouts)
        self.stack = self._stack or self._choose_stack([camera for layout in layouts for camera in layout.cameras])
        self._table = SceneTable(
            [layout.geometry for layout in layouts], [layout.light for layout in layouts], self.device
        )
        self._outlines = OutlineTable([layout.outlines for layout in layouts], self.device)
        self._renderer.forget()
        self._bent: StackedRenderer | None = None
        """Renderer of the layouts that stand for the single steps of a layout with flexible objects."""

    @property
    def labels(self) -> Labels:
        """Labels of the first layout."""
        return self._layouts[0].labels

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """Cameras of the first layout."""
        return self._layouts[0].cameras

    def render(
        self,
        body_names: Sequence[str],
        body_positions: FloatArray,
        body_wxyz: FloatArray,
        *,
        first_step: int = 0,
        following: tuple[FloatArray, FloatArray] | None = None,
    ) -> dict[str, CameraFrames]:
        """Render up to ``stack`` steps of the first layout with every camera.

        Args:
            body_names: B names, which include every body of the scene.
            body_positions: (K, B, 3) [m], world frame.
            body_wxyz: (K, B, 4) unit quaternions.
            first_step: Index of the first step in the episode, for sensor noise.
            following: Poses one step later, for optical flow: one fewer at the end of an episode, and none by default.

        Returns:
            Frames by camera name.
        """
        states = LayoutStates(
            names=body_names,
            positions=body_positions,
            wxyz=body_wxyz,
            first_step=first_step,
            following=following,
        )
        return self.render_states([states])[0]

    def render_states(self, states: Sequence[LayoutStates]) -> list[dict[str, CameraFrames]]:
        """Render states of the loaded layouts, each with all of its cameras, in one launch per camera.

        Args:
            states: At most ``stack`` consecutive states each.

        Returns:
            Frames by camera name, of each entry of ``states``.
        """
        if not all(0 < len(item) <= self.stack for item in states):
            raise ValueError(f"expected 1 to {self.stack} steps, got {[len(item) for item in states]}")
        if any(has_flexible(self._layouts[item.layout]) for item in states):
            return [self._render_bent(item) for item in states]
        return self.render_rigid(states)

    def render_rigid(self, states: Sequence[LayoutStates]) -> list[dict[str, CameraFrames]]:
        """Render states of the loaded layouts with their geometry as loaded, see :meth:`render_states`."""
        self._names: list[Sequence[str]] = [()] * len(self._layouts)
        for item in states:
            self._names[item.layout] = item.names
        numbers = np.repeat([item.layout for item in states], [len(item) for item in states])
        placed = self._table.place(numbers, self._names, *side_by_side(states))
        groups = groupby(sorted(self._shots(states), key=lambda shot: shot.group), key=lambda shot: shot.group)
        # Everything is launched before the first wait.
        rendered = [(together, self._render(together, placed)) for together in (list(group) for _, group in groups)]
        wp.synchronize_device(self.device)
        shown: list[dict[str, CameraFrames]] = [{} for _ in states]
        for together, images in rendered:
            start = 0
            for shot in together:
                bodies = self._table.body_rows(shot.states.layout, shot.states.rows) if "flow" in shot.made else None
                shown[shot.place][shot.camera.name] = finish_shot(shot, images, start, mesh_bodies=bodies)
                start += len(shot)
        order = [[camera.name for camera in self._layouts[item.layout].cameras] for item in states]
        return [{name: frames[name] for name in known} for known, frames in zip(order, shown, strict=True)]

    def _render_bent(self, states: LayoutStates) -> dict[str, CameraFrames]:
        """Render a layout with flexible objects: each step has its own geometry; no pixels are kept."""
        if self._bent is None:
            self._bent = StackedRenderer(
                stack=self.stack, device=self.device, shadows=self.shadows, modalities=self._modalities, reuse=False
            )
        layout = self._layouts[states.layout]
        self._bent.load_layouts([bend(layout, states, step, self.device) for step in range(len(states))])
        return join_steps(self._bent.render_rigid(single_steps(states)))

    def _shots(self, states: Sequence[LayoutStates]) -> list[CameraShot]:
        """Return the shots of all cameras; those of the same group are rendered together."""
        found, start = [], 0
        for place, item in enumerate(states):
            layout = self._layouts[item.layout]
            for camera in layout.cameras:
                made = camera.modalities if self._modalities is None else self._modalities
                found.append(CameraShot(layout, camera, item, place=place, start=start, made=tuple(made)))
            start += len(item)
        return found

    def _render(self, shots: Sequence[CameraShot], placed: PlacedSteps) -> ShotImages:
        """Begin to render shots of one group; the images are complete when the device has finished."""
        made, first = set().union(*(shot.made for shot in shots)), shots[0].pinhole
        rgb = self._smooth_colors(shots, placed) if first.sensor.antialiasing > 1 else None
        images, seen = self._draw(shots, placed, normals="normals" in made, meshes="flow" in made)
        together = ShotImages(images, sum(map(len, shots)), first.width, first.height, rgb=rgb)
        if {"boxes", "visibility"} & made:
            together.measure_boxes(max(len(shot.layout.labels.instance_names) for shot in shots))
        if "visibility" in made:
            size = {"width": first.width, "height": first.height}
            together.areas = self._outlines.measure(self._names, placed, seen, **size)
        together.fetch(needed_images(made), self._buffers)
        # All shots share one call, because small arrays cost NumPy as much time as large ones.
        poses = [
            np.concatenate(values) for values in zip(*((shot.positions, shot.wxyz) for shot in shots), strict=True)
        ]
        together.poses = cameras.world_T_camera(*poses)
        return together

    def _draw(
        self,
        shots: Sequence[CameraShot],
        placed: PlacedSteps,
        *,
        normals: bool = False,
        meshes: bool = False,
        samples: int = 1,
    ) -> tuple[Any, PlacedViews]:
        """Render shots into buffers on the device, which the next call overwrites; return the images and the views."""
        first, counts = shots[0].pinhole, [len(shot) for shot in shots]
        size = samples * first.width, samples * first.height

        def each(values: Sequence[Any]) -> NDArray[Any]:
            return np.repeat(np.array(values), counts)

        fine = [replace(shot.pinhole, width=size[0], height=size[1]) for shot in shots]
        seen = self._table.see(
            placed,
            layouts=each([shot.states.layout for shot in shots]),
            steps=np.concatenate([np.arange(shot.start, shot.start + len(shot)) for shot in shots]),
            positions=np.concatenate([shot.positions for shot in shots]),
            rotations=transforms.quat_to_matrix(np.concatenate([shot.wxyz for shot in shots])),
            focals=each([cameras.intrinsics(camera)[0, 0] for camera in fine]),
            tones=each([TONE_STARTS[camera.sensor.tone] for camera in fine]),
            size=size,
        )
        images = ImageSize(
            count=self.stack if len(shots) == 1 else len(seen),
            width=size[0],
            height=size[1],
            has_normals=normals,
            has_meshes=meshes,
        )
        # A mounted camera moves, so all of its pixels change.
        if len(self._layouts) > 1 or len(shots) > 1 or first.mount:
            return self._renderer.render(self._table, placed, seen, size=images), seen
        return self._renderer.render_still(self._table, placed, seen, size=images, camera=fine[0]), seen

    def _smooth_colors(self, shots: Sequence[CameraShot], placed: PlacedSteps) -> NDArray[np.uint8]:
        """Return antialiased colors (V, H, W, 3) of all states of shots, from larger images."""
        camera, count = shots[0].pinhole, sum(map(len, shots))
        samples = camera.sensor.antialiasing
        images, _ = self._draw(shots, placed, samples=samples)
        shape = count, camera.height, samples, camera.width, samples, 3
        # Colors are averaged as linear light, as in a sensor; averages of sRGB bytes would darken edges.
        light = LIGHT_OF_BYTE[images.rgb[: np.prod(shape)].numpy().reshape(shape)]
        return np.rint(255.0 * encoded(light.mean(axis=(2, 4)))).astype(np.uint8)

    def _choose_stack(self, seen: Sequence[Camera]) -> int:
        """Return the number of views that fit into a quarter of a GPU's free memory, at most 256."""
        if not self.device.is_cuda:
            return _STACK_ON_CPU
        pixels = max(camera.width * camera.height * camera.sensor.antialiasing**2 for camera in seen)
        # Warp's arrays have at most 2**31 - 1 elements: three for each pixel of the colors.
        most = min(256, (2**31 - 1) // (3 * pixels))
        return int(np.clip(self.device.free_memory // 4 // (pixels * _BYTES_PER_PIXEL), 1, most))


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
