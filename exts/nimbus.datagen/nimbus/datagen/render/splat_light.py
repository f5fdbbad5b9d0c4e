"""Colors of splats sampled from a scene: its textures under its baked light."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nimbus.datagen.arrays import FloatArray, IntArray
from nimbus.datagen.episode.layout import Light, VisualLayout
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.render.baked_light.face_grids import FaceGrid
from nimbus.datagen.render.raytracer.tone_tables import BYTE_OF_LIGHT
from nimbus.datagen.render.render_inputs import RenderPart
from nimbus.datagen.render.scene_light import bake_scene, light_scene
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.sample import SurfaceSamples, paint_samples
from nimbus.datagen.textures.color import linear

CAPTURE_LIGHT = Light(direction=(0.0, 0.0, -1.0), color=(0.9, 0.85, 0.75), sky=(0.5, 0.55, 0.6), ground=(0.2, 0.2, 0.2))
"""Light under which homes are captured: slightly warm lamps, and dim daylight through the windows."""
_BRIGHTEST = 4.0
"""Linear light at the end of the table from light to sRGB bytes."""


def light_samples(
    scene: NavigationScene, parts: tuple[RenderPart, ...], cloud: SplatCloud, samples: SurfaceSamples
) -> SplatCloud:
    """Set the colors of sampled splats from the texture and the baked light at their positions.

    Args:
        scene: Scene that they were sampled from.
        parts: Parts of the scene, in its order.
        cloud: The splats.
        samples: Positions of the splats, on the faces of all parts numbered consecutively.
    """
    visual = VisualLayout(light=CAPTURE_LIGHT, cameras=())
    parts, basis = bake_scene(scene, parts)
    values = light_scene(basis, parts, visual).values.astype(float)[:, :3]
    uvs = np.concatenate([part.triangles.uvs[part.triangles.faces] for part in parts])
    owner = np.repeat(np.arange(len(parts)), [len(part.triangles.faces) for part in parts])[samples.faces]
    colors = np.empty((len(cloud), 3))
    for number, part in enumerate(parts):
        chosen = owner == number
        if chosen.any():
            colors[chosen] = paint_samples(samples, uvs, part.image, chosen)
    shone = linear(colors) * grid_light(basis.grid, values, samples.faces, samples.shares)
    table = BYTE_OF_LIGHT["plain"]
    places = np.minimum((shone * (len(table) / _BRIGHTEST)).astype(int), len(table) - 1)
    return replace(cloud, colors=(table[places] / 255.0).astype(np.float32))


def grid_light(grid: FaceGrid, values: FloatArray, faces: IntArray, shares: FloatArray) -> FloatArray:
    """Return linear light (N, 3), interpolated at points on faces.

    Args:
        grid: Grid of the light samples on faces.
        values: (S, 3) linear light of each sample.
        faces: (N,) face of each point.
        shares: (N, 3) barycentric coordinates of each point.
    """
    steps = grid.steps[faces].astype(np.int64)
    first, second = shares[:, 0] * steps, shares[:, 1] * steps
    row, column = (np.minimum(np.floor(part).astype(np.int64), np.maximum(steps - 1, 0)) for part in (first, second))
    column = np.minimum(column, np.maximum(steps - 1 - row, 0))
    one, other = first - row, second - column
    is_upper = (one + other > 1.0) & (row + column + 2 <= steps)
    # A cell of the grid is two triangles: the one with the corner (row, column), or the opposite one.
    weights = np.where(
        is_upper[:, None],
        np.column_stack([1.0 - other, 1.0 - one, one + other - 1.0]),
        np.column_stack([one, other, 1.0 - one - other]),
    )
    third = row + is_upper, column + is_upper
    total = np.zeros((len(faces), 3))
    for weight, (i, j) in zip(weights.T, ((row + 1, column), (row, column + 1), third), strict=True):
        i, j = np.minimum(i, steps), np.minimum(j, steps - np.minimum(i, steps))
        place = grid.start[faces] + i * (steps + 1) - i * (i - 1) // 2 + j
        total += weight[:, None] * values[grid.samples[place]]
    return np.maximum(total, 0.0)
