"""Rasterization of the meshes of K steps for a camera, and of each mesh for the light."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.geometry import cameras
from nimbus.datagen.render.raytracer import raster
from nimbus.datagen.render.raytracer.geometry import Geometry
from nimbus.datagen.render.raytracer.kernel_data import BASE, MAP, Raster

_WIDER = 1.01
"""Margin around a mesh in its height map [px]: a lookup reads the four pixels around a point; the rest is rounding."""
_ROUNDING = 1e-5
"""Margin above the error of single precision [m]."""


def draw_view(
    geometry: Geometry,
    camera: Camera,
    positions: FloatArray,
    world_R_camera: FloatArray,
    places: FloatArray,
    world_R_mesh: FloatArray,
) -> Any:
    """Draw all meshes into a ``Raster``.

    Args:
        geometry: G meshes.
        camera: Camera, for size and field of view.
        positions: (K, 3) camera positions [m].
        world_R_camera: (K, 3, 3), OpenGL axes.
        places: (K, G, 3) mesh positions [m].
        world_R_mesh: (K, G, 3, 3) mesh orientations.
    """
    camera_R_world = np.swapaxes(world_R_camera, -1, -2)[:, None]
    to_pixels = cameras.intrinsics(camera) @ np.diag((1.0, -1.0, -1.0))
    shown = np.broadcast_to(~geometry.flat, places.shape[:2])
    offsets = (camera_R_world @ (places - positions[:, None])[..., None])[..., 0] @ to_pixels.T
    meshes = _raster(geometry, to_pixels @ camera_R_world @ world_R_mesh, offsets, shown)
    meshes.width, meshes.height, meshes.perspective = camera.width, camera.height, True
    raster.draw(geometry.scene, meshes, steps=len(positions), device=geometry.boxes.mesh.device)
    return meshes


def draw_heights(
    geometry: Geometry,
    steps: Any,
    places: FloatArray,
    world_R_mesh: FloatArray,
    shown: NDArray[np.bool_],
    axes: FloatArray,
    *,
    draw: bool,
) -> FloatArray:
    """Draw height maps of meshes toward the light, and set the location of each mesh's map.

    A map depends only on the pose of its mesh, which is scaled to fill the map.

    Args:
        geometry: G meshes.
        steps: K steps; receives ``heights``, ``pictures``, ``map_corner``, ``map_scale`` and ``margins``.
        places: (K, G, 3) mesh positions [m].
        world_R_mesh: (K, G, 3, 3) mesh orientations.
        shown: (K, G) True for meshes to draw.
        axes: (3, 3) unit vectors along the columns and the rows of a map, and toward the light.
        draw: Draw the maps; when False, ``heights`` holds no pixels.

    Returns:
        (K, G, 2, 2) lower and upper corners of all meshes across the light with their margins, along the rows and the
        columns [m].
    """
    turned, offset = axes @ world_R_mesh, places @ axes.T
    middle, half = geometry.bounds.mean(axis=1), 0.5 * np.ptp(geometry.bounds, axis=1)
    centre = (turned @ middle[:, :, None])[..., 0] + offset
    reach = (np.abs(turned) @ half[:, :, None])[..., 0]
    scale = MAP / np.maximum(2.0 * reach, 1e-6)
    corner = centre - reach
    margins = np.where(geometry.flat[:, None], 0.0, _WIDER / scale[..., 1::-1])
    scale[..., 2], corner[..., 2] = 1.0, -BASE
    offsets, first = scale * (offset - corner), int(geometry.flat.sum())
    # Maps lie one below the other in a single image, so that one launch draws all of them.
    offsets[..., 1] += MAP * (np.arange(len(geometry.flat)) - first)
    # Maps of meshes that have not moved are drawn once: most of the scene is static.
    changed = np.ones(shown.shape, dtype=bool)
    changed[1:] = np.any(turned[1:] != turned[:-1], axis=(-2, -1)) | np.any(offset[1:] != offset[:-1], axis=-1)
    heights = _raster(geometry, scale[..., None] * turned, offsets, shown & changed)
    pictures = np.arange(len(shown))[:, None] * (len(geometry.flat) - first) + np.arange(len(geometry.flat)) - first
    # The numbers of maps grow from step to step, so the running maximum is the map of the latest step with a move.
    pictures = np.maximum.accumulate(np.where(changed, pictures, -first), axis=0)
    steps.pictures = wp.array(pictures.ravel(), dtype=wp.int32, device=geometry.boxes.mesh.device)
    heights.width, heights.height, heights.perspective = MAP, MAP * (len(geometry.flat) - first), False
    device = geometry.boxes.mesh.device
    steps.map_corner, steps.map_scale, steps.margins = (
        wp.array(values.reshape(-1, values.shape[-1])[:, :2].astype(np.float32), dtype=wp.vec2, device=device)
        for values in (corner, scale, margins)
    )
    if draw:
        raster.draw(geometry.scene, heights, steps=len(shown), device=device)
    steps.heights = heights
    low = corner[..., 1::-1] - margins - _ROUNDING
    return np.stack([low, low + 2.0 * (reach[..., 1::-1] + margins + _ROUNDING)], axis=-2)


def _raster(geometry: Geometry, matrices: FloatArray, offsets: FloatArray, shown: NDArray[np.bool_]) -> Any:
    device, found = geometry.boxes.mesh.device, Raster()
    found.matrices = wp.array(matrices.reshape(-1, 3, 3), dtype=wp.mat33, device=device)
    found.offsets = wp.array(offsets.reshape(-1, 3), dtype=wp.vec3, device=device)
    found.shown = wp.array(shown.astype(np.uint8).ravel(), dtype=wp.uint8, device=device)
    return found
