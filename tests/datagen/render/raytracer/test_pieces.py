import numpy as np
import pytest

from nimbus.datagen.render.raytracer.pieces import outward_normals

PLACES = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], dtype=np.float64)
FACES = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)], dtype=np.int32)


def outwardness(places, faces):
    """Return the distance of each face of a tetrahedron from the center, along its outward normal."""
    return np.sum(outward_normals(places, faces) * (places[faces].mean(axis=1) - PLACES.mean(axis=0)), axis=1)


@pytest.mark.parametrize("faces", [FACES, FACES[:, ::-1]])
def test_normals_point_out_of_closed_surfaces(faces):
    """The order of the corners does not matter."""
    assert np.all(outwardness(PLACES, faces) > 0)


@pytest.mark.parametrize("faces", [FACES[:3], np.concatenate([FACES[:3], FACES[3:, ::-1]])])
def test_open_surfaces_have_no_outward_normals(faces):
    """A surface is open if it has a hole or an inverted face."""
    assert not outward_normals(PLACES, faces).any()


def test_each_surface_of_a_mesh_is_tested():
    """An open surface does not affect a closed one in the same mesh."""
    places = np.concatenate([PLACES, PLACES + 5.0])
    found = outward_normals(places, np.concatenate([FACES, FACES[:2] + 4]))
    assert found[:4].any(axis=1).all() and not found[4:].any()
