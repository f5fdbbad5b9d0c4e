"""Defaults for values that a robot file omits, computed from its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.robots.robot import BASE_JOINTS, Arm, BaseTravel, Manipulator
from nimbus.datagen.robots.urdf import (
    Element,
    axis_of,
    child_of,
    effort_of,
    is_below,
    origin_of,
    parent_of,
    ratio_of,
    speed_of,
)

_FULL_EFFORT_AT = 0.05
"""Position error at which derived gains command a joint's whole effort [rad]; the derived damping is critical."""
_TRACKING_FREQUENCY = 40.0
"""Smallest natural frequency of a joint with its inertia at home [rad/s]; it limits the derived stiffness from
below."""
_EFFORT_SHARE = 0.25
"""Fraction of a joint's effort that derived acceleration limits may require."""
_ACCELERATION = (2.0, 12.0)
"""Range of derived acceleration limits [rad/s^2]."""


def compute_joint_inertias(root: Element, posture: Mapping[str, float]) -> dict[str, float]:
    """Compute the inertia of all moved links about each joint in a posture, with the other joints at rest [kg m^2].

    The value of a sliding joint is the moved mass [kg].
    """
    place = dict(_places(root, posture))
    below: dict[str, float] = {}
    children = {child_of(joint): joint for joint in root.findall("joint")}
    for joint in root.findall("joint"):
        name, child = joint.get("name", ""), child_of(joint)
        if name not in posture:
            continue
        world_T_child = place[child]
        axis, point, total = world_T_child[:3, :3] @ axis_of(joint), world_T_child[:3, 3], 0.0
        for link in root.findall("link"):
            label, inertial = link.get("name", ""), link.find("inertial")
            if inertial is None or not (label == child or is_below(label, child, children)):
                continue
            if joint.get("type") == "prismatic":
                total += _mass_of(inertial)
            else:
                total += _inertia_about(inertial, place[label], axis, point)
        below[name] = total
    return below


def _mass_of(inertial: Element) -> float:
    mass = inertial.find("mass")
    return 0.0 if mass is None else float(mass.get("value", "0"))


def _inertia_about(inertial: Element, world_T_link: FloatArray, axis: FloatArray, point: FloatArray) -> float:
    mass, tensor = inertial.find("mass"), inertial.find("inertia")
    if mass is None or tensor is None:
        return 0.0
    frame = world_T_link @ origin_of(inertial)
    ixx, ixy, ixz, iyy, iyz, izz = (float(tensor.get(name, "0")) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    local = frame[:3, :3].T @ axis
    own = local @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ local
    away = np.cross(axis, frame[:3, 3] - point)
    return float(mass.get("value", "0")) * float(away @ away) + float(own)


def _places(root: Element, posture: Mapping[str, float]) -> Iterator[tuple[str, FloatArray]]:
    """Yield ``base_T_link`` of every link."""
    joints = root.findall("joint")
    children = {child_of(joint) for joint in joints}
    known = {link.get("name", ""): np.eye(4) for link in root.findall("link") if link.get("name") not in children}
    waiting = list(joints)
    while waiting:
        ready = [joint for joint in waiting if parent_of(joint) in known]
        if not ready:
            break
        for joint in ready:
            moved, value = np.eye(4), posture.get(joint.get("name", ""), 0.0)
            if joint.get("type") == "prismatic":
                moved[:3, 3] = axis_of(joint) * value
            elif value:
                moved[:3, :3] = quat_to_matrix(quat_from_axis_angle(axis_of(joint), value))
            parent = known[parent_of(joint)]
            known[child_of(joint)] = parent @ origin_of(joint) @ moved
        waiting = [joint for joint in waiting if joint not in ready]
    yield from known.items()


def complete_robot(one: Manipulator, root: Element, travel: BaseTravel | None = None) -> Manipulator:
    """Fill in the values that a robot file omits; acceleration limits of a moving base are those of ``travel``."""
    arm, gripper = one.arm, one.gripper
    joints = {joint.get("name", ""): joint for joint in root.findall("joint")}
    if not gripper.ratios:
        lead = ratio_of(joints[gripper.joints[0]])
        ratios = tuple(ratio_of(joints[name]) / lead for name in gripper.joints)
        gripper = gripper.model_copy(update={"ratios": (1.0, *ratios[1:])})
    arm = arm.model_copy(update=dict(_missing(arm, joints, root, travel)))
    return one.model_copy(update={"arm": arm, "gripper": gripper})


def _missing(
    arm: Arm, joints: Mapping[str, Element], root: Element, travel: BaseTravel | None
) -> Iterator[tuple[str, tuple[float, ...]]]:
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
    if travel is not None:
        acceleration[: len(BASE_JOINTS)] = travel.acceleration
    yield "acceleration_limits", arm.acceleration_limits or tuple(acceleration.round(2).tolist())
    yield "stiffness", arm.stiffness or tuple(stiffness.round(2).tolist())
    yield "damping", arm.damping or tuple(damping.round(3).tolist())
