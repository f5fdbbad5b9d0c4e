"""Mass properties compared with textbook values."""

from __future__ import annotations

import numpy as np
import trimesh
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.objects.mass import mass_properties

length = st.floats(0.01, 0.3)
offset = st.tuples(*[st.floats(-0.2, 0.2)] * 3)


@given(st.tuples(length, length, length), offset, st.floats(0.005, 0.5))
def test_a_solid_box_anywhere_has_the_inertia_of_a_box(
    size: tuple[float, ...], place: tuple[float, ...], mass: float
) -> None:
    box = trimesh.creation.box(size)
    vertices, faces = np.asarray(box.vertices) + place, np.asarray(box.faces, dtype=np.int32)
    center, inertia = mass_properties(vertices, faces, mass=mass, in_surface=False)
    squares = np.square(size)
    np.testing.assert_allclose(center, place, atol=1e-9)
    np.testing.assert_allclose(inertia, np.diag(mass / 12 * (squares.sum() - squares)), atol=1e-9, rtol=1e-6)


def test_a_thin_ball_has_two_thirds_of_m_r_squared() -> None:
    """The ball is a shell: all of its mass is in its surface."""
    ball = trimesh.creation.icosphere(subdivisions=4, radius=0.1)
    vertices, faces = np.asarray(ball.vertices), np.asarray(ball.faces, dtype=np.int32)
    _, inertia = mass_properties(vertices, faces, mass=0.3, in_surface=True)
    np.testing.assert_allclose(inertia, np.eye(3) * 2 / 3 * 0.3 * 0.01, rtol=5e-3, atol=1e-8)
