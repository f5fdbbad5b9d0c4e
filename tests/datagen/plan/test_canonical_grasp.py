"""The canonical grasp: straight down in the middle, at the home heading, continuous in the layout."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.motions.grasps import model_axes
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.plan.grasp import Grasp, GraspAxes, find_axes
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.robot import load_robot

GRIPPER = load_robot("panda").gripper.shape
HOME = np.pi / 2
ROUND = ("bottle", "tin", "jar", "cup", "battery", "egg_shell")


def best(axes: GraspAxes, turn: FloatArray, *, x: float = 0.5) -> Grasp | None:
    """Return the first grasp of a shape with rotation (3, 3) that stands on z = 0."""
    pose = np.eye(4)
    pose[:3, :3] = turn
    pose[:3, 3] = x, 0.1, -(axes.vertices @ turn[2]).min()
    return next(iter(rank_grasps(axes, pose, home_heading=HOME)), None)


def turned(yaw: float) -> FloatArray:
    return quat_to_matrix(quat_from_axis_angle((0, 0, 1), yaw))


def degrees_off(grasp: Grasp, heading: float) -> float:
    """Return the angle between the closing axis and a heading, in either direction."""
    x, y, _ = grasp.world_T_tool[:3, 1]
    return float(np.degrees(np.arccos(min(1.0, abs(x * np.cos(heading) + y * np.sin(heading)) / np.hypot(x, y)))))


def is_near(one: Grasp, other: Grasp) -> bool:
    """Return True if grasps differ by at most 2 cm and 10 degrees, with or without swapped fingers."""
    change = one.world_T_tool[:3, :3].T @ other.world_T_tool[:3, :3]
    angles = [
        np.arccos(np.clip((np.trace(swap @ change) - 1) / 2, -1, 1)) for swap in (np.eye(3), np.diag([-1.0, -1, 1]))
    ]
    apart = np.linalg.norm(one.world_T_tool[:3, 3] - other.world_T_tool[:3, 3])
    return bool(apart <= 0.02 and min(angles) <= np.radians(10))


@pytest.mark.parametrize("kind", ROUND)
def test_upright_round_things_are_closed_on_as_at_home(kind: str) -> None:
    rng = generator(0, "headings", kind)
    for variant in range(2):
        rest = open_library("trash").model(kind, variant).rest_pose("upright")
        assert rest is not None
        axes = model_axes("trash", kind, variant, GRIPPER)
        grasp = best(axes, turned(rng.uniform(-np.pi, np.pi)) @ quat_to_matrix(rest.wxyz))
        assert grasp is not None
        assert degrees_off(grasp, HOME) < 5 and grasp.tilt < np.radians(1)


@pytest.mark.parametrize("yaw", np.radians([-40, -10, 0, 25, 44]))
def test_boxes_are_closed_on_across_a_face_through_their_middle(yaw: float) -> None:
    box = trimesh.creation.box((0.05, 0.05, 0.03))
    axes = find_axes(box.vertices, box.faces, GRIPPER, rng=np.random.default_rng(0))
    grasp = best(axes, turned(yaw))
    assert grasp is not None
    assert degrees_off(grasp, HOME + yaw) < 0.5 and grasp.tilt < 1e-6
    np.testing.assert_allclose(grasp.world_T_tool[:2, 3], (0.5, 0.1), atol=1e-6)


def test_of_two_faces_the_clearly_narrower_is_closed_on() -> None:
    box = trimesh.creation.box((0.03, 0.06, 0.03))
    axes = find_axes(box.vertices, box.faces, GRIPPER, rng=np.random.default_rng(0))
    for yaw in np.radians([0, 60, 89, 120, 170]):
        grasp = best(axes, turned(yaw))
        assert grasp is not None and degrees_off(grasp, yaw) < 0.5


def test_the_heading_is_folded_towards_home() -> None:
    mesh = trimesh.creation.cylinder(radius=0.03, height=0.05)
    axes = find_axes(mesh.vertices, mesh.faces, GRIPPER, rng=np.random.default_rng(0))
    pose = np.eye(4)
    pose[2, 3] = 0.025
    grasps = rank_grasps(axes, pose, home_heading=HOME)
    assert len(grasps) > 10 and min(grasp.world_T_tool[1, 1] for grasp in grasps) > -1e-9
    assert [grasp.score for grasp in grasps] == sorted((grasp.score for grasp in grasps), reverse=True)


def test_neighbouring_layouts_have_neighbouring_grasps() -> None:
    """The compared layouts differ by 1 cm and 5 degrees.

    The objects are the kinds of pick_and_place in all their rest poses.
    """
    rng, near = generator(0, "neighbours"), []
    for kind in open_library("trash").kinds:
        axes = model_axes("trash", kind, 0, GRIPPER)
        for rest in open_library("trash").model(kind, 0).rest_poses:
            yaw, turn = rng.uniform(-np.pi, np.pi), quat_to_matrix(rest.wxyz)
            one = best(axes, turned(yaw) @ turn)
            other = best(axes, turned(yaw + rng.choice([-1, 1]) * np.radians(5)) @ turn, x=0.51)
            assert one is not None and other is not None
            near.append(is_near(one, other))
    assert np.mean(near) >= 0.95
