"""Decomposition of surfaces into convex pieces, and rest poses of hulls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.objects.rest_poses import rest_poses
from nimbus.datagen.objects.shapes.contact import MAX_VERTICES, limited_hull, pieces_of_rings


def rings(radii: FloatArray) -> FloatArray:
    turn = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    heights = np.broadcast_to(np.linspace(0, 0.1, len(radii))[:, None, None], (len(radii), 16, 1))
    flat = radii[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    return np.concatenate([flat, heights], axis=2)


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(40, 300))
def test_a_limited_hull_lies_within_the_full_one_and_keeps_its_size(seed: int, count: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 3))
    vertices, faces = limited_hull(points)
    assert len(vertices) <= MAX_VERTICES
    assert faces.max() == len(vertices) - 1
    planes = ConvexHull(points).equations
    assert (vertices @ planes[:, :3].T + planes[:, 3]).max() < 1e-9
    assert ConvexHull(vertices).volume > 0.7 * ConvexHull(points).volume


def test_a_cone_is_one_piece_and_a_waist_two() -> None:
    cone, waist = np.linspace(0.05, 0.02, 21), 0.02 + 0.03 * np.abs(np.linspace(-1, 1, 21))
    assert len(pieces_of_rings(rings(cone), tolerance=0.0005, max_pieces=8)) == 1
    assert len(pieces_of_rings(rings(waist), tolerance=0.0005, max_pieces=8)) == 2


@settings(max_examples=20)
@given(st.lists(st.floats(0.01, 0.05), min_size=5, max_size=20), st.integers(1, 8))
def test_pieces_stack_from_end_to_end_within_their_bound(radii: list[float], most: int) -> None:
    pieces = pieces_of_rings(rings(np.array(radii)), tolerance=0.0005, max_pieces=most)
    assert 1 <= len(pieces) <= most
    ends = [(vertices[:, 2].min(), vertices[:, 2].max()) for vertices, _ in pieces]
    assert ends[0][0] == 0.0
    assert ends[-1][1] == pytest.approx(0.1)
    assert all(below[1] == above[0] for below, above in zip(ends[:-1], ends[1:], strict=True))


@given(st.tuples(st.floats(0.04, 0.06), st.floats(0.07, 0.11), st.floats(0.12, 0.2)))
def test_a_brick_stands_and_lies_on_its_faces(size: tuple[float, float, float]) -> None:
    corners = np.array(np.meshgrid([-0.5, 0.5], [-0.5, 0.5], [-0.5, 0.5])).reshape(3, -1).T * size
    names = ("upright", "lying", "on_side", "inverted")
    poses = {pose.name: pose for pose in rest_poses(corners, np.zeros(3), names=names, lies_on="side")}
    assert set(poses) == set(names)
    heights = {"upright": size[2], "inverted": size[2], "lying": size[0], "on_side": size[1]}
    for name, pose in poses.items():
        assert pose.height == pytest.approx(heights[name] / 2)
        turned = Rotation.from_quat([*pose.wxyz[1:], pose.wxyz[0]]).apply(corners)
        assert turned[:, 2].min() == pytest.approx(-pose.height)
