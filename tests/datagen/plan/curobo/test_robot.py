"""Robot and world in the form for cuRobo, compared with the simulator's own geometry."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nimbus.datagen.plan.curobo.robot import ATTACHED, BASE, SLOTS, TOOL, RobotModel, describe_robot, hanging_spheres
from nimbus.datagen.plan.curobo.spheres import TOLERANCE, Hull, cover, geom_points
from nimbus.datagen.plan.curobo.world import describe_world
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.random_streams import generator
from tests.support import panda_table
from tests.support.panda_table import HOME, JOINTS
from tools.contract.curobo_behaviour import ROBOT_KEYS, load_urdf

CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


@pytest.fixture(scope="module")
def scene() -> PlanningScene:
    return panda_table.make_scene(panda_table.table_model())


@pytest.fixture(scope="module")
def robot(scene: PlanningScene) -> RobotModel:
    return describe_robot(
        scene.parts(), home=scene.home, velocity=panda_table.VELOCITY, acceleration=panda_table.ACCELERATION
    )


def test_the_tool_of_the_urdf_is_where_the_simulator_has_it(scene: PlanningScene, robot: RobotModel) -> None:
    model = load_urdf(robot.urdf)
    data = mujoco.MjData(model)
    address = [model.joint(name).qposadr[0] for name in robot.joints]
    for q in generator(0, "urdf").uniform(*scene.limits.T, size=(50, len(scene.limits))):
        data.qpos[address] = q
        mujoco.mj_kinematics(model, data)
        found = data.body(TOOL)
        expected = scene.tool_pose(q)
        np.testing.assert_allclose(found.xpos, expected[:3, 3], atol=1e-8)
        np.testing.assert_allclose(found.xmat.reshape(3, 3), expected[:3, :3], atol=1e-8)
    assert robot.joints == JOINTS and model.body(1).name == BASE
    np.testing.assert_allclose(model.jnt_range, scene.limits, atol=1e-8)


def test_the_robots_configuration_has_no_key_that_curobo_does_not_know(robot: RobotModel) -> None:
    kinematics = robot.config["robot_cfg"]["kinematics"]
    assert set(kinematics) <= ROBOT_KEYS
    names = kinematics["collision_link_names"]
    assert names[-1] == ATTACHED and kinematics["extra_collision_spheres"] == {ATTACHED: SLOTS}
    assert set(kinematics["self_collision_buffer"]) == set(names)
    assert set(kinematics["self_collision_ignore"][ATTACHED]) >= {"panda_hand", "panda_link7"}
    assert "panda_link2" in kinematics["self_collision_ignore"]["panda_link1"]
    assert sum(map(len, kinematics["collision_spheres"].values())) < 300


def test_a_slower_pace_is_the_same_robot(scene: PlanningScene, robot: RobotModel) -> None:
    slower = describe_robot(
        scene.parts(),
        home=scene.home,
        velocity=0.75 * panda_table.VELOCITY,
        acceleration=0.75**2 * panda_table.ACCELERATION,
    )
    assert slower == robot


@settings(max_examples=5, phases=[Phase.explicit, Phase.generate])
@given(st.lists(st.tuples(*[st.integers(-4, 4)] * 3), min_size=1, max_size=6))
def test_spheres_cover_a_hull_and_hardly_stand_out_of_it(corners: list[tuple[int, int, int]]) -> None:
    solid = np.vstack([0.005 * CORNERS, 0.01 * np.array(corners)])
    hull = Hull.of(solid)
    spheres = cover(solid, limit=100)
    assert (hull.depth(spheres[:, :3]) >= -1e-6).all()
    assert (spheres[:, 3] <= np.maximum(hull.depth(spheres[:, :3]), 0.0) + 2 * TOLERANCE).all()
    surface = hull.vertices[hull.faces].mean(axis=1)
    apart = np.linalg.norm(surface[:, None] - spheres[None, :, :3], axis=2) - spheres[None, :, 3]
    assert apart.min(axis=1).max() < 0.01


def test_the_faces_of_a_hull_look_outwards(scene: PlanningScene) -> None:
    parts = scene.parts()
    meshes = [geom for geom in range(parts.model.ngeom) if parts.model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH]
    for geom in meshes[:4]:
        hull = Hull.of(geom_points(parts.model, geom))
        a, b, c = (hull.vertices[hull.faces[:, index]] for index in range(3))
        volume = np.einsum("ij,ij->i", a - hull.vertices.mean(axis=0), np.cross(b, c) - np.cross(a, c) + np.cross(a, b))
        assert (volume > -1e-12).all()


OURS = frozenset({*panda_table.ROBOT, "can"})


def touches_by_spheres(scene: PlanningScene, robot: RobotModel, q: np.ndarray) -> bool:
    """Return True if a posture touches the world according to the description of the robot for cuRobo."""
    scene.tool_pose(q)
    parts = scene.parts()
    placed: list[np.ndarray] = []
    for name, spheres in robot.config["robot_cfg"]["kinematics"]["collision_spheres"].items():
        body = parts.data.body(name)
        for sphere in spheres:
            placed.append(np.append(body.xmat.reshape(3, 3) @ sphere["center"] + body.xpos, sphere["radius"]))
    tool = scene.tool_pose(q)
    placed += [np.append(tool[:3, :3] @ row[:3] + tool[:3, 3], row[3]) for row in hanging_spheres(parts)]
    everything = np.array(placed)
    world = describe_world(parts)
    solids = [(pose, Hull.of(size / 2 * CORNERS)) for pose, size in zip(world.box_poses, world.box_sizes, strict=True)]
    solids += [(pose, Hull.of(vertices)) for pose, vertices in zip(world.mesh_poses, world.mesh_vertices, strict=True)]
    for pose, hull in solids:
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, pose[3:])
        local = (everything[:, :3] - pose[:3]) @ rotation.reshape(3, 3)
        if (hull.depth(local) + everything[:, 3] > 0).any():
            return True
    return False


def test_what_touches_in_the_simulator_touches_for_curobo_too(scene: PlanningScene, robot: RobotModel) -> None:
    """An object is in the hand. Home, and postures with 3 cm of clearance, are free for both."""
    scene.hold("can", np.diag([1.0, -1.0, -1.0, 1.0]))
    drawn = generator(0, "spheres").uniform(*scene.limits.T, size=(1000, len(scene.limits)))
    with scene.nearer(0.0):
        world = [q for q in drawn if any(len(pair & OURS) == 1 for pair in map(frozenset, scene.contacts(q)))]
    found = [touches_by_spheres(scene, robot, q) for q in world]
    assert len(world) > 100 and np.mean(found) > 0.98
    free = [q for q in drawn if scene.clearance(q) > 0.03]
    assert len(free) > 30 and not any(touches_by_spheres(scene, robot, q) for q in (HOME, *free))
    scene.hold(None)


def test_the_world_has_everything_but_the_robot_and_what_it_holds(scene: PlanningScene) -> None:
    scene.hold(None)
    before = describe_world(scene.parts())
    assert len(before.box_sizes) == 1 + 3 * 5 + 2 and len(before.mesh_names) == 2
    np.testing.assert_allclose(before.box_sizes[0], [1.2, 1.8, 0.05])
    np.testing.assert_allclose(np.linalg.norm(before.box_poses[:, 3:], axis=1), 1.0)
    scene.hold("can", np.eye(4))
    held = describe_world(scene.parts())
    assert len(held.mesh_names) == 1 and held.key != before.key
    scene.hold(None)
    with scene.allow("carton"):
        assert len(describe_world(scene.parts()).box_sizes) == len(before.box_sizes) - 1
    assert describe_world(scene.parts()).key == before.key


def test_the_fingers_and_what_is_held_hang_on_the_tool(scene: PlanningScene) -> None:
    scene.hold(None)
    fingers = hanging_spheres(scene.parts())
    assert 0 < len(fingers) <= SLOTS and np.abs(fingers[:, 1]).max() > 0.03
    scene.hold("can", np.diag([1.0, -1.0, -1.0, 1.0]))
    both = hanging_spheres(scene.parts())
    assert len(fingers) < len(both) <= SLOTS and both[:, 2].max() > fingers[:, 2].max() + 0.02
    scene.hold(None)
