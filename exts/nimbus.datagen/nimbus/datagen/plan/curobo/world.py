"""Description of the world for cuRobo: boxes as they are, everything else as the mesh of its hull."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.plan.curobo.spheres import Hull, geom_points
from nimbus.datagen.plan.parts import SceneParts

_WIDE, _THICK = 20.0, 0.2
"""Width and thickness of the box that replaces a plane [m]."""


@dataclass(frozen=True, kw_only=True)
class CuroboWorld:
    """Obstacles in the world frame; poses are positions [m] and quaternions wxyz."""

    box_poses: FloatArray
    """(B, 7) poses of the boxes."""
    box_sizes: FloatArray
    """(B, 3) full extents of the boxes [m]."""
    mesh_names: tuple[str, ...]
    """Names of the meshes. Those of equal meshes differ only in the final number: cuRobo identifies meshes by name."""
    mesh_poses: FloatArray
    """(M, 7) poses of the meshes."""
    mesh_vertices: tuple[FloatArray, ...]
    mesh_faces: tuple[NDArray[np.int64], ...]

    @property
    def key(self) -> str:
        """Hash of the whole content."""
        parts = [self.box_poses, self.box_sizes, self.mesh_poses]
        data = b"".join(part.tobytes() for part in parts) + "|".join(self.mesh_names).encode()
        return hashlib.sha256(data).hexdigest()


def describe_world(parts: SceneParts) -> CuroboWorld:
    """Describe the obstacles in their current poses, including parts of the robot that its arm does not carry."""
    boxes: list[tuple[FloatArray, FloatArray]] = []
    meshes: list[tuple[str, FloatArray, Hull]] = []
    for geom in (*parts.world_geoms, *_other_arms(parts)):
        world_T_geom = geom_pose(parts, geom)
        kind, size = parts.model.geom_type[geom], parts.model.geom_size[geom]
        if kind == mujoco.mjtGeom.mjGEOM_BOX:
            boxes.append((pose_vector(world_T_geom), 2 * size))
        elif kind == mujoco.mjtGeom.mjGEOM_PLANE:
            below = np.eye(4)
            below[2, 3] = -_THICK / 2
            boxes.append((pose_vector(world_T_geom @ below), np.array([_WIDE, _WIDE, _THICK])))
        else:
            hull = Hull.of(geom_points(parts.model, geom))
            name = hashlib.sha256(hull.vertices.tobytes() + hull.faces.tobytes()).hexdigest()[:16]
            meshes.append((f"{name}-{geom}", pose_vector(world_T_geom), hull))
    return CuroboWorld(
        box_poses=np.array([pose for pose, _ in boxes]).reshape(-1, 7),
        box_sizes=np.array([size for _, size in boxes]).reshape(-1, 3),
        mesh_names=tuple(name for name, _, _ in meshes),
        mesh_poses=np.array([pose for _, pose, _ in meshes]).reshape(-1, 7),
        mesh_vertices=tuple(hull.vertices for _, _, hull in meshes),
        mesh_faces=tuple(hull.faces for _, _, hull in meshes),
    )


def _other_arms(parts: SceneParts) -> list[int]:
    """Return solid geoms of the robot that move by joints other than the planned ones."""
    model, chain = parts.model, set(joints_above(parts.model, parts.tool_body))
    above = {body: set(joints_above(model, body)) for body in parts.robot}
    bodies = [body for body, joints in above.items() if not joints <= chain and not joints & set(parts.arm_joints)]
    return solid_geoms(model, bodies)


def joints_above(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the joints between the world and a body."""
    found: list[int] = []
    while body:
        first = model.body_jntadr[body]
        found += range(first, first + model.body_jntnum[body])
        body = int(model.body_parentid[body])
    return found


def solid_geoms(model: mujoco.MjModel, bodies: list[int]) -> list[int]:
    """Return the geoms of some bodies that can collide."""
    solid = (model.geom_contype | model.geom_conaffinity) != 0
    return [int(geom) for geom in np.flatnonzero(np.isin(model.geom_bodyid, bodies) & solid)]


def geom_pose(parts: SceneParts, geom: int) -> FloatArray:
    """Return (4, 4) ``world_T_geom``."""
    pose = np.eye(4)
    pose[:3, :3] = parts.data.geom_xmat[geom].reshape(3, 3)
    pose[:3, 3] = parts.data.geom_xpos[geom]
    return pose


def body_pose(parts: SceneParts, body: int) -> FloatArray:
    """Return (4, 4) ``world_T_body``."""
    pose = np.eye(4)
    pose[:3, :3] = parts.data.xmat[body].reshape(3, 3)
    pose[:3, 3] = parts.data.xpos[body]
    return pose


def pose_vector(pose: FloatArray) -> FloatArray:
    """Return (7,) position [m] and quaternion wxyz of a (4, 4) pose."""
    wxyz = np.empty(4)
    mujoco.mju_mat2Quat(wxyz, np.ascontiguousarray(pose[:3, :3]).ravel())
    return np.concatenate([pose[:3, 3], wxyz])
