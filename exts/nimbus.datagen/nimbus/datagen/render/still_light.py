"""Baked light for static parts of a scene, and colors of the reflecting surfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Dome, SurfaceLook, Vector, VisualLayout
from nimbus.datagen.render.baked_light.basis import group_of, join_faces, light_basis
from nimbus.datagen.render.baked_light.light_basis import GROUPS, LightBasis
from nimbus.datagen.render.baked_light.weighing import WeighedLight, sky_parts, weigh
from nimbus.datagen.render.render_inputs import RenderPart
from nimbus.datagen.textures.color import linear
from nimbus.datagen.textures.environment_map import read_radiance
from nimbus.datagen.textures.procedural import surface_image

_FALLBACK = 0.5
"""Albedo of an empty group."""
_MOST_TEXELS = 4096
"""Number of texels, evenly spread, from which an image's mean color is computed."""


@lru_cache(maxsize=4)
def bake_parts(parts: tuple[RenderPart, ...], workplace: Vector) -> tuple[tuple[RenderPart, ...], LightBasis]:
    """Add grids of light to static parts; return them with the basis of that light.

    Args:
        parts: Parts of the scene, without objects.
        workplace: Center of the work surface [m].
    """
    paired = [part if part.body else _paired(part) for part in parts]
    still = [part for part in paired if not part.body]
    faces = [(t.vertices[t.faces], t.normals[t.faces], part.instance) for part in still for t in (part.triangles,)]
    basis = light_basis(join_faces(faces, np.array(workplace)))
    grid, start, found = basis.grid, 0, []
    for part in paired:
        count = 0 if part.body else len(part.triangles.faces)
        found.append(replace(part, grid=grid.face_range(start, start + count)) if count else part)
        start += count
    return tuple(found), basis


def light_parts(basis: LightBasis, parts: Sequence[RenderPart], visual: VisualLayout) -> WeighedLight:
    """Combine a scene's light basis for the light and surfaces of an episode."""
    return weigh(basis, visual.light, group_colors(parts, visual.surfaces), _sky(visual.dome) if visual.dome else None)


@lru_cache(maxsize=64)
def _sky(dome: Dome) -> FloatArray:
    """Return the radiance of the sky's parts in an episode's environment map."""
    picture = read_radiance(Path(dome.texture), content=dome.content).astype(float)
    return sky_parts(picture, turn=dome.turn, intensity=dome.intensity)


def _paired(part: RenderPart) -> RenderPart:
    """Order the faces of rectangles as in the renderer, because grids belong to faces."""
    rectangles = None if part.is_furnishing else part.triangles.as_rectangles()
    return part if rectangles is None else replace(part, triangles=rectangles)


def group_colors(parts: Sequence[RenderPart], surfaces: Mapping[str, SurfaceLook]) -> FloatArray:
    """Return (GROUPS, 3) mean linear albedo, weighted by area."""
    total, area = np.zeros((GROUPS, 3)), np.zeros(GROUPS)
    for part in parts:
        if part.grid is None:
            continue
        surface = surfaces.get(part.instance.partition(".")[0], SurfaceLook())
        size, color = _mean_color(part)
        painted = _mean(surface_image(surface))
        color = (color if painted is None else painted) * linear(np.array(surface.color))
        group = group_of(part.instance)
        total[group], area[group] = total[group] + size * color, area[group] + size
    return np.where(area[:, None] > 0, total / np.maximum(area, 1e-9)[:, None], _FALLBACK)


@lru_cache(maxsize=1024)
def _mean_color(part: RenderPart) -> tuple[float, FloatArray]:
    """Return the area [m^2] and mean linear color of the used region of a part's own texture."""
    t = part.triangles
    corners = t.vertices[t.faces].astype(float)
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    uv = t.uvs[t.faces].mean(axis=1) % 1.0
    height, width = part.image.shape[:2]
    columns = np.minimum((uv[:, 0] * width).astype(int), width - 1)
    rows = np.minimum(((1.0 - uv[:, 1]) * height).astype(int), height - 1)
    colors = linear(part.image[rows, columns] / 255.0)
    return float(areas.sum()), np.average(colors, axis=0, weights=np.maximum(areas, 1e-12))


def _mean(image: NDArray[np.uint8] | None) -> FloatArray | None:
    """Return the (3,) mean linear color of an image."""
    if image is None:
        return None
    texels = image.reshape(-1, 3)
    return linear(texels[:: max(1, len(texels) // _MOST_TEXELS)] / 255.0).mean(axis=0)
