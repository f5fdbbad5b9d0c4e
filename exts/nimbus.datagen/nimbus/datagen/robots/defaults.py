"""What a robot file leaves out: the model says it, or it follows from the model's masses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nimbus.datagen.robots.joint_inertia import compute_joint_inertias
from nimbus.datagen.robots.robot import Arm, Manipulator
from nimbus.datagen.robots.urdf import Element, effort_of, ratio_of, speed_of

_FULL_EFFORT_AT = 0.05
"""[rad] Derived gains ask for a joint's whole effort when it is so far from its command; damping is then critical."""
_TRACKING_FREQUENCY = 40.0
"""[rad/s] Derived gains are at least those of a spring of this frequency against the joint's inertia at home."""
_EFFORT_SHARE = 0.25
"""Share of a joint's effort that derived acceleration limits may need."""
_ACCELERATION = (2.0, 12.0)
"""[rad/s^2] Derived acceleration limits stay between these."""


def complete_robot(one: Manipulator, root: Element) -> Manipulator:
    """With what the URDF knows in place of what the file leaves out."""
    arm, gripper = one.arm, one.gripper
    joints = {joint.get("name", ""): joint for joint in root.findall("joint")}
    if not gripper.ratios:
        lead = ratio_of(joints[gripper.joints[0]])
        ratios = tuple(ratio_of(joints[name]) / lead for name in gripper.joints)
        gripper = gripper.model_copy(update={"ratios": (1.0, *ratios[1:])})
    return one.model_copy(update={"arm": arm.model_copy(update=dict(_missing(arm, joints, root))), "gripper": gripper})


def _missing(arm: Arm, joints: Mapping[str, Element], root: Element) -> Iterator[tuple[str, tuple[float, ...]]]:
    effort = arm.effort_limits or tuple(effort_of(joints[name]) for name in arm.joints)
    yield "effort_limits", effort
    velocity = tuple(speed_of(joints[name]) for name in arm.joints)
    yield "velocity_limits", arm.velocity_limits or velocity
    if arm.acceleration_limits and arm.stiffness and arm.damping:
        return
    moved = compute_joint_inertias(root, dict(zip(arm.joints, arm.home, strict=True)))
    inertia = np.array([moved[name] for name in arm.joints]) + arm.armature
    stiffness = np.maximum(np.array(effort) / _FULL_EFFORT_AT, _TRACKING_FREQUENCY**2 * inertia)
    damping = 2.0 * np.sqrt(stiffness * inertia)
    acceleration = np.clip(_EFFORT_SHARE * np.array(effort) / inertia, *_ACCELERATION)
    yield "acceleration_limits", arm.acceleration_limits or tuple(acceleration.round(2).tolist())
    yield "stiffness", arm.stiffness or tuple(stiffness.round(2).tolist())
    yield "damping", arm.damping or tuple(damping.round(3).tolist())
