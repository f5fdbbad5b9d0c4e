"""Grasps on simple meshes, whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from nimbus.datagen.plan.grasp import Grasp, rank_for_pose, sample_grasps

BOX = trimesh.creation.box((0.04, 0.06, 0.12))
CYLINDER = trimesh.creation.cylinder(radius=0.03, height=0.1)


def sample(mesh: trimesh.Trimesh, seed: int = 0, **options: float) -> list[Grasp]:
    return sample_grasps(mesh.vertices, mesh.faces, rng=np.random.default_rng(seed), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("mesh", [BOX, CYLINDER, trimesh.creation.icosphere(subdivisions=3, radius=0.03)])
def test_both_contacts_lie_on_the_surface_and_face_each_other(mesh: trimesh.Trimesh) -> None:
    grasps = sample(mesh)
    assert len(grasps) > 100
    for grasp in grasps:
        assert 0 <= grasp.score <= 1 and grasp.width <= 0.078
        pose = grasp.object_T_tool
        np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-12)
        assert np.linalg.det(pose[:3, :3]) == pytest.approx(1)
    # The hand may be drawn back along its approach by up to 6 mm from the line between the contacts.
    for grasp in grasps[::20]:
        pose = grasp.object_T_tool
        on_surface = []
        for shift in (0.0, 0.006):
            ends = pose[:3, 3] + shift * pose[:3, 2] + np.outer([-0.5, 0.5], pose[:3, 1]) * grasp.width
            on_surface.append(trimesh.proximity.closest_point_naive(mesh, ends)[1].max() < 1e-6)
        assert any(on_surface)


def test_a_box_is_held_across_its_narrow_sides() -> None:
    widths = np.array([grasp.width for grasp in sample(BOX)])
    assert widths.min() == pytest.approx(0.04, abs=1e-3) and widths.max() < 0.0785


def test_what_is_wider_than_the_gripper_has_no_grasp() -> None:
    assert sample(trimesh.creation.box((0.1, 0.1, 0.1))) == []


def test_the_best_grasp_of_a_cylinder_is_near_its_middle_and_square() -> None:
    best = sample(CYLINDER)[0]
    assert abs(best.object_T_tool[2, 3]) < 0.02
    assert best.width == pytest.approx(0.06, abs=2e-3) and abs(best.object_T_tool[2, 1]) < 0.2


def test_the_centre_of_mass_draws_the_grasps() -> None:
    top = sample(BOX, center_of_mass=(0.0, 0.0, 0.045))  # type: ignore[arg-type]
    low = sample(BOX, center_of_mass=(0.0, 0.0, -0.045))  # type: ignore[arg-type]
    heights = [np.mean([grasp.object_T_tool[2, 3] for grasp in some[:50]]) for some in (top, low)]
    assert heights[0] > 0.01 and heights[1] < -0.01


def test_the_same_seed_gives_the_same_grasps() -> None:
    one, same, other = sample(BOX, 1), sample(BOX, 1), sample(BOX, 2)
    assert [g.object_T_tool.tobytes() for g in one] == [g.object_T_tool.tobytes() for g in same]
    assert one[0].object_T_tool.tobytes() != other[0].object_T_tool.tobytes()


def test_for_an_object_on_a_table_the_hand_comes_from_above_and_stays_off_the_table() -> None:
    world_T_object = np.eye(4)
    world_T_object[:3, 3] = 0.5, 0.1, 0.06
    ranked = rank_for_pose(sample(BOX), world_T_object)
    assert ranked
    for grasp in ranked:
        pose = world_T_object @ grasp.object_T_tool
        assert np.arccos(-pose[2, 2]) <= 1.0
        pad = [pose @ [sx * 0.0087, 0, sz * 0.009, 1] for sx in (-1, 1) for sz in (-1, 1)]
        assert min(corner[2] for corner in pad) > 0
    tilts = [np.arccos(np.clip(-(world_T_object @ grasp.object_T_tool)[2, 2], -1, 1)) for grasp in ranked]
    assert np.mean(tilts[:5]) < np.mean(tilts)


def test_an_object_too_flat_for_the_fingers_has_no_grasp_from_above() -> None:
    sheet = trimesh.creation.box((0.06, 0.05, 0.002))
    world_T_object = np.eye(4)
    world_T_object[2, 3] = 0.001
    assert rank_for_pose(sample(sheet), world_T_object) == []
