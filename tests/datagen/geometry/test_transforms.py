"""Laws of rotations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nimbus.datagen.geometry.transforms import (
    look_at,
    make_transform,
    quat_from_axis_angle,
    quat_from_matrix,
    quat_multiply,
    quat_to_matrix,
)

coordinates = st.floats(-3, 3, allow_subnormal=False)
vectors = st.tuples(coordinates, coordinates, coordinates)
directions = vectors.filter(lambda vector: np.linalg.norm(vector) > 0.1)
angles = st.floats(-6.3, 6.3)
turns = st.builds(quat_from_axis_angle, directions, angles)


@given(turns, turns)
def test_the_matrix_of_a_product_is_the_product_of_the_matrices(one, other):
    assert np.allclose(
        quat_to_matrix(quat_multiply(one, other)), quat_to_matrix(one) @ quat_to_matrix(other), atol=1e-12
    )


@given(turns)
def test_matrices_are_rotations(turn):
    matrix = quat_to_matrix(turn)
    assert np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(matrix) == pytest.approx(1)


@given(turns)
def test_from_matrix_undoes_to_matrix_up_to_sign(turn):
    back = quat_from_matrix(quat_to_matrix(turn))
    assert back[0] >= 0
    assert abs(np.dot(back, turn)) == pytest.approx(1, abs=1e-12)


@given(directions, angles, vectors)
def test_a_turn_keeps_its_axis_and_turns_right_handed(axis, angle, vector):
    matrix, unit = quat_to_matrix(quat_from_axis_angle(axis, angle)), np.divide(axis, np.linalg.norm(axis))
    assert np.allclose(matrix @ unit, unit, atol=1e-12)
    rodrigues = (  # after Rodrigues, with no quaternion
        np.multiply(vector, np.cos(angle))
        + np.cross(unit, vector) * np.sin(angle)
        + unit * np.dot(unit, vector) * (1 - np.cos(angle))
    )
    assert np.allclose(matrix @ vector, rodrigues, atol=1e-11)


@given(st.lists(turns, min_size=1, max_size=5))
def test_many_quaternions_become_matrices_at_once(several):
    assert np.array_equal(quat_to_matrix(several), np.stack([quat_to_matrix(turn) for turn in several]))


@given(vectors, turns, vectors)
def test_a_pose_turns_and_then_shifts(position, turn, point):
    moved = make_transform(position, turn) @ (*point, 1.0)
    assert np.allclose(moved, (*(quat_to_matrix(turn) @ point + position), 1.0), atol=1e-12)


@given(vectors, vectors)
def test_a_camera_looks_at_the_point_and_stands_upright(position, target):
    sight = np.subtract(target, position)
    assume(np.linalg.norm(np.cross(sight, (0, 0, 1))) > 1e-2)
    right, up, backward = quat_to_matrix(look_at(position, target)).T
    assert np.allclose(-backward * np.linalg.norm(sight), sight, atol=1e-9)
    assert right[2] == pytest.approx(0, abs=1e-9)
    assert up[2] > 0


@given(directions)
def test_up_of_a_camera_can_be_chosen(up):
    assume(np.linalg.norm(np.cross(up, (1, 0, 0))) > 1e-2)
    matrix = quat_to_matrix(look_at((0, 0, 0), (1, 0, 0), up=up))
    assert matrix[:, 1] @ up > 0
    assert matrix[:, 0] @ up == pytest.approx(0, abs=1e-9)
