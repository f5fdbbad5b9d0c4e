import numpy as np
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.meshes.decimate import decimate
from nimbus.datagen.meshes.simplify import simplify
from nimbus.datagen.meshes.triangles import Triangles

TOLERANCE = 2.5e-4


RADIUS, LENGTH = 0.05, 0.2


def link():
    """Return a round robot link with many faces."""
    mesh = trimesh.creation.capsule(height=LENGTH, radius=RADIUS, count=[120, 120])
    mesh.merge_vertices()
    mesh.vertices[:, 2] -= mesh.bounds[:, 2].mean()
    return mesh


def from_axis(points):
    """Return the vectors to points from the nearest points of the link's axis."""
    return points - np.clip(points, (0, 0, -LENGTH / 2), (0, 0, LENGTH / 2))


def test_a_round_link_needs_a_fraction_of_its_triangles_and_stays_closed():
    first = link()
    points, faces = decimate(first.vertices, first.faces.astype(np.int32), tolerance=TOLERANCE)
    other = trimesh.Trimesh(points, faces, process=False)
    assert len(faces) < 0.15 * len(first.faces)
    assert other.is_watertight and other.is_winding_consistent
    assert abs(other.volume / first.volume - 1) < 0.005
    for places in (points, other.triangles_center, points[faces[:, :2]].mean(axis=1)):
        assert np.abs(np.linalg.norm(from_axis(places), axis=1) - RADIUS).max() < 3 * TOLERANCE


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_a_flat_plate_keeps_its_outline_and_its_area(seed):
    rng = np.random.default_rng(seed)
    turn = trimesh.transformations.random_rotation_matrix(rng.uniform(size=3))
    box = trimesh.creation.box(extents=rng.uniform(0.02, 0.2, 3)).subdivide().subdivide().subdivide()
    box.apply_transform(turn)
    points, faces = decimate(box.vertices, box.faces.astype(np.int32), tolerance=TOLERANCE)
    other = trimesh.Trimesh(points, faces, process=False)
    assert len(faces) < 0.1 * len(box.faces)
    assert abs(other.area / box.area - 1) < 0.01
    np.testing.assert_allclose(other.bounds, box.bounds, atol=2 * TOLERANCE)


def test_an_open_sheet_keeps_its_border():
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(0, 0.1, 21)] * 2))
    cell = np.arange(20 * 21).reshape(20, 21)[:, :-1].ravel()
    faces = np.concatenate([np.stack([cell, cell + 1, cell + 22], 1), np.stack([cell, cell + 22, cell + 21], 1)])
    points, left = decimate(np.stack([x, y, 0 * x], 1), faces.astype(np.int32), tolerance=TOLERANCE)
    assert len(left) < 60
    assert abs(trimesh.Trimesh(points, left, process=False).area - 0.01) < 1e-4


def test_normals_of_a_simplified_link_are_those_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    first = link()
    count = len(first.vertices)
    triangles = Triangles(
        vertices=first.vertices.astype(np.float32),
        faces=first.faces.astype(np.int32),
        normals=np.array(first.vertex_normals, dtype=np.float32),
        uvs=np.zeros((count, 2), dtype=np.float32),
        colors=np.ones((count, 3), dtype=np.float32),
    )
    found = simplify(triangles)
    assert len(found.faces) < 0.15 * len(triangles.faces)
    outward = from_axis(found.vertices) / np.linalg.norm(from_axis(found.vertices), axis=1, keepdims=True)
    assert np.min(np.sum(found.normals * outward, axis=1)) > 0.98
    again = simplify(triangles)
    np.testing.assert_array_equal(again.vertices, found.vertices)
    np.testing.assert_array_equal(again.normals, found.normals)
