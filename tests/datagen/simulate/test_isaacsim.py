"""The simulator for Isaac Sim, with an Isaac Sim that is played by the contract: what it is told, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import warp_arrays
from contract.kit_behaviour import Kit
from contract.names import Contract
from contract.standin import StandIn
from contract.warp_arrays import Warp

from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.isaacsim import STEP_RATE, IsaacSimSimulation
from nimbus.datagen.usd.stage import read_stage

_PRIMS = "isaacsim.core.experimental.prims.impl"
_UTILS = "isaacsim.core.experimental.utils.impl"
_MANAGER = "isaacsim.core.simulation_manager.impl.simulation_manager:SimulationManager"


def warp(values: Any) -> Warp:
    return warp_arrays.warp(values, float)


class IsaacSim:
    """Joints that are where they were told to go, after one step; bodies where the stage has them."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.targets: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        """Joints and where they are to be, by the prim of the articulation."""
        self.speeds: list[np.ndarray] = []
        self.stage: Any = None
        self.joints: dict[str, dict[str, np.ndarray]] = {}
        """Positions and velocities by the prim of the articulation."""
        self.bodies: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.velocities: list[tuple[np.ndarray, np.ndarray]] = []

    def behaviour(self) -> dict[str, Any]:
        def noted(name: str) -> Any:
            return lambda *_, **options: self.done.append(name + "".join(f" {k}={v}" for k, v in options.items()))

        def opened(path: str) -> tuple[bool, Any]:
            from pxr import Usd

            self.done.append("open")
            self.stage = Usd.Stage.Open(path)
            return True, self.stage

        def prims(prim: Any, paths: Any, **_: Any) -> None:
            prim.played_paths = [paths] if isinstance(paths, str) else list(paths)
            assert all(self.stage.GetPrimAtPath(path) for path in prim.played_paths)

        def rigid(prim: Any, paths: Any, **_: Any) -> None:
            from pxr import UsdPhysics

            prims(prim, paths)
            made = [self.stage.GetPrimAtPath(path).HasAPI(UsdPhysics.RigidBodyAPI) for path in prim.played_paths]
            assert made, "Isaac Sim refuses a view of nothing"
            assert all(made), "what stands would become a body that falls"

        def articulation(prim: Any, paths: Any, **_: Any) -> None:
            from pxr import Usd, UsdPhysics

            prims(prim, paths)
            below = Usd.PrimRange(self.stage.GetPrimAtPath(paths))
            roots = [str(found.GetPath()) for found in below if found.HasAPI(UsdPhysics.ArticulationRootAPI)]
            assert roots == [paths], "a root on a link floats"
            assert "initialize" in self.done, "joints have no names before"
            prim.played_names = dofs(self.stage, paths)
            self.joints[paths] = {name: np.zeros(len(prim.played_names)) for name in ("positions", "velocities")}

        def initialize() -> None:
            self.done.append("initialize")
            self.bodies["/World/objects/items_0"] = np.array([0.5, 0.0, -1.0]), np.array([0.0, 1.0, 0.0, 0.0])

        def poses(prim: Any) -> tuple[Warp, Warp]:
            from pxr import UsdGeom

            cache = UsdGeom.XformCache()
            found = [np.array(cache.GetLocalToWorldTransform(self.stage.GetPrimAtPath(p))).T for p in prim.played_paths]
            turned = np.tile([1.0, 0, 0, 0], (len(found), 1))
            given = [self.bodies.get(path) for path in prim.played_paths]
            places = [pose[0] if pose else matrix[:3, 3] for pose, matrix in zip(given, found, strict=True)]
            return warp(places), warp([pose[1] if pose else turn for pose, turn in zip(given, turned, strict=True)])

        def placed(prim: Any, places: Any, turns: Any) -> None:
            self.bodies |= dict(zip(prim.played_paths, zip(places, turns, strict=True), strict=True))

        def set_joints(name: str) -> Any:
            return lambda prim, values, *, dof_indices: self.joints[prim.played_paths[0]][name].__setitem__(
                dof_indices.astype(int), values[0]
            )

        def get_joints(name: str) -> Any:
            return lambda prim, *, dof_indices: warp(
                self.joints[prim.played_paths[0]][name][dof_indices.astype(int)][None]
            )

        def command(prim: Any, values: Any, *, dof_indices: Any) -> None:
            self.targets.setdefault(prim.played_paths[0], []).append((dof_indices.astype(int), values[0]))

        def step(*, steps: int) -> None:
            assert steps == 1
            for place, told in self.targets.items():
                self.joints[place]["positions"][told[-1][0]] = told[-1][1]

        zeros = lambda prim: (warp(np.zeros((len(prim.played_paths), 3))),) * 2  # noqa: E731
        arm, body = f"{_PRIMS}.articulation:Articulation", f"{_PRIMS}.rigid_prim:RigidPrim"
        return {
            f"{_UTILS}.app:update_app": lambda **_: None,
            f"{_UTILS}.app:play": noted("play"),
            f"{_UTILS}.app:stop": noted("stop"),
            f"{_UTILS}.stage:open_stage": opened,
            f"{_UTILS}.stage:is_stage_loading": lambda: False,
            f"{_UTILS}.stage:get_current_stage": lambda: self.stage,
            f"{_MANAGER}.assets_loading": lambda: False,
            f"{_MANAGER}.setup_simulation": noted("setup"),
            f"{_MANAGER}.initialize_physics": initialize,
            f"{_MANAGER}.step": step,
            f"{_PRIMS}.prim:Prim.__init__": prims,
            f"{arm}.__init__": articulation,
            f"{body}.__init__": rigid,
            f"{arm}.dof_names": lambda prim: prim.played_names,
            f"{arm}.get_dof_indices": lambda prim, names: warp([prim.played_names.index(name) for name in names]),
            f"{arm}.set_dof_positions": set_joints("positions"),
            f"{arm}.set_dof_velocities": set_joints("velocities"),
            f"{arm}.get_dof_positions": get_joints("positions"),
            f"{arm}.get_dof_velocities": get_joints("velocities"),
            f"{arm}.set_dof_velocity_targets": lambda _, values, *, dof_indices: self.speeds.append(values[0]),
            f"{arm}.set_dof_position_targets": command,
            f"{body}.get_world_poses": poses,
            f"{body}.set_world_poses": placed,
            f"{body}.get_velocities": zeros,
            f"{body}.set_velocities": lambda _, linear, angular: self.velocities.append((linear, angular)),
        }


def dofs(stage: Any, place: str) -> list[str]:
    """Joints that move, of the articulation that begins at a prim, in an order that is not ours."""
    from pxr import Usd, UsdPhysics

    def ends(prim: Any) -> list[Any]:
        joint: Any = UsdPhysics.Joint(prim)
        found = [*joint.GetBody0Rel().GetTargets(), *joint.GetBody1Rel().GetTargets()]
        return [end for end in found if stage.GetPrimAtPath(end).HasAPI(UsdPhysics.RigidBodyAPI)]

    root = stage.GetPrimAtPath(place)
    joints = [prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)]
    bodies = [prim.GetPath() for prim in Usd.PrimRange(root) if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    reached = set(ends(root) if root in joints else bodies)
    own: list[Any] = []
    while further := [prim for prim in joints if prim not in own and reached.intersection(ends(prim))]:
        own += further
        reached.update(end for prim in further for end in ends(prim))
    return sorted((prim.GetName() for prim in own if not prim.IsA(UsdPhysics.FixedJoint)), reverse=True)


@pytest.fixture
def isaac() -> Iterator[IsaacSim]:
    isaac = IsaacSim()
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(Kit().behaviour(standin.make) | isaac.behaviour())
    with standin.installed():
        yield isaac


def placed(name: str, library: str, kind: str, **values: Any) -> PlacedObject:
    """The first variant of a kind, at rest on the table."""
    model = ObjectLibrary.open(library).model(kind, 0)
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
def simulation(isaac: IsaacSim) -> IsaacSimSimulation:
    simulation = IsaacSimSimulation(read_stage("tabletop"), load_robot("panda"), rate=20.0)
    simulation.load(layout())
    return simulation


def test_a_scene_in_which_nothing_is_loose_is_loaded_and_restored(isaac: IsaacSim):
    simulation = IsaacSimSimulation(read_stage("table"), load_robot("panda"), rate=20.0)
    simulation.load(PhysicalLayout(objects=()))
    state = simulation.state()
    assert len(state.joint_positions) == len(simulation.joint_names)
    simulation.restore(state)
    np.testing.assert_array_equal(simulation.joint_positions(), state.joint_positions)
    simulation.close()


def test_physics_starts_after_the_stage_and_the_arm_at_home(isaac: IsaacSim, simulation: IsaacSimSimulation):
    assert isaac.done == ["stop", "open", f"setup dt={1 / STEP_RATE} device=cpu", "play commit=True", "initialize"]
    robot = simulation.robot
    home = [*robot.arm.home, robot.gripper.open, robot.gripper.open]
    np.testing.assert_allclose(simulation.joint_positions(), home)
    np.testing.assert_allclose(isaac.targets["/World/robot"][-1][1], home)


def test_bodies_are_those_of_the_default_simulator(isaac: IsaacSim, simulation: IsaacSimSimulation):
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


def test_what_fell_while_physics_started_lies_where_the_layout_has_it(isaac: IsaacSim, simulation: IsaacSimSimulation):
    (item,) = layout().objects
    row = simulation.body_names.index("items_0")
    np.testing.assert_allclose(simulation.body_positions()[row], item.position, atol=1e-6)
    np.testing.assert_allclose(np.abs(simulation.body_wxyz()[row] @ item.wxyz), 1.0, atol=1e-6)
    assert not np.any(isaac.velocities)


def test_commands_are_followed_along_a_smooth_path_whose_speed_the_drives_are_told(
    isaac: IsaacSim, simulation: IsaacSimSimulation
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


def test_arms_that_stand_by_themselves_are_articulations_of_their_own(isaac: IsaacSim):
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


def test_a_joint_that_no_articulation_has_is_told(isaac: IsaacSim, simulation: IsaacSimSimulation):
    from nimbus.datagen.simulate.isaacsim_joints import Joints

    with pytest.raises(ValueError, match=r"joints \['elbow'\] are in none"):
        Joints(["/World/robot"], ["elbow", *simulation.joint_names])


def test_a_state_is_restored_whole(isaac: IsaacSim, simulation: IsaacSimSimulation):
    before = simulation.state()
    simulation.advance(np.zeros(8))
    isaac.bodies["/World/objects/items_0"] = np.array([9.0, 9, 9]), np.array([1.0, 0, 0, 0])
    simulation.restore(before)
    after = simulation.state()
    np.testing.assert_allclose(after.joint_positions, before.joint_positions)
    assert simulation.is_stable


def test_parts_of_objects_start_and_come_back_where_the_layout_has_them(isaac: IsaacSim):
    place = "/World/objects/oven"
    simulation = IsaacSimSimulation(read_stage("tabletop"), load_robot("panda"), rate=20.0)
    door = ObjectLibrary.open("furniture").model("microwave", 0).parts[0]
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


def test_nothing_is_left_in_the_temporary_folder(isaac: IsaacSim, simulation: IsaacSimSimulation):
    folder = Path(simulation._folder.name)
    simulation.close()
    assert not folder.exists()
