"""Kinematics of an arm with five joints, which cannot turn its tool in every direction."""

from __future__ import annotations

import mujoco
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.plan.arm import ArmKinematics, arm_model

JOINTS = ["pan", "lift", "elbow", "bend", "roll"]
MASS = "mass='1' diaginertia='0.01 0.01 0.01'"
MODEL = mujoco.MjModel.from_xml_string(
    f"""
    <mujoco>
      <compiler angle='radian'/>
      <default><joint range='-2 2'/></default>
      <worldbody>
        <body><inertial pos='0 0 0' {MASS}/><joint name='pan' axis='0 0 1'/>
          <body pos='0 0 0.1'><inertial pos='0 0 0' {MASS}/><joint name='lift' axis='0 1 0'/>
            <body pos='0 0 0.12'><inertial pos='0 0 0' {MASS}/><joint name='elbow' axis='0 1 0'/>
              <body pos='0.13 0 0'><inertial pos='0 0 0' {MASS}/><joint name='bend' axis='0 1 0'/>
                <body name='hand' pos='0.06 0 0'><inertial pos='0 0 0' {MASS}/><joint name='roll' axis='1 0 0'/>
                </body>
              </body>
            </body>
          </body>
        </body>
      </worldbody>
    </mujoco>
    """
)
HAND_T_TOOL = np.eye(4)
HAND_T_TOOL[:3, 3] = 0.09, 0.0, 0.015
ARM = ArmKinematics(arm_model(MODEL, arm_joints=JOINTS, tool_body="hand", body_T_tool=HAND_T_TOOL))
small = st.floats(-0.04, 0.04)


@settings(max_examples=60, deadline=None)
@given(
    pan=st.floats(-0.7, 0.7),
    lift=st.floats(-0.1, 0.3),
    elbow=st.floats(0.0, 0.5),
    roll=st.floats(-1.5, 1.5),
    lean=st.floats(-0.006, 0.006),
    away=st.tuples(small, small, small),
)
def test_a_pose_near_the_posture_is_reached_though_the_tool_leans_a_little(
    pan: float, lift: float, elbow: float, roll: float, lean: float, away: tuple[float, float, float]
) -> None:
    q = np.array([pan, lift, elbow, np.pi / 2 - lift - elbow, roll])
    pose = ARM.tool_pose(q)
    pose[:3, :3] = quat_to_matrix(quat_from_axis_angle((np.cos(pan), np.sin(pan), 0.0), lean)) @ pose[:3, :3]
    found = ARM.solve(pose, q + [0.0, *away, 0.0], iterations=8)
    assert found is not None and np.abs(found - q).max() < 0.05
    reached = ARM.tool_pose(found)
    assert np.linalg.norm(reached[:3, 3] - pose[:3, 3]) < 2e-4
    assert np.abs(reached[:3, :3] - pose[:3, :3]).max() < 2 * abs(lean) + 2e-3
