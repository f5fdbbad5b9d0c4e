"""Rendering of camera images on the device: all steps at once, or each step from the previous one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import warp as wp

from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.render.raytracer.kernel_data import TILE, Images
from nimbus.datagen.render.raytracer.raytrace import render_views
from nimbus.datagen.render.raytracer.scene_table import PlacedSteps, PlacedViews, SceneTable
from nimbus.datagen.render.raytracer.still import Shown, choose_tiles, find_changes

_BACKGROUND = wp.vec3(0.55, 0.57, 0.6)
"""Linear color of rays that leave the scene."""


@dataclass(frozen=True, kw_only=True)
class ImageSize:
    """Number and size of images."""

    count: int
    width: int
    height: int
    has_normals: bool = False
    has_meshes: bool = False
    """True to also write the number of the visible mesh of each pixel."""


class ImageRenderer:
    """Renderer of views that keeps the last image of each static camera of an episode.

    Args:
        device: Device to render on.
        reuse: Keep pixels that do not change from step to step; results are bit-identical either way.
    """

    def __init__(self, device: wp.Device, *, reuse: bool) -> None:
        self._device, self._reuse = device, reuse
        self._images: dict[tuple[ImageSize, str], tuple[int, Any]] = {}
        self._shown: dict[Camera, Shown] = {}

    def forget(self) -> None:
        """Drop kept pixels before another episode."""
        self._shown.clear()

    def render(self, table: SceneTable, placed: PlacedSteps, seen: PlacedViews, *, size: ImageSize) -> Any:
        """Render views into images that the next call overwrites.

        Args:
            table: Scenes of the layouts.
            placed: The steps of the views.
            seen: The views.
            size: Images to allocate.
        """
        images, view = self._buffers(size, ""), seen.views
        self._launch(table, placed, view, images, count=len(seen) * view.height * -(-view.width // TILE))
        return images

    def render_still(
        self, table: SceneTable, placed: PlacedSteps, seen: PlacedViews, *, size: ImageSize, camera: Camera
    ) -> Any:
        """Render all steps of a static camera in one layout, each from the step before.

        Args:
            table: Scene of the layout.
            placed: The steps, one for each view.
            seen: The views.
            size: Images to allocate.
            camera: The camera; its latest image is kept.
        """
        if not self._reuse:
            return self.render(table, placed, seen, size=size)
        view = seen.views
        images, now, before = self._buffers(size, camera.name), Shown(placed=placed, view=view), self._shown.get(camera)
        runs = view.height * -(-view.width // TILE)
        view.is_still = True
        tiles = -(-view.height // TILE) * -(-view.width // TILE)
        view.stale = wp.zeros(tiles, dtype=wp.uint8, device=self._device)
        view.reach = before.view.reach if before else wp.zeros(runs, dtype=wp.vec4, device=self._device)
        changes = find_changes(table.scenes, now, before, is_baked=table.has_seams)
        # Each step is a separate launch, because it begins with the pixels of the step before.
        for step in range(len(placed)):
            choose_tiles(table.scenes, now, before, changes, step)
            if step or before:
                _copy_step(images, step - 1 if step else changes.step_before, step, view.width * view.height)
            self._launch(table, placed, view, images, count=runs, first=step * runs)
        self._shown[camera] = now
        return images

    def _launch(
        self, table: SceneTable, placed: PlacedSteps, view: Any, images: Any, *, count: int, first: int = 0
    ) -> None:
        inputs = [table.scenes, table.lights, placed.steps, view, _BACKGROUND, images, first]
        wp.launch(render_views, dim=count, inputs=inputs, device=self._device)

    def _buffers(self, size: ImageSize, camera: str) -> Any:
        """Return image buffers, kept between launches and enlarged on demand; each static camera has its own."""
        key = replace(size, count=0), camera
        if key not in self._images or self._images[key][0] < size.count:
            pixels = size.count * size.height * size.width
            images = Images()
            images.rgb = wp.zeros(pixels * 3, dtype=wp.uint8, device=self._device)
            images.depth = wp.zeros(pixels, dtype=wp.float32, device=self._device)
            images.instance = wp.zeros(pixels, dtype=wp.uint8, device=self._device)
            images.semantic = wp.zeros(pixels, dtype=wp.uint8, device=self._device)
            images.with_normals, images.with_meshes = size.has_normals, size.has_meshes
            images.mesh = wp.zeros(pixels if size.has_meshes else 0, dtype=wp.int32, device=self._device)
            images.normals = wp.zeros(pixels * 3 if size.has_normals else 0, dtype=wp.int8, device=self._device)
            self._images[key] = size.count, images
        return self._images[key][1]


def _copy_step(images: Any, source: int, step: int, pixels: int) -> None:
    """Copy all pixels of one step to another; do nothing when both are the same."""
    if source == step:
        return
    for name, channels in (("rgb", 3), ("depth", 1), ("instance", 1), ("semantic", 1), ("normals", 3), ("mesh", 1)):
        values, size = getattr(images, name), pixels * channels
        if len(values):
            wp.copy(values, values, dest_offset=step * size, src_offset=source * size, count=size)
