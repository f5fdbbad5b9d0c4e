"""Free space of triangles: conservative, in layers, and refused if it is unusable."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from nimbus.datagen.arrays import Float32Array
from nimbus.datagen.errors import InputError
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.free_space import find_free_space
from nimbus.datagen.navigate.search import PathSearch
from nimbus.datagen.navigate.triangle_tests import CollisionMesh

BODY = BodyShape(radius=0.25, height=1.2, step=0.05)
CLIMBER = BodyShape(radius=0.2, height=1.5, step=0.22)


def boxes(*corners: tuple[tuple[float, float, float], tuple[float, float, float]]) -> Float32Array:
    """Make the triangles (F, 3, 3) of boxes between corners [m]."""
    found = [trimesh.creation.box(bounds=np.array(pair)).triangles for pair in corners]
    return np.concatenate(found).astype(np.float32)


FLOOR = ((0.0, 0.0, -0.1), (6.0, 5.0, 0.0))


def test_no_free_cell_is_near_a_triangle():
    """The distance to triangles is measured independently of the cells."""
    rng = np.random.default_rng(3)
    low = rng.uniform((0, 0, 0), (5, 4, 1), (15, 3))
    mesh = CollisionMesh(boxes(FLOOR, *((tuple(a), tuple(a + rng.uniform(0.1, 0.8, 3))) for a in low)))
    space = find_free_space(mesh, BODY)
    feet = space.positions[space.main_nodes]
    measured = mesh.clearance(feet, low=BODY.step, high=BODY.height, reach=1.0)
    assert len(feet) > 1000
    assert measured.min() >= BODY.radius


def test_clearance_is_the_distance_to_triangles():
    rng = np.random.default_rng(4)
    corners = rng.uniform(-1, 1, (30, 3, 3)).astype(np.float32)
    mesh = CollisionMesh(corners)
    feet = np.column_stack([rng.uniform(-1, 1, (20, 2)), np.full(20, -0.3)])
    found = mesh.clearance(feet, low=0.0, high=0.6, reach=3.0)
    shares = rng.dirichlet((0.4, 0.4, 0.4), 40000)
    points = np.einsum("sk,fkd->fsd", shares, corners).reshape(-1, 3)
    points = points[(points[:, 2] >= -0.3) & (points[:, 2] <= 0.3)]
    sampled = [np.linalg.norm(points[:, :2] - foot[:2], axis=1).min() for foot in feet]
    assert np.all(found <= np.array(sampled) + 1e-5)
    np.testing.assert_allclose(found, sampled, atol=0.02)


def test_mats_on_floors_do_not_narrow_corners():
    """A mat is a second surface above the floor; clearances near it must equal those of a flat floor."""
    blocks = ((2.0, 0.0, 0.0), (2.5, 2.2, 2.0)), ((2.0, 2.9, 0.0), (2.5, 5.0, 2.0)), ((2.6, 2.9, 0.0), (2.7, 3.1, 2.0))
    mat = np.array([(3.5, 1.0, 0.03), (5.0, 1.0, 0.03), (5.0, 2.0, 0.03), (3.5, 2.0, 0.03)], dtype=np.float32)
    room = boxes(FLOOR, *blocks)
    bare = find_free_space(CollisionMesh(room), BODY)
    covered = find_free_space(CollisionMesh(np.concatenate([room, mat[[[0, 1, 2], [0, 2, 3]]]])), BODY)
    assert len(covered.nodes) > len(bare.nodes) + 500
    feet = bare.positions[bare.main_nodes]
    np.testing.assert_allclose(covered.clearance_at(feet), bare.clearance_at(feet), atol=1e-4)


@pytest.mark.parametrize("has_roof", [True, False])
def test_closed_roofs_are_no_floor(has_roof: bool):
    """The top of a flat roof is larger than the floor below it, but unreachable."""
    low, high = np.array([(0, 0), (0, 4.9), (0, 0), (5.9, 0)]), np.array([(6, 0.1), (6, 5), (0.1, 5), (6, 5)])
    walls = [((*a, 0.0), (*b, 2.5)) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    roof = [((0.0, 0.0, 2.5), (6.0, 5.0, 2.6))] if has_roof else []
    space = find_free_space(CollisionMesh(boxes(FLOOR, *walls, *roof)), BODY)
    assert np.abs(space.positions[space.main_nodes, 2]).max() < 0.01
    assert 15 < space.area < 25


def test_low_passages_are_closed_for_tall_bodies():
    bridge = ((2.5, 0.0, 1.0), (3.0, 5.0, 1.1))
    areas = [
        find_free_space(CollisionMesh(boxes(FLOOR, bridge)), BodyShape(radius=0.2, height=height, step=0.02)).area
        for height in (0.9, 1.5)
    ]
    assert areas[0] > 1.7 * areas[1]


def test_stairs_join_storeys():
    steps = [((1.0 + 0.28 * k, 0.0, 0.0), (1.28 + 0.28 * k, 1.2, 0.17 * (k + 1))) for k in range(12)]
    upper = ((1.0 + 0.28 * 12, 0.0, 1.94), (8.0, 5.0, 2.04))
    mesh = CollisionMesh(boxes(((0.0, 0.0, -0.1), (4.0, 5.0, 0.0)), upper, *steps))
    space = find_free_space(mesh, CLIMBER)
    ends = space.locate(np.array([(0.5, 4.0, 0.0), (7.0, 4.0, 2.04)]))
    path = PathSearch(space).path(int(ends[0]), int(ends[1]))
    assert path is not None
    rises = np.diff(space.positions[path][:, 2])
    assert rises.max() < 0.22
    assert rises.sum() == pytest.approx(2.04, abs=0.01)
    walker = find_free_space(mesh, BODY)
    ends = walker.locate(np.array([(0.5, 4.0, 0.0), (7.0, 4.0, 2.04)]))
    assert PathSearch(walker).path(int(ends[0]), int(ends[1])) is None


@pytest.mark.parametrize(
    ("corners", "said"),
    [
        (np.array([[(0, 0, 0), (0, 5, 0), (0, 0, 5)]], dtype=np.float32), "the scene has no floor"),
        (boxes(((0, 0, 0), (1.5, 1.5, 0.1))), "the free area for a body of"),
        (boxes(((0, 0, 0), (5000, 3000, 1))), "the scene is too large: 5000 m by 3000 m"),
    ],
)
def test_useless_scenes_are_refused(corners: Float32Array, said: str):
    with pytest.raises(InputError) as caught:
        find_free_space(CollisionMesh(corners), BODY, where="mine.glb")
    assert said in caught.value.what
    assert caught.value.instead
