"""Assembly of scenes from parts that are read once."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import warp

from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.builder import SceneBuilder, compile_world, parse_usd
from nimbus.datagen.simulate.newton_library import newton
from nimbus.datagen.usd.robot import robot_usd
from nimbus.datagen.usd.stage import read_stage
from tests.support.one_can import thing
from tests.support.shipped_robots import load_shipped_robot


def test_an_asset_is_read_once_and_not_changed_by_the_worlds_made_of_it():
    panda = load_robot("panda")
    usd = robot_usd(panda)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
    parsed = parse_usd(usd, visuals=False)
    labels, count = list(parsed.body_label), parsed.shape_count
    scenes = SceneBuilder(read_stage("tabletop"), panda, visuals=False)
    worlds = [scenes.world([thing()]), scenes.world([thing(), thing("items_1", y=0.2)]), scenes.world([])]
    assert parse_usd(usd, visuals=False) is parsed
    assert (list(parsed.body_label), parsed.shape_count) == (labels, count)
    assert [world.body_count - worlds[2].body_count for world in worlds] == [1, 2, 0]


def test_bodies_have_short_unique_names():
    scenes = SceneBuilder(read_stage("tabletop"), load_robot("panda"), visuals=False)
    labels = scenes.world([thing(), thing("items_1", y=0.2)]).body_label
    assert labels[:3] == list(read_stage("tabletop").fixtures)
    assert labels[-2:] == ["items_0", "items_1"]
    assert len(set(labels)) == len(labels) and not any("/" in label for label in labels)


def test_physics_leaves_out_what_only_cameras_see():
    stage, panda = read_stage("tabletop"), load_robot("panda")
    bare, seen = (SceneBuilder(stage, panda, visuals=visuals).world([]) for visuals in (False, True))
    assert bare.shape_count < seen.shape_count
    assert bare.body_label == seen.body_label


def test_stage_and_robot_are_joined_once():
    one, other = (SceneBuilder(read_stage("tabletop"), load_robot("panda"), visuals=False) for _ in range(2))
    assert one._fixed is other._fixed


def test_compiled_world_equals_newtons_own():
    """Omitting Newton's collision data changes neither a byte of MuJoCo's model nor the builder."""
    world = SceneBuilder(read_stage("tabletop"), load_robot("panda"), visuals=False).world([thing(), thing("b", y=0.2)])
    flags = list(world.shape_flags)
    compiled = compile_world(world, cone="elliptic")
    assert world.shape_flags == flags
    whole = newton.solvers.SolverMuJoCo(world.finalize(device="cpu"), use_mujoco_cpu=True, cone="elliptic")
    assert saved(compiled) == saved(whole.mj_model)


def test_rounded_inertia_of_a_robot_is_no_warning():
    """A link of SO-101 violates the triangle inequality by the rounding of its file."""
    world = SceneBuilder(read_stage("tabletop"), load_shipped_robot("so101"), visuals=False).world([])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compile_world(world, cone="elliptic")
    assert not [one for one in caught if "nertia" in str(one.message)]


def saved(model: mujoco.MjModel) -> bytes:
    content = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, content)
    return content.tobytes()


def test_only_newtons_kernels_lose_their_gradients():
    """Newton and its solver create their kernels late, each with Warp's setting of that moment."""
    assert newton.solvers.SolverMuJoCo
    kernels = warp.get_module("newton._src.solvers.mujoco.kernels")
    assert not kernels.options["enable_backward"] and warp.config.enable_backward
