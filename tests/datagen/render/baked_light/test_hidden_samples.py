"""Samples inside of solids: the ends of walls that overlap at a corner."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from nimbus.datagen.render.baked_light.basis import StillScene, bake, join_faces
from nimbus.datagen.render.baked_light.hidden_samples import hidden_samples, replacements
from nimbus.datagen.render.baked_light.light_basis import PLACES
from tests.support.baked_scene import box

Vector: TypeAlias = tuple[float, float, float]
BOXES: dict[str, tuple[Vector, Vector]] = {
    "floor": ((0, 0, -0.1), (2, 2, 0)),
    "ceiling": ((0, 0, 2), (2, 2, 2.1)),
    "south": ((0, 0, 0), (2, 0.1, 2)),
    "north": ((0, 1.9, 0), (2, 2, 2)),
    "west": ((0, 0, 0), (0.1, 2, 2)),
    "east": ((1.9, 0, 0), (2, 2, 2)),
}
SOUTH = list(BOXES).index("south") * 12


def closed_room() -> StillScene:
    """Return a room without an opening, whose walls overlap at the corners, and its lamp."""
    scene = join_faces([(*box(low, high), name) for name, (low, high) in BOXES.items()], np.array([1.0, 1.0, 0.5]))
    return replace(scene, lamps=np.array([[1.0, 1.0, 1.9]]), lamp_sources=np.zeros(1, dtype=np.int64))


def test_no_daylight_comes_in_at_overlapping_corners():
    scene = closed_room()
    basis = bake(scene)
    inner = [face for face in range(SOUTH, SOUTH + 12) if np.allclose(scene.corners[face, :, 1], 0.1)]
    counts = (basis.steps[inner] + 1) * (basis.steps[inner] + 2) // 2
    shown = np.concatenate([basis.samples[s : s + n] for s, n in zip(basis.start[inner], counts, strict=True)])
    assert len(inner) == 2
    assert basis.bounce[shown, PLACES:].max() == 0.0
    assert np.median(basis.direct[shown, 0]) > 0.1


def test_a_hidden_sample_takes_the_nearest_visible_one_of_its_plane():
    points = np.array([[0, 0, 0], [0.3, 0, 0], [0.1, 0, 0.1], [0.1, 0, 0], [5, 0, 0]], dtype=np.float32)
    normals = np.tile(np.array([0, 0, 1], dtype=np.float32), (5, 1))
    groups = np.array([0, 0, 0, 1, 0])
    hidden = np.array([True, False, False, False, True])
    assert replacements(hidden, points, normals, groups).tolist() == [1, 1, 2, 3, 4]


def test_a_sample_that_sees_a_lamp_or_the_sky_is_visible():
    behind = np.array([1.0, 1.0, 1.0, 0.3], dtype=np.float32)
    lit = np.array([[0.0], [0.2], [0.0], [0.0]], dtype=np.float32)
    sky = np.array([[0.0], [0.0], [0.3], [0.0]])
    assert hidden_samples(behind, lit, sky).tolist() == [True, False, False, False]
