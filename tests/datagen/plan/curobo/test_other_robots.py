"""Robot with a torso, a second arm, a prismatic joint, joints off their bodies' frames, and rotated references."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from nimbus.datagen.plan.curobo.robot import TOOL, describe_robot, hanging_spheres, links
from nimbus.datagen.plan.curobo.world import describe_world
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.random_streams import generator
from tools.contract.curobo_behaviour import load_urdf

ROBOT = """
<mujoco><compiler angle="radian" autolimits="true"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body name="base" pos="0.1 0 0"><geom type="box" size="0.2 0.2 0.1" pos="0 0 0.1"/>
    <body name="torso" pos="0 0 0.3"><joint name="lift" type="slide" axis="0 0 1" range="0 0.5"/>
      <geom type="box" size="0.1 0.1 0.1"/>
      <body name="upper" pos="0.2 0.1 0.1" quat="0.9 0.1 0.3 0.2">
        <joint name="shoulder" axis="0.1 1 0.2" pos="0.03 0 -0.02" range="-2 2"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0"/>
        <body name="fore" pos="0.4 0 0"><joint name="reach" type="slide" axis="1 0 0" range="0 0.2"/>
          <geom type="cylinder" size="0.03 0.1" quat="0.7 0 0.7 0" pos="0.1 0 0"/>
          <body name="wrist" pos="0.25 0 0"><joint name="roll" axis="1 0 0" range="-3 3" ref="0.4"/>
            <geom type="sphere" size="0.04"/>
            <body name="jaw" pos="0.06 0 0"><joint name="grip" type="slide" axis="0 1 0" range="0 0.05"/>
              <geom type="box" size="0.03 0.01 0.01"/></body>
          </body></body></body>
      <body name="other" pos="0.1 -0.2 0.1"><joint name="other_shoulder" axis="0 1 0" range="-2 2"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0"/></body>
    </body></body>
  <body name="ball" pos="1 0 0.05"><freejoint/><geom type="ellipsoid" size="0.05 0.04 0.03"/></body>
</worldbody></mujoco>
"""
JOINTS = ("shoulder", "reach", "roll")


@pytest.fixture(scope="module")
def scene() -> PlanningScene:
    model = mujoco.MjModel.from_xml_string(ROBOT)
    body_T_tool = np.eye(4)
    body_T_tool[:3, 3] = 0.1, 0.02, 0.0
    bodies = ("base", "torso", "upper", "fore", "wrist", "jaw", "other")
    made = PlanningScene(
        model,
        arm_joints=JOINTS,
        tool_body="wrist",
        body_T_tool=body_T_tool,
        robot_bodies=bodies,
        gripper_bodies=("wrist", "jaw"),
        home=np.zeros(3),
    )
    qpos = np.array(model.qpos0)
    qpos[model.joint("lift").qposadr[0]], qpos[model.joint("grip").qposadr[0]] = 0.27, 0.04
    made.set_world(qpos)
    return made


def test_joints_that_are_not_planned_for_stay_where_they_are(scene: PlanningScene) -> None:
    robot = describe_robot(scene.parts(), home=scene.home, velocity=np.ones(3), acceleration=np.ones(3))
    assert robot.joints == JOINTS
    model = load_urdf(robot.urdf)
    data = mujoco.MjData(model)
    for q in generator(0, "other robots").uniform(*scene.limits.T, size=(30, 3)):
        data.qpos[[model.joint(name).qposadr[0] for name in JOINTS]] = q
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(data.body(TOOL).xpos, scene.tool_pose(q)[:3, 3], atol=1e-7)
        np.testing.assert_allclose(data.body(TOOL).xmat.reshape(3, 3), scene.tool_pose(q)[:3, :3], atol=1e-7)


def test_the_other_arm_is_an_obstacle_and_the_jaw_hangs_on_the_tool(scene: PlanningScene) -> None:
    scene.tool_pose(np.zeros(3))
    parts = scene.parts()
    assert [parts.model.body(body).name for body in links(parts)] == ["base", "torso", "upper", "fore", "wrist"]
    world = describe_world(parts)
    assert len(world.box_sizes) == 1 and len(world.mesh_names) == 2  # the floor; the ball and the other arm
    spheres = hanging_spheres(parts)
    tool_T_jaw = np.linalg.inv(scene.tool_pose(np.zeros(3))) @ scene.body_pose("jaw")
    assert len(spheres) and np.linalg.norm(spheres[:, :3] - tool_T_jaw[:3, 3], axis=1).max() < 0.035


def test_the_base_does_not_touch_what_it_stands_on(scene: PlanningScene) -> None:
    robot = describe_robot(scene.parts(), home=scene.home, velocity=np.ones(3), acceleration=np.ones(3))
    spheres = robot.config["robot_cfg"]["kinematics"]["collision_spheres"]["base"]
    assert spheres and min(sphere["center"][2] - sphere["radius"] for sphere in spheres) > 0.01
