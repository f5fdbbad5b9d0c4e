"""The simulator for Isaac Sim with a stand-in whose physics is MuJoCo: this verifies calls and values, not PhysX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import mujoco
import numpy as np
import pytest

from nimbus.datagen.episode.layout import Disturbance, PhysicalLayout, PlacedObject, RobotSetup
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.isaacsim import IsaacSimSimulation
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.simulate.physx_joints import Joints
from nimbus.datagen.simulate.physx_world import STEP_RATE
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.task import load_task
from nimbus.datagen.usd.stage import read_stage
from tests.support.played_physics import played_physics
from tests.support.shipped_tasks import MANIPULATION
from tools.contract.mujoco_physics import MujocoPhysics

discover_components()


@pytest.fixture
def isaac() -> Iterator[MujocoPhysics]:
    with played_physics() as isaac:
        yield isaac


def placed(name: str, library: str, kind: str, **values: Any) -> PlacedObject:
    """Return the first variant of a kind, at rest on the table."""
    model = open_library(library).model(kind, 0)
    rest = model.rest_poses[0]
    given: dict[str, Any] = {"friction": model.friction, "mass": model.mass, "position": (0.5, 0.0, rest.height)}
    return PlacedObject(
        name=name,
        group=name.partition("_")[0],
        library=library,
        kind=kind,
        variant=0,
        object_class=model.object_class,
        wxyz=rest.wxyz,
        rest_pose=rest.name,
        **given | values,
    )


CAN = placed("items_0", "trash", "can", mass=0.1, friction=0.3)


def loaded(*objects: PlacedObject, **values: Any) -> IsaacSimSimulation:
    simulation = IsaacSimSimulation(read_stage("tabletop"), load_robot("panda"), rate=20.0)
    simulation.load(PhysicalLayout(objects=objects, **values))
    return simulation


def default(*objects: PlacedObject, **values: Any) -> NewtonSimulation:
    simulation = NewtonSimulation(read_stage("tabletop"), load_robot("panda"), rate=20.0)
    simulation.load(PhysicalLayout(objects=objects, **values))
    return simulation


def test_values_of_the_layout_are_in_the_stage(isaac: MujocoPhysics):
    """Physics built from the open stage alone has the masses, friction, gains and limits of the default simulator."""
    setup = RobotSetup(offset=(0.004, -0.003, 0.002), yaw=0.02, stiffness=0.9, damping=1.2)
    mine, theirs = (_with_setup(kind, setup) for kind in (IsaacSimSimulation, NewtonSimulation))
    there = {theirs.model.body(body).name: body for body in range(1, theirs.model.nbody)}
    for name, path in mine._paths.items():
        here = isaac.model.body(path.replace("/", "_")).id
        for value in ("body_mass", "body_inertia", "body_gravcomp"):
            one, two = getattr(isaac.model, value)[here], getattr(theirs.model, value)[there[name]]
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-9, err_msg=f"{value} of {name}")
    for name in theirs.joint_names:
        one, two = _joint(isaac.model, name), _joint(theirs.model, name)
        np.testing.assert_allclose(one, two, rtol=1e-5, err_msg=name)
    frictions = {model.geom_friction[model.geom_priority > 0, 0].max() for model in (isaac.model, theirs.model)}
    assert max(frictions) == pytest.approx(min(frictions))
    mujoco.mj_kinematics(isaac.model, isaac.data)
    for arm in ("left", "right"):
        hand = isaac.data.body(mine._paths[f"{arm}_panda_hand"].replace("/", "_")).xpos
        np.testing.assert_allclose(hand, mine.body_pose(f"{arm}_panda_hand")[:3, 3], atol=1e-5)


def _with_setup(kind: type[NewtonSimulation], setup: RobotSetup) -> Any:
    simulation = kind(read_stage("tabletop"), load_robot("dual_panda"), rate=20.0)
    simulation.load(PhysicalLayout(objects=(CAN,), robot=setup))
    return simulation


def _joint(model: mujoco.MjModel, name: str) -> list[float]:
    """Return the armature, gains and limits of a joint, given its name or the end of its path."""
    joint = next(row for row in range(model.njnt) if f"_{model.joint(row).name}".endswith(f"_{name}"))
    row = next(row for row in range(model.nu) if model.actuator_trnid[row, 0] == joint)
    gains = [model.actuator_gainprm[row, 0], *model.actuator_biasprm[row, 1:3]]
    return [model.dof_armature[model.jnt_dofadr[joint]], *gains, *model.jnt_range[joint]]


def test_skills_do_in_physx_what_they_do_by_default(isaac: MujocoPhysics):
    """An attempt ends equally in both engines: the skills read PhysX's state and command its drives."""
    task = load_task("pick_and_place")
    assets = load_assets(task)
    layout = draw_physical(task, assets, seed=0, index=0)
    outcomes = []
    for kind in (NewtonSimulation, IsaacSimSimulation):
        simulation = kind(assets.stage, assets.robot, rate=task.rate)
        streams = partial(generator, 0, 0, "attempt", 0)
        made = run_attempt(task, simulation, layout, streams=streams, planner="ompl")
        outcomes.append((made.outcome.success, [segment.skill for segment in made.segments]))
    assert outcomes[0] == outcomes[1] and outcomes[0][0]
    assert isaac.step_count > 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["open_drawer", "handover_block", pytest.param("stack_blocks", marks=pytest.mark.long)]
)
def test_drawers_and_two_arms_work_in_physx(isaac: MujocoPhysics, name: str):
    task = load_task(name)
    assets = load_assets(task)
    simulation = IsaacSimSimulation(assets.stage, assets.robot, rate=task.rate)
    layout = draw_physical(task, assets, seed=0, index=0)
    streams = partial(generator, 0, 0, "attempt", 0)
    assert run_attempt(task, simulation, layout, streams=streams, planner="ompl").outcome.success


def test_physics_starts_after_the_stage_with_the_arm_at_home(isaac: MujocoPhysics):
    simulation = loaded(CAN)
    assert isaac.done == ["stop", "open", f"setup dt={1 / STEP_RATE} device=cpu", "play commit=True", "initialize"]
    home = [*simulation.robot.arm.home, simulation.robot.gripper.open, simulation.robot.gripper.open]
    np.testing.assert_allclose(simulation.joint_positions(), home, atol=1e-6)
    np.testing.assert_allclose(isaac.data.ctrl[: len(home)], home, atol=1e-6)


def test_bodies_are_those_of_the_default_simulator(isaac: MujocoPhysics):
    one, two = loaded(CAN), default(CAN)
    assert (one.body_names, one.joint_names, one.object_names) == (two.body_names, two.joint_names, two.object_names)
    np.testing.assert_allclose(one.body_positions(), two.body_positions(), atol=1e-6)


def test_the_same_layout_is_not_opened_twice(isaac: MujocoPhysics):
    simulation = loaded(CAN)
    simulation.advance(simulation.present_action() + 0.1)
    simulation.load(PhysicalLayout(objects=(CAN,)))
    assert isaac.done.count("open") == 1
    np.testing.assert_allclose(simulation.joint_positions()[:7], simulation.robot.arm.home, atol=1e-6)
    simulation.load(PhysicalLayout(objects=(replace(CAN, mass=0.2),)))
    assert isaac.done.count("open") == 2


def test_motion_of_a_free_body_is_read_and_restored(isaac: MujocoPhysics):
    """The velocity of a body's frame differs from that of its center of mass; both engines move it equally."""
    one, two = loaded(CAN), default(CAN)
    state, joint = one.state(), one.model.joint(one.model.body("items_0").jntadr[0])
    state.joint_positions[joint.qposadr[0] + 2] += 0.3
    address = joint.dofadr[0]
    state.joint_velocities[address : address + 6] = (0.1, 0.2, 0.5, 1.0, -2.0, 3.0)
    for simulation in (one, two):
        simulation.restore(state)
    assert one.body_speed("items_0") == pytest.approx(two.body_speed("items_0"), rel=1e-6)
    for simulation in (one, two):
        simulation.advance(simulation.present_action())
    np.testing.assert_allclose(one.body_pose("items_0"), two.body_pose("items_0"), atol=2e-3)
    one.restore(state)
    np.testing.assert_allclose(one.state().joint_positions, state.joint_positions, atol=1e-6)
    np.testing.assert_allclose(one.state().joint_velocities, state.joint_velocities, atol=1e-6)


def test_a_push_lasts_as_long_as_drawn(isaac: MujocoPhysics):
    """The impulse is exact, although a push ends between two steps of PhysX."""
    push = Disturbance(body="items_0", time=0.0103, duration=0.0301, force=(0.4, 0.0, 0.0), is_slippery=True)
    simulation = loaded(CAN, disturbance=push)
    before = isaac.model.geom_friction.copy()
    simulation.restore(simulation.state())
    simulation.advance(simulation.present_action())
    simulation.advance(simulation.present_action())
    impulse = sum(force for _, force in isaac.forces) / STEP_RATE
    np.testing.assert_allclose(impulse, [0.4 * 0.0301, 0.0, 0.0], atol=0.4 / 2400)
    assert {path for path, _ in isaac.forces} == {"/World/objects/items_0"}
    np.testing.assert_allclose(isaac.model.geom_friction, before)


def test_parts_start_and_come_back_where_the_layout_has_them(isaac: MujocoPhysics):
    door = open_library("furniture").model("microwave", 0).parts[0]
    ajar = placed("oven", "furniture", "microwave", joints={door.name: 0.4}, anchored=True, damping=1.5)
    simulation = loaded(ajar)
    here = next(one for path, one in isaac._dofs.items() if path.endswith(f"oven/joints/{door.name}"))
    assert isaac.data.qpos[here.qpos] == pytest.approx(0.4)
    assert isaac.model.dof_frictionloss[here.dof] == pytest.approx(door.joint.friction * 1.5)
    before = simulation.state()
    isaac.data.qpos[here.qpos] = 1.1
    simulation.restore(before)
    assert isaac.data.qpos[here.qpos] == pytest.approx(0.4)


def test_a_box_with_a_lid_that_stands_freely_is_placed_by_its_base(isaac: MujocoPhysics):
    kind = next(kind for kind in ("box", "lidded_box", "toolbox") if kind in open_library("furniture").kinds)
    simulation = loaded(placed("box", "furniture", kind))
    raised = simulation.state()
    address = simulation.model.joint(simulation.model.body("box").jntadr[0]).qposadr[0]
    raised.joint_positions[address + 2] += 0.2
    simulation.restore(raised)
    np.testing.assert_allclose(simulation.state().joint_positions, raised.joint_positions, atol=1e-6)


def test_a_moving_belt_is_refused(isaac: MujocoPhysics):
    task = load_task("conveyor_pick")
    assets = load_assets(task)
    simulation = IsaacSimSimulation(assets.stage, assets.robot, rate=task.rate)
    with pytest.raises(InputError, match="moving belt.*use --physics mujoco"):
        simulation.load(draw_physical(task, assets, seed=0, index=0))
    assert "open" not in isaac.done and "conveyor_pick" in MANIPULATION


def test_a_joint_that_no_articulation_has_is_told(isaac: MujocoPhysics):
    simulation = loaded()
    with pytest.raises(ValueError, match=r"joints \['elbow'\] are in none"):
        Joints(["/World/robot"], ["elbow", *simulation.joint_names])


def test_a_rate_that_does_not_divide_is_refused():
    with pytest.raises(InputError, match="does not divide the 240 Hz"):
        IsaacSimSimulation(read_stage("tabletop"), load_robot("panda"), rate=7.0)


def test_nothing_is_left_in_the_temporary_folder(isaac: MujocoPhysics):
    simulation = loaded(CAN)
    folder = simulation._folder.path
    simulation.close()
    assert not folder.exists()


@pytest.mark.parametrize("name", ["panda", "dual_panda"])
@pytest.mark.parametrize("shift", [-0.001, 0.0, 0.001])
def test_fingers_resist_a_load_across_them(name: str, shift: float):
    """At the mean opening, both drives exert their full force.

    The drive of a finger that is pushed back exerts less.
    """
    robot = load_robot(name)
    places = np.array(robot.home_joints)
    closed = places.copy()
    for arm in robot.arms:
        fingers = [robot.joint_names.index(joint) for joint in arm.gripper.joints]
        places[fingers] = 0.02 + np.array([shift, -shift])
        closed[fingers] = arm.gripper.closed
    held = SimpleNamespace(
        robot=robot,
        joint_names=robot.joint_names,
        data=SimpleNamespace(qpos=places),
        qpos_index=np.arange(len(places)),
    )
    order = IsaacSimSimulation._keep_fingers_together(cast(Any, held), closed)
    for arm in robot.arms:
        gripper, fingers = arm.gripper, [robot.joint_names.index(joint) for joint in arm.gripper.joints]
        forces = gripper.stiffness * (places - order)[fingers]
        np.testing.assert_allclose(
            forces - gripper.effort_limit, gripper.stiffness * np.array([shift, -shift]), atol=1e-9
        )
        others = [row for row in range(len(order)) if row not in fingers]
        assert len(robot.arms) > 1 or np.array_equal(order[others], closed[others])
