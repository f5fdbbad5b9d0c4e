"""Lamps for scenes that name none: below ceilings and amid open floor, until every floor is in sight of one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nimbus.datagen.arrays import BoolArray, FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.free_space import find_free_space
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.triangle_tests import CollisionMesh

_BODY = BodyShape(radius=0.15, height=1.2, step=0.1)
"""Body whose free space is lit."""
_MOST_LAMPS, _MOST_PLACES = 64, 4000
_REACH = 4.0
"""Largest horizontal distance between a lamp and a floor that it lights [m]."""
_BELOW = 0.1
"""Distance of a lamp from its ceiling [m]."""
_HIGHEST = 2.4
"""Height of a lamp where there is no ceiling [m]."""
_COVERED = 0.3
"""Smallest fraction of floors below a ceiling for which lamps are placed only below ceilings; otherwise lamps could be
above a roof."""


@lru_cache(maxsize=2)
def ceiling_lamps(scene: NavigationScene) -> FloatArray:
    """Return the positions (L, 3) of lamps [m], at least one."""
    mesh = CollisionMesh(scene.corners)
    low, high = mesh.corners.min(axis=(0, 1)).astype(float), mesh.corners.max(axis=(0, 1)).astype(float)
    middle = np.array([[(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, high[2] - _BELOW]])
    try:
        space = find_free_space(mesh, _BODY, where=scene.name)
    except InputError:
        return middle
    nodes = np.flatnonzero(space.component[tuple(space.nodes.T)] >= 0)
    nodes = nodes[:: len(nodes) // _MOST_PLACES + 1]
    places, width = space.positions[nodes] + (0.0, 0.0, _BODY.height), space.node_clearance[nodes]
    above = _distance(mesh, places, np.tile((0.0, 0.0, 1.0), (len(places), 1)))
    if np.isfinite(above).mean() > _COVERED:
        kept = np.isfinite(above)
        places, width, above = places[kept], width[kept], above[kept]
    lamps: list[FloatArray] = []
    is_dark = np.ones(len(places), dtype=bool)
    while is_dark.any() and len(lamps) < _MOST_LAMPS:
        chosen = int(np.argmax(np.where(is_dark, width, -1.0)))
        rise = above[chosen] - _BELOW if np.isfinite(above[chosen]) else _HIGHEST - _BODY.height
        lamp = places[chosen] + (0.0, 0.0, max(float(rise), 0.0))
        lamps.append(lamp)
        is_dark &= ~_sees(mesh, lamp, places)
        is_dark[chosen] = False
    return np.array(lamps) if lamps else middle


def _sees(mesh: CollisionMesh, lamp: FloatArray, places: FloatArray) -> BoolArray:
    """Return True (n,) for the positions (n, 3) that a nearby lamp lights directly."""
    way = places - lamp
    apart = np.linalg.norm(way, axis=1)
    near = np.linalg.norm(way[:, :2], axis=1) < _REACH
    found = np.zeros(len(places), dtype=bool)
    towards = way[near] / np.maximum(apart[near, None], 1e-9)
    found[near] = _distance(mesh, np.broadcast_to(lamp, towards.shape), towards) > apart[near] - 1e-3
    return found


def _distance(mesh: CollisionMesh, origins: FloatArray, directions: FloatArray) -> FloatArray:
    """Return the length (n,) of rays with unit directions (n, 3) up to the first face [m]; infinite without one."""
    faces = mesh.first_faces(origins, directions)
    a, b, c = np.moveaxis(mesh.corners[np.maximum(faces, 0)].astype(float), 1, 0)
    normals = np.cross(b - a, c - a)
    along = np.sum(normals * directions, axis=1)
    length = np.sum(normals * (a - origins), axis=1) / np.where(np.abs(along) < 1e-12, 1e-12, along)
    return np.where(faces < 0, np.inf, length)
