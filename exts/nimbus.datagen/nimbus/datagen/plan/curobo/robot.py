"""Description of the robot for cuRobo: a chain of links in a URDF, with spheres on them.

Everything is derived from the simulator's model, so that no second description of the robot can diverge. Bodies that
move with the tool but not by the arm's joints (fingers, held object) are spheres of one more link, which are updated
for each query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.plan.curobo.spheres import Hull, cover, geom_points
from nimbus.datagen.plan.curobo.world import body_pose, geom_pose, joints_above, pose_vector, solid_geoms
from nimbus.datagen.plan.parts import SceneParts

BASE, TOOL, ATTACHED = "nimbus_world", "nimbus_tool", "nimbus_attached"
"""Links added to every robot: the world, the tool frame, and the bodies attached to it."""
SLOTS = 64
"""Number of spheres for attached bodies."""
_FASTEST = 2.0
"""Speed at which cuRobo plans the fastest joint [rad/s]. It is the same at all speed limits, so that the description of
the robot does not change; the motion is retimed afterwards."""
_STAND_OFF = 0.015
"""Smallest distance between the spheres of the base and its support [m]."""


@dataclass(frozen=True, kw_only=True)
class RobotModel:
    """Robot model for cuRobo."""

    urdf: str
    config: dict[str, Any]
    """``robot_cfg`` without the path of the URDF; plain values."""
    joints: tuple[str, ...]


def describe_robot(
    parts: SceneParts, *, home: FloatArray, velocity: FloatArray, acceleration: FloatArray
) -> RobotModel:
    """Describe the arm of a planning scene.

    Args:
        parts: The scene.
        home: (J,) a posture free of self-collision.
        velocity: (J,) limits [rad/s].
        acceleration: (J,) limits [rad/s^2].
    """
    model = parts.model
    scale = float(velocity.max()) / _FASTEST
    velocity, acceleration = np.round(velocity / scale, 6), np.round(acceleration / scale**2, 6)
    joints = tuple(model.joint(joint).name for joint in parts.arm_joints)
    bodies = links(parts)
    spheres = {model.body(body).name: _link_spheres(parts, body) for body in bodies}
    spheres = {name: found for name, found in spheres.items() if len(found)}
    kinematics = {
        "format_version": 2.0,
        "base_link": BASE,
        "tool_frames": [TOOL],
        "collision_link_names": [*spheres, ATTACHED],
        "collision_spheres": {
            name: [{"center": row[:3].round(6).tolist(), "radius": round(float(row[3]), 6)} for row in found]
            for name, found in spheres.items()
        },
        "collision_sphere_buffer": 0.0,
        "extra_collision_spheres": {ATTACHED: SLOTS},
        "self_collision_ignore": _ignored(parts, spheres, home),
        "self_collision_buffer": {name: 0.0 for name in (*spheres, ATTACHED)},
        "grasp_contact_link_names": [ATTACHED],
        "cspace": {
            "joint_names": list(joints),
            "default_joint_position": [float(value) for value in home],
            "cspace_distance_weight": [1.0] * len(joints),
            "null_space_weight": [1.0] * len(joints),
            "max_acceleration": acceleration.tolist(),
            "max_jerk": 500.0,
        },
    }
    return RobotModel(
        urdf=_urdf(parts, bodies, velocity), config={"robot_cfg": {"kinematics": kinematics}}, joints=joints
    )


def links(parts: SceneParts) -> list[int]:
    """Return the robot's bodies that only the joints of the chain to the tool move, parents first."""
    chain = set(joints_above(parts.model, parts.tool_body))
    return sorted(body for body in parts.robot if set(joints_above(parts.model, body)) <= chain)


def hanging_spheres(parts: SceneParts) -> FloatArray:
    """Return (N, 4) centers in the tool frame and radii of the spheres of fingers and held object [m]."""
    model, arm, own = parts.model, set(parts.arm_joints), set(links(parts))
    carried = [body for body in parts.robot if body not in own and arm & set(joints_above(model, body))]
    bodies = [body for body in carried if body in parts.facing_world]
    if parts.held is not None and parts.held in parts.facing_world:
        bodies.append(parts.held)
    world_T_tool = body_pose(parts, parts.tool_body) @ parts.body_T_tool
    tool_T_world = np.linalg.inv(world_T_tool)
    geoms = _geoms_of(parts, bodies)
    found = [np.zeros((0, 4))]
    for geom in geoms:
        spheres = cover(geom_points(model, geom), limit=SLOTS // len(geoms))
        tool_T_geom = tool_T_world @ geom_pose(parts, geom)
        found.append(_moved(spheres, tool_T_geom))
    return np.vstack(found)


def _moved(spheres: FloatArray, pose: FloatArray) -> FloatArray:
    return np.column_stack([spheres[:, :3] @ pose[:3, :3].T + pose[:3, 3], spheres[:, 3]])


def _geoms_of(parts: SceneParts, bodies: list[int]) -> list[int]:
    """Return solid geoms with a volume, at most as many as there are slots."""
    return solid_geoms(parts.model, bodies)[:SLOTS]


def _link_spheres(parts: SceneParts, body: int) -> FloatArray:
    """Return (N, 4) spheres in the link's frame [m]."""
    model = parts.model
    found = [np.zeros((0, 4))]
    for geom in solid_geoms(model, [body]):
        spheres = cover(geom_points(model, geom))
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
        found.append(np.column_stack([spheres[:, :3] @ rotation.reshape(3, 3).T + model.geom_pos[geom], spheres[:, 3]]))
    spheres = np.vstack(found)
    return spheres if body in parts.facing_world else _lifted(parts, body, spheres)


def _lifted(parts: SceneParts, body: int, spheres: FloatArray) -> FloatArray:
    """Shrink or remove spheres of the base that would touch its support."""
    world_T_body = body_pose(parts, body)
    centers = spheres[:, :3] @ world_T_body[:3, :3].T + world_T_body[:3, 3]
    room = np.full(len(spheres), np.inf)
    for geom in parts.world_geoms:
        if joints_above(parts.model, int(parts.model.geom_bodyid[geom])):
            continue  # the robot does not stand on a loose object
        world_T_geom = geom_pose(parts, geom)
        local = (centers - world_T_geom[:3, 3]) @ world_T_geom[:3, :3]
        plane = parts.model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
        depth = -local[:, 2] if plane else Hull.of(geom_points(parts.model, geom)).depth(local)
        room = np.minimum(room, -depth - _STAND_OFF)
    shrunk = np.column_stack([spheres[:, :3], np.minimum(spheres[:, 3], room)])
    return shrunk[shrunk[:, 3] > 0.01]


def _ignored(parts: SceneParts, spheres: dict[str, FloatArray], home: FloatArray) -> dict[str, list[str]]:
    """Return the pairs of links that cuRobo must not test.

    These are the pairs that the simulator does not test either, and those whose spheres touch in the home posture
    although the links do not.
    """
    model, names = parts.model, list(spheres)
    number = {name: model.body(name).id for name in names}
    data = mujoco.MjData(model)
    data.qpos[:] = parts.data.qpos
    data.qpos[[model.jnt_qposadr[joint] for joint in parts.arm_joints]] = home
    mujoco.mj_kinematics(model, data)

    def is_tested(one: str, other: str) -> bool:
        low, high = sorted((number[one], number[other]))
        return (low, high) in parts.pairs and _gap(
            data, (number[one], spheres[one]), (number[other], spheres[other])
        ) > 0

    ignored = {
        one: [other for other in names[index + 1 :] if not is_tested(one, other)] for index, one in enumerate(names)
    }
    hand = model.body_weldid[parts.tool_body]
    beside = [name for name in names if number[name] in parts.gripper or model.body_weldid[number[name]] == hand]
    return {name: others for name, others in ignored.items() if others} | {ATTACHED: beside}


def _gap(data: mujoco.MjData, one: tuple[int, FloatArray], other: tuple[int, FloatArray]) -> float:
    """Return the smallest distance between the spheres of two bodies [m]."""
    centers = [found[:, :3] @ data.xmat[body].reshape(3, 3).T + data.xpos[body] for body, found in (one, other)]
    apart = np.linalg.norm(centers[0][:, None] - centers[1][None], axis=2)
    return float((apart - one[1][:, None, 3] - other[1][None, :, 3]).min())


def _urdf(parts: SceneParts, bodies: list[int], velocity: FloatArray) -> str:
    """Write links and joints without shapes; the world frame is the simulator's."""
    model = parts.model
    lines = ['<?xml version="1.0"?>', '<robot name="nimbus">', _link(BASE)]
    speed = dict(zip(parts.arm_joints, velocity, strict=True))
    for body in bodies:
        name, parent = model.body(body).name, _parent(parts, body, bodies)
        above = model.body(parent).name if parent else BASE
        joint = next((own for own in joints_above(model, body)[: model.body_jntnum[body]] if own in speed), None)
        if joint is None:
            lines += [_link(name), _joint(f"{name}_mount", "fixed", above, name, _fixed(parts, parent, body))]
            continue
        anchor = f"{name}_anchor"
        at_anchor, back = _at_joint(model, body, joint)
        kind = "prismatic" if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE else "revolute"
        low, high = model.jnt_range[joint]
        moving = (
            f'<axis xyz="{_numbers(model.jnt_axis[joint])}"/>'
            f'<limit lower="{low:.9g}" upper="{high:.9g}" effort="1000" velocity="{speed[joint]:.9g}"/>'
        )
        lines += [_link(anchor), _joint(model.joint(joint).name, kind, above, anchor, at_anchor, moving)]
        lines += [_link(name), _joint(f"{name}_mount", "fixed", anchor, name, back)]
    hand = model.body(parts.tool_body).name
    lines += [_link(TOOL), _joint(f"{TOOL}_mount", "fixed", hand, TOOL, parts.body_T_tool)]
    lines += [_link(ATTACHED), _joint(f"{ATTACHED}_mount", "fixed", TOOL, ATTACHED, np.eye(4))]
    return "\n".join([*lines, "</robot>"])


def _parent(parts: SceneParts, body: int, bodies: list[int]) -> int:
    """Return the nearest ancestor that is a link, or the world."""
    parent = int(parts.model.body_parentid[body])
    return parent if parent == 0 or parent in bodies else _parent(parts, parent, bodies)


def _fixed(parts: SceneParts, parent: int, body: int) -> FloatArray:
    """Return ``parent_T_body`` of a body that no arm joint moves relative to its parent; its own joint is fixed."""
    if parts.model.body_jntnum[body] or parts.model.body_parentid[body] != parent:
        return np.round(np.linalg.inv(body_pose(parts, parent)) @ body_pose(parts, body), 9)
    return _placed(parts.model.body_pos[body], parts.model.body_quat[body])


def _placed(position: FloatArray, wxyz: FloatArray) -> FloatArray:
    pose, rotation = np.eye(4), np.empty(9)
    mujoco.mju_quat2Mat(rotation, wxyz)
    pose[:3, :3], pose[:3, 3] = rotation.reshape(3, 3), position
    return pose


def _at_joint(model: mujoco.MjModel, body: int, joint: int) -> tuple[FloatArray, FloatArray]:
    """Return ``parent_T_anchor`` with the joint at 0, and ``anchor_T_body``; MuJoCo's joint is inside the body."""
    body_T_anchor, turned = np.eye(4), np.eye(4)
    body_T_anchor[:3, 3] = model.jnt_pos[joint]
    offset = -float(model.qpos0[model.jnt_qposadr[joint]])
    if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
        turned[:3, 3] = offset * model.jnt_axis[joint]
    else:
        wxyz = np.empty(4)
        mujoco.mju_axisAngle2Quat(wxyz, model.jnt_axis[joint], offset)
        turned = _placed(np.zeros(3), wxyz)
    back = np.eye(4)
    back[:3, 3] = -model.jnt_pos[joint]
    return _placed(model.body_pos[body], model.body_quat[body]) @ body_T_anchor @ turned, back


def _link(name: str) -> str:
    return f"<link name={quoteattr(name)}/>"


def _joint(name: str, kind: str, parent: str, child: str, parent_T_child: FloatArray, moving: str = "") -> str:
    ends = f"<parent link={quoteattr(parent)}/><child link={quoteattr(child)}/>"
    origin = f'<origin xyz="{_numbers(parent_T_child[:3, 3])}" rpy="{_numbers(_roll_pitch_yaw(parent_T_child))}"/>'
    return f'<joint name={quoteattr(name)} type="{kind}">{ends}{origin}{moving}</joint>'


def _roll_pitch_yaw(pose: FloatArray) -> FloatArray:
    """Return (3,) URDF's angles about fixed axes x, y, z [rad]."""
    from scipy.spatial.transform import Rotation

    w, x, y, z = pose_vector(pose)[3:]
    return Rotation.from_quat([x, y, z, w]).as_euler("xyz")


def _numbers(values: FloatArray) -> str:
    return " ".join(f"{round(float(value), 10) + 0.0:.12g}" for value in values)
