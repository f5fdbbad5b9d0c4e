"""The simulator for Isaac Sim against a stand-in for Isaac Sim: this proves the calls, not the physics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.isaacsim import STEP_RATE, IsaacSimSimulation
from nimbus.datagen.usd.stage import read_stage
from tools.contract.kit_behaviour import Kit
from tools.contract.names import Contract
from tools.contract.physics_behaviour import IsaacPhysics, dofs
from tools.contract.standin import StandIn


@pytest.fixture
def isaac() -> Iterator[IsaacPhysics]:
    isaac = IsaacPhysics()
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(Kit().behaviour(standin.make) | isaac.behaviour())
    with standin.installed():
        yield isaac


def placed(name: str, library: str, kind: str, **values: Any) -> PlacedObject:
    """The first variant of a kind, at rest on the table."""
    model = open_library(library).model(kind, 0)
    rest = model.rest_poses[0]
    return PlacedObject(
        name=name,
        group=name.partition("_")[0],
        library=library,
        kind=kind,
        variant=0,
        object_class=model.object_class,
        position=(0.5, 0.0, rest.height),
        wxyz=rest.wxyz,
        rest_pose=rest.name,
        friction=0.6,
        **values,
    )


def layout() -> PhysicalLayout:
    return PhysicalLayout(objects=(placed("items_0", "trash", "can", mass=0.1),))


@pytest.fixture
def simulation(isaac: IsaacPhysics) -> IsaacSimSimulation:
    simulation = IsaacSimSimulation(read_stage("tabletop"), load_robot("panda"), rate=20.0)
    simulation.load(layout())
    return simulation


def test_a_scene_in_which_nothing_is_loose_is_loaded_and_restored(isaac: IsaacPhysics):
    simulation = IsaacSimSimulation(read_stage("table"), load_robot("panda"), rate=20.0)
    simulation.load(PhysicalLayout(objects=()))
    state = simulation.state()
    assert len(state.joint_positions) == len(simulation.joint_names)
    simulation.restore(state)
    np.testing.assert_array_equal(simulation.joint_positions(), state.joint_positions)
    simulation.close()


def test_physics_starts_after_the_stage_and_the_arm_at_home(isaac: IsaacPhysics, simulation: IsaacSimSimulation):
    assert isaac.done == ["stop", "open", f"setup dt={1 / STEP_RATE} device=cpu", "play commit=True", "initialize"]
    robot = simulation.robot
    home = [*robot.arm.home, robot.gripper.open, robot.gripper.open]
    np.testing.assert_allclose(simulation.joint_positions(), home)
    np.testing.assert_allclose(isaac.targets["/World/robot"][-1][1], home)


def test_bodies_are_those_of_the_default_simulator(isaac: IsaacPhysics, simulation: IsaacSimSimulation):
    from nimbus.datagen.simulate.newton import NewtonSimulation

    other = NewtonSimulation(simulation.stage, simulation.robot, rate=20.0)
    other.load(layout())
    assert set(simulation.body_names) == set(other.body_names)
    assert simulation.joint_names == other.joint_names
    assert (simulation.action_names, simulation.object_names) == (other.action_names, other.object_names)
    rows = {name: row for row, name in enumerate(simulation.body_names)}
    mine, theirs = simulation.body_positions(), other.body_positions()
    for name in ("items_0", "recycling"):
        np.testing.assert_allclose(mine[rows[name]], theirs[other.body_names.index(name)], atol=1e-6)


def test_what_fell_while_physics_started_lies_where_the_layout_has_it(
    isaac: IsaacPhysics, simulation: IsaacSimSimulation
):
    (item,) = layout().objects
    row = simulation.body_names.index("items_0")
    np.testing.assert_allclose(simulation.body_positions()[row], item.position, atol=1e-6)
    np.testing.assert_allclose(np.abs(simulation.body_wxyz()[row] @ item.wxyz), 1.0, atol=1e-6)
    assert not np.any(isaac.velocities)


def test_commands_are_followed_along_a_smooth_path_whose_speed_the_drives_are_told(
    isaac: IsaacPhysics, simulation: IsaacSimSimulation
):
    isaac.targets.clear()
    isaac.speeds.clear()
    start, looks = simulation.reference.copy(), []
    action = np.append(np.asarray(simulation.robot.arm.home) + 0.12, 0.01)
    for _ in range(2):
        simulation.advance(action, observe=lambda: looks.append(1))
    steps = int(STEP_RATE / 20.0)
    targets = [values for _, values in isaac.targets["/World/robot"]]
    assert len(targets) == len(isaac.speeds) == len(looks) == 2 * steps
    path, speeds = np.array([start, *targets]), np.array(isaac.speeds)
    np.testing.assert_allclose(path[steps], (start + [*action, 0.01]) / 2, err_msg="half way after the first")
    np.testing.assert_allclose(path[-1], [*action, 0.01])
    np.testing.assert_allclose(speeds[-1], 0.0, atol=1e-12)
    between = np.diff(path, axis=0) * STEP_RATE
    np.testing.assert_allclose((speeds[1:] + speeds[:-1]) / 2, between[1:], atol=1e-9)


def test_arms_that_stand_by_themselves_are_articulations_of_their_own(isaac: IsaacPhysics):
    simulation = IsaacSimSimulation(read_stage("tabletop"), load_robot("dual_panda"), rate=20.0)
    simulation.load(layout())
    home = np.array(simulation.robot.home_joints)
    np.testing.assert_allclose(simulation.joint_positions(), home)
    assert len(isaac.targets) == 2 and all(len(told[-1][0]) == len(home) / 2 for told in isaac.targets.values())
    before = simulation.state()
    action = np.linspace(0.01, 0.02, len(simulation.action_names))
    for _ in range(2):
        simulation.advance(action)
    ratios, index = np.array(simulation.robot.joint_ratios), list(simulation.robot.action_index)
    np.testing.assert_allclose(simulation.joint_positions(), action[index] * ratios)
    simulation.restore(before)
    np.testing.assert_allclose(simulation.joint_positions(), home)


def test_a_joint_that_no_articulation_has_is_told(isaac: IsaacPhysics, simulation: IsaacSimSimulation):
    from nimbus.datagen.simulate.isaacsim_joints import Joints

    with pytest.raises(ValueError, match=r"joints \['elbow'\] are in none"):
        Joints(["/World/robot"], ["elbow", *simulation.joint_names])


def test_a_state_is_restored_whole(isaac: IsaacPhysics, simulation: IsaacSimSimulation):
    before = simulation.state()
    simulation.advance(np.zeros(8))
    isaac.bodies["/World/objects/items_0"] = np.array([9.0, 9, 9]), np.array([1.0, 0, 0, 0])
    simulation.restore(before)
    after = simulation.state()
    np.testing.assert_allclose(after.joint_positions, before.joint_positions)
    assert simulation.is_stable


def test_parts_of_objects_start_and_come_back_where_the_layout_has_them(isaac: IsaacPhysics):
    place = "/World/objects/oven"
    simulation = IsaacSimSimulation(read_stage("tabletop"), load_robot("panda"), rate=20.0)
    door = open_library("furniture").model("microwave", 0).parts[0]
    ajar = placed("oven", "furniture", "microwave", mass=8.0, joints={door.name: 0.4}, anchored=True)
    simulation.load(PhysicalLayout(objects=(ajar,)))
    parts, at = isaac.joints[place]["positions"], dofs(isaac.stage, place).index(door.name)
    assert parts[at] == 0.4
    before = simulation.state()
    parts[at] = 1.1
    simulation.restore(before)
    assert parts[at] == 0.4
    loose: Any = simulation._loose
    below = [path for path in loose.played_paths if path.startswith(place)]
    assert below == [f"{place}/base"], "parts are moved by their joints"


def test_a_rate_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="divide 240"):
        IsaacSimSimulation(read_stage("tabletop"), load_robot("panda"), rate=7.0)


def test_nothing_is_left_in_the_temporary_folder(isaac: IsaacPhysics, simulation: IsaacSimSimulation):
    folder = Path(simulation._folder.name)
    simulation.close()
    assert not folder.exists()
