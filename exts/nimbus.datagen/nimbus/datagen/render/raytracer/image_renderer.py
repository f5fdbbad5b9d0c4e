"""Rendering of camera images on the device: all steps at once, or each step from the previous one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.render.raytracer.kernel_data import TILE, Images
from nimbus.datagen.render.raytracer.raytrace import render_views
from nimbus.datagen.render.raytracer.still import Shown, choose_tiles, find_changes

if TYPE_CHECKING:
    from nimbus.datagen.render.raytracer.geometry import Geometry

_BACKGROUND = wp.vec3(0.55, 0.57, 0.6)
"""Linear color of rays that leave the scene."""


class ImageRenderer:
    """Renders views of one episode at a time, and keeps the last image of each static camera.

    Args:
        device: Device to render on.
        reuse: Keep pixels that do not change from step to step; results are bit-identical either way.
    """

    def __init__(self, device: wp.Device, *, reuse: bool) -> None:
        self._device, self._reuse = device, reuse
        self._images: dict[tuple[int | bool | str, ...], Any] = {}
        self._shown: dict[Camera, Shown] = {}

    def forget(self) -> None:
        """Drop kept pixels before another episode."""
        self._shown.clear()

    def render(
        self,
        geometry: Geometry,
        light: Any,
        camera: Camera,
        now: Shown,
        *,
        stack: int,
        normals: bool,
        meshes: bool = False,
    ) -> Any:
        """Render at most ``stack`` steps into images that the next call overwrites.

        Args:
            geometry: Meshes of the episode.
            light: A ``DeviceLight``.
            camera: Camera of ``now.view``.
            now: The steps.
            stack: Number of images to allocate.
            normals: Also write normals.
            meshes: Also write the numbers of meshes.
        """
        images = self._buffers(camera, stack, normals=normals, meshes=meshes)
        geometry.scene.to_srgb = geometry.tones[camera.sensor.tone]
        runs = camera.height * -(-camera.width // TILE)
        inputs = [geometry.scene, light, now.steps, now.view, _BACKGROUND, images]
        # A mounted camera moves, so that all of its pixels change.
        if not self._reuse or camera.mount:
            wp.launch(render_views, dim=len(now.positions) * runs, inputs=[*inputs, 0], device=self._device)
            return images
        before, view = self._shown.get(camera), now.view
        view.is_still = True
        tiles = -(-camera.height // TILE) * -(-camera.width // TILE)
        view.stale = wp.zeros(tiles, dtype=wp.uint8, device=self._device)
        view.reach = before.view.reach if before else wp.zeros(runs, dtype=wp.vec4, device=self._device)
        changes = find_changes(geometry, now, before)
        # One launch per step, because each begins with the pixels of the step before.
        for step in range(len(now.positions)):
            choose_tiles(geometry.scene, now, before, changes, step)
            if step or before:
                _copy_step(images, step - 1 if step else changes.step_before, step, camera.width * camera.height)
            wp.launch(render_views, dim=runs, inputs=[*inputs, step * runs], device=self._device)
        self._shown[camera] = now
        return images

    def _buffers(self, camera: Camera, stack: int, *, normals: bool, meshes: bool) -> Any:
        """Return image buffers, kept between launches; each static camera has its own."""
        shape = stack, camera.height, camera.width
        key = (*shape, normals, meshes, "" if camera.mount else camera.name)
        if key not in self._images:
            pixels = int(np.prod(shape))
            self._images[key] = images = Images()
            images.rgb = wp.zeros(pixels * 3, dtype=wp.uint8, device=self._device)
            images.depth = wp.zeros(pixels, dtype=wp.float32, device=self._device)
            images.instance = wp.zeros(pixels, dtype=wp.uint8, device=self._device)
            images.semantic = wp.zeros(pixels, dtype=wp.uint8, device=self._device)
            images.with_normals, images.with_meshes = normals, meshes
            images.mesh = wp.zeros(pixels if meshes else 0, dtype=wp.int32, device=self._device)
            images.normals = wp.zeros(pixels * 3 if normals else 0, dtype=wp.int8, device=self._device)
        return self._images[key]


def _copy_step(images: Any, source: int, step: int, pixels: int) -> None:
    """Copy all pixels of one step to another; does nothing when both are the same."""
    if source == step:
        return
    for name, channels in (("rgb", 3), ("depth", 1), ("instance", 1), ("semantic", 1), ("normals", 3), ("mesh", 1)):
        values, size = getattr(images, name), pixels * channels
        if len(values):
            wp.copy(values, values, dest_offset=step * size, src_offset=source * size, count=size)
