"""Coverage of pixels by faces: bounded memory and time for long faces, and for many faces over one another."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.coverage import cover_pixels, estimate_covered
from nimbus.datagen.geometry.drawing import PaintedMesh, draw

SQUARE = np.array([[0, 0, 0], [384, 0, 0], [384, 384, 0], [0, 384, 0]], dtype=np.float64)


def layers(count: int) -> FloatArray:
    """Return triangles (2 * count, 3, 3) over the whole image, each layer a little in front of the one before."""
    triangles = SQUARE[[[0, 1, 2], [0, 2, 3]]]
    return np.concatenate([triangles + (0, 0, 1e-6 * layer) for layer in range(count)])


def test_each_pixel_has_the_face_whose_edges_surround_it() -> None:
    random = np.random.default_rng(0)
    triangles = random.uniform(-10, 40, (200, 3, 2))
    seen = cover_pixels(triangles, 30, 20, both_sides=True)
    found = set(zip(seen.face.tolist(), seen.pixel.tolist(), strict=True))
    middles = np.stack([np.arange(600) % 30 + 0.5, np.arange(600) // 30 + 0.5], axis=1)
    for face, (a, b, c) in enumerate(triangles):
        sides = [
            np.cross(np.append(q - p, 0), np.c_[middles - p, np.zeros(600)])[:, 2] for p, q in ((a, b), (b, c), (c, a))
        ]
        inside = (np.array(sides) >= 0).all(axis=0) | (np.array(sides) <= 0).all(axis=0)
        assert {pixel for there, pixel in found if there == face} == set(np.flatnonzero(inside).tolist())


@pytest.mark.long
def test_layers_take_the_memory_of_one_group() -> None:
    """60 layers are 9 million pixels; together they would take 0.9 GB."""
    cover_pixels(layers(10), 384, 384)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen = cover_pixels(layers(60), 384, 384)
    assert len(seen.pixel) == 384 * 384 and set(seen.face) == {118, 119}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


def test_long_narrow_faces_take_their_own_pixels_alone() -> None:
    """The bounding boxes of 2,000 diagonals are 800 million pixels."""
    diagonal = np.array([[0, 0], [640, 639.5], [640, 640]], dtype=np.float64)
    begin = time.process_time()
    seen = cover_pixels(np.tile(diagonal, (2000, 1, 1)), 640, 640)
    assert time.process_time() - begin < 10 and len(seen.pixel) >= 2000


def test_very_many_layers_are_drawn_with_larger_pixels() -> None:
    count = 1000
    triangles = layers(count) - (192, 192, 0)
    assert estimate_covered(triangles + (192, 192, 0), 384, 384) > 1e8
    mesh = PaintedMesh(
        vertices=triangles.reshape(-1, 3),
        normals=np.tile([0.0, 0, 1], (6 * count, 1)),
        uvs=np.zeros((6 * count, 2)),
        faces=np.arange(6 * count, dtype=np.int32).reshape(-1, 3),
        texture=np.full((1, 1, 3), 90, dtype=np.uint8),
    )
    begin = time.process_time()
    picture, covered = draw(mesh, np.eye(3), center=np.zeros(3), span=400.0, size=384)
    assert time.process_time() - begin < 10
    assert picture.shape == (384, 384, 3) and abs(covered.mean() - (384 / 400) ** 2) < 0.05


def test_no_faces_cover_nothing() -> None:
    assert not len(cover_pixels(np.zeros((0, 3, 3)), 8, 8).pixel)
