"""Grasps in physics at import: successful grasps, ungraspable objects, and the order of grasps at a pick."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen.assets.grasp_trials import GraspTrials, try_grasps
from nimbus.datagen.execute.motions.grasps import find_model_axes, prefer_tried
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import scale_object
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.plan.grasp import Grasp
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.robots.robot_file import read_robot

GRIPPER = read_robot("panda").gripper


@pytest.fixture(scope="module")
def cube() -> ObjectModel:
    """Return a block that every gripper can grasp."""
    return open_library("blocks").model("red_cube", 0)


@pytest.fixture(scope="module")
def trials(cube: ObjectModel) -> GraspTrials:
    """Try the block once."""
    return try_grasps(cube, GRIPPER)


def ranked(model: ObjectModel) -> list[Grasp]:
    """Rank the block's grasps in its first rest pose."""
    rest, pose = model.rest_poses[0], np.eye(4)
    pose[:3, :3], pose[2, 3] = quat_to_matrix(rest.wxyz), rest.height
    return prefer_tried(
        rank_grasps(find_model_axes(model, GRIPPER.shape), pose), model, pose, GRIPPER.shape, table_height=0
    )


def test_grasps_of_a_block_hold(trials: GraspTrials) -> None:
    assert sum(one.holds for one in trials.grasps) >= 3 and not trials.not_graspable


def test_too_heavy_slips_out(cube: ObjectModel) -> None:
    heavy = try_grasps(replace(cube, mass=8.0, inertia=cube.inertia * 8 / cube.mass), GRIPPER)
    assert heavy.not_graspable.startswith("0 of") and "slipped out when shaken" in heavy.not_graspable


def test_too_wide_names_its_width(cube: ObjectModel) -> None:
    assert "mm wide; the fingers open to 74 mm" in try_grasps(scale_object(cube, 6.0), GRIPPER).not_graspable


def test_held_grasps_come_first(cube: ObjectModel, trials: GraspTrials) -> None:
    first = ranked(cube)[0]
    failed = tuple(replace(one, holds=False) for one in trials.grasps if first.find_alike(one.object_T_tool[None])[0])
    others = tuple(one for one in trials.grasps if not first.find_alike(one.object_T_tool[None])[0])
    assert failed and any(one.holds for one in others)
    now = ranked(replace(cube, tried_grasps=(*failed, *others)))
    assert any(now[0].find_alike(np.array([one.object_T_tool for one in others if one.holds])))
    assert not now[0].resembles(first)


def test_a_held_grasp_stands_in(cube: ObjectModel, trials: GraspTrials) -> None:
    """If the ranking contains no grasp that succeeded in the trials, the successful trials are used instead."""
    rest = cube.rest_poses[0]
    pose = np.eye(4)
    pose[:3, :3], pose[2, 3] = quat_to_matrix(rest.wxyz), rest.height
    found = prefer_tried([], replace(cube, tried_grasps=trials.grasps), pose, GRIPPER.shape, table_height=0.0)
    assert found and all(grasp.tilt < 1.1 for grasp in found)
