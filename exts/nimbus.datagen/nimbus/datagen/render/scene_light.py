"""Baked light of a whole navigation scene, and its combination from lamps and windows for an episode."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Light, Vector, VisualLayout
from nimbus.datagen.navigate.ceiling_lamps import ceiling_lamps
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.render.baked_light.basis import StillScene, light_basis
from nimbus.datagen.render.baked_light.light_basis import GROUPS, PLACES, LightBasis
from nimbus.datagen.render.baked_light.weighing import DAYLIGHT, WeighedLight, weigh_scene
from nimbus.datagen.render.render_inputs import RenderPart
from nimbus.datagen.render.still_light import group_colors

UNLIT = Light(direction=(0.0, 0.0, -1.0), color=(0.0, 0.0, 0.0), sky=(1.0, 1.0, 1.0), ground=(1.0, 1.0, 1.0))
"""Light that shows textures as they are."""
DARK = replace(UNLIT, sky=(0.0, 0.0, 0.0), ground=(0.0, 0.0, 0.0))
"""No light, for engines in which textures that contain light glow."""
PlacedLamp: TypeAlias = tuple[Vector, Vector]
"""Position [m] and linear color of a lamp."""
_GROUP = {"floor": 0, "wall": 1, "ceiling": 3}
"""Group of surfaces by class; group 4 holds everything else, and group 2, work surfaces, is empty."""


@lru_cache(maxsize=2)
def bake_scene(scene: NavigationScene, parts: tuple[RenderPart, ...]) -> tuple[tuple[RenderPart, ...], LightBasis]:
    """Return the parts of a scene with grids of light, and the basis of that light.

    Args:
        scene: The scene; if it has no lamps, lamps are placed below its ceilings.
        parts: Parts of the scene, in its order.
    """
    triangles = [part.triangles for part in parts]
    classes = {thing.name: thing.object_class for thing in scene.things}
    groups = [_GROUP.get(classes.get(part.instance, ""), GROUPS - 1) for part in parts]
    lamps, sources = _lamps(scene)
    still = StillScene(
        corners=np.concatenate([t.vertices[t.faces] for t in triangles]).astype(float),
        normals=np.concatenate([t.normals[t.faces] for t in triangles]).astype(float),
        groups=np.repeat(np.array(groups, dtype=np.uint8), [len(t.faces) for t in triangles]),
        workplace=lamps[0] - (0.0, 0.0, 1.0),
        lamps=lamps,
        lamp_sources=sources,
    )
    basis = light_basis(still)
    starts = np.cumsum([0, *(len(t.faces) for t in triangles)])
    gridded = [
        replace(part, grid=basis.grid.face_range(int(first), int(last)))
        for part, first, last in zip(parts, starts[:-1], starts[1:], strict=True)
    ]
    return tuple(gridded), basis


def light_scene(basis: LightBasis, parts: tuple[RenderPart, ...], visual: VisualLayout) -> WeighedLight:
    """Combine the light basis of a scene for the light and the surfaces of an episode."""
    return weigh_scene(basis, visual.light, group_colors(parts, visual.surfaces))


def place_lamps(scene: NavigationScene, light: Light) -> tuple[PlacedLamp, ...]:
    """Return the lamps of a scene with the colors of an episode's light; none when textures contain the light."""
    if scene.is_lit:
        return ()
    positions, sources = _lamps(scene)
    colors = [lamp.color for lamp in light.lamps] if len(light.lamps) == PLACES else [light.color] * PLACES
    return tuple(
        ((float(x), float(y), float(z)), colors[int(source)])
        for (x, y, z), source in zip(positions, sources, strict=True)
    )


def glow_of_parts(scene: NavigationScene, light: Light) -> tuple[float, ...]:
    """Return the light that each part of a scene emits: daylight behind windows, and textures that contain light."""
    day = DAYLIGHT * sum(light.sky) / 3
    return tuple(1.0 if scene.is_lit else day if part.is_open else 0.0 for part in scene.parts)


def _lamps(scene: NavigationScene) -> tuple[FloatArray, np.ndarray]:
    """Return lamp positions (L, 3) [m] and their sources (L,); lamps of one room share a source."""
    if not len(scene.lamps):
        lamps = ceiling_lamps(scene)
        return lamps, np.arange(len(lamps), dtype=np.int64) % PLACES
    rooms = list(dict.fromkeys(scene.lamp_rooms))
    sources = [rooms.index(room) % PLACES for room in scene.lamp_rooms]
    return np.asarray(scene.lamps, dtype=float), np.array(sources, dtype=np.int64)
