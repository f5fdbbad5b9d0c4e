"""Grasps on simple meshes with known results."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from numpy.typing import ArrayLike, NDArray

from nimbus.datagen.plan.grasp import GraspAxes, GripperShape, find_axes
from nimbus.datagen.plan.grasp_ranking import rank_grasps

GRIPPER = GripperShape(opening=0.08, pad_width=0.0175, pad_height=0.018, finger_thickness=0.01, finger_depth=0.042)
BOX = trimesh.creation.box((0.04, 0.06, 0.12))
CYLINDER = trimesh.creation.cylinder(radius=0.03, height=0.1)
BALL = trimesh.creation.icosphere(subdivisions=3, radius=0.03)


def axes_of(mesh: trimesh.Trimesh, *, seed: int = 0, center_of_mass: ArrayLike | None = None) -> GraspAxes:
    return find_axes(mesh.vertices, mesh.faces, GRIPPER, rng=np.random.default_rng(seed), center_of_mass=center_of_mass)


def standing(mesh: trimesh.Trimesh) -> NDArray[np.float64]:
    """Return ``world_T_object`` of a mesh that stands on z = 0."""
    pose = np.eye(4)
    pose[:3, 3] = 0.5, 0.1, -mesh.bounds[0, 2]
    return pose


@pytest.mark.parametrize("mesh", [BOX, CYLINDER, BALL])
def test_both_contacts_lie_on_the_surface(mesh: trimesh.Trimesh) -> None:
    axes = axes_of(mesh)
    assert len(axes.widths) > 80
    half = 0.5 * axes.widths[:, None] * axes.directions
    for contacts in (axes.middles - half, axes.middles + half):
        assert trimesh.proximity.closest_point_naive(mesh, contacts[:20])[1].max() < 1e-6


def test_the_width_of_a_box_is_found_across_its_sides() -> None:
    widths = axes_of(BOX).widths
    assert widths.min() == pytest.approx(0.04, abs=1e-3)
    assert widths.max() < 0.066


def test_what_is_wider_than_the_gripper_has_no_axis() -> None:
    assert len(axes_of(trimesh.creation.box((0.1, 0.1, 0.1))).widths) == 0


@pytest.mark.parametrize("mesh", [BOX, CYLINDER, BALL])
def test_hands_come_from_above_and_keep_their_pads_off_the_table(mesh: trimesh.Trimesh) -> None:
    grasps = rank_grasps(axes_of(mesh), standing(mesh))
    assert grasps
    for grasp in grasps:
        pose = grasp.world_T_tool
        np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-9)
        assert np.linalg.det(pose[:3, :3]) == pytest.approx(1)
        assert pose[2, 2] < -np.cos(1.1)
        pads = [pose @ [sx * 0.00875, 0, sz * 0.009, 1] for sx in (-1, 1) for sz in (-1, 1)]
        assert min(corner[2] for corner in pads) > 0.001


def test_places_differ_from_each_other() -> None:
    places = rank_grasps(axes_of(BOX), standing(BOX))
    assert not any(one.resembles(other) for index, one in enumerate(places) for other in places[:index])


def test_a_palm_that_would_hit_the_object_is_no_grasp() -> None:
    tall = trimesh.creation.box((0.05, 0.05, 0.3))
    straight_down = [grasp for grasp in rank_grasps(axes_of(tall), standing(tall)) if grasp.world_T_tool[2, 2] < -0.99]
    assert straight_down
    assert min(grasp.world_T_tool[2, 3] for grasp in straight_down) > 0.3 - 0.045


def test_the_centre_of_mass_draws_the_grasps() -> None:
    lying = standing(trimesh.creation.box((0.12, 0.06, 0.04)))
    bar = trimesh.creation.box((0.12, 0.06, 0.04))
    for side in (-1, 1):
        best = rank_grasps(axes_of(bar, center_of_mass=(side * 0.045, 0, 0)), lying)[:6]
        assert side * np.mean([grasp.world_T_tool[0, 3] - 0.5 for grasp in best]) > 0.01


def test_a_sheet_on_the_table_cannot_be_grasped() -> None:
    sheet = trimesh.creation.box((0.06, 0.05, 0.002))
    assert rank_grasps(axes_of(sheet), standing(sheet)) == []


def test_the_same_seed_gives_the_same_grasps() -> None:
    one, same, other = (rank_grasps(axes_of(BOX, seed=seed), standing(BOX)) for seed in (1, 1, 2))
    assert [grasp.world_T_tool.tobytes() for grasp in one] == [grasp.world_T_tool.tobytes() for grasp in same]
    assert one[0].world_T_tool.tobytes() != other[0].world_T_tool.tobytes()
