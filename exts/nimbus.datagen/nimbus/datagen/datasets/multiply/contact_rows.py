"""Contacts in each row of a demonstration, computed by placing the scene as recorded."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.geometry.transforms import make_transform, quat_to_matrix

if TYPE_CHECKING:
    from nimbus.datagen.datasets.multiply.source import Demonstration
    from nimbus.datagen.simulate.newton import NewtonSimulation

WORLD = "world"
_TOUCHING = 0.0015
"""Largest distance between surfaces that count as in contact [m]; it allows for rounded poses and the time between
rows."""


@dataclass(frozen=True, kw_only=True)
class ArmRows:
    """State of one arm over T rows."""

    tool: FloatArray
    """(T, 4, 4) ``world_T_tool`` [m]."""
    touched: tuple[frozenset[str], ...]
    """Bodies that the gripper touches in each row (``world`` for fixed bodies), without those of other arms."""
    gripped: tuple[frozenset[str], ...]
    """Bodies that all fingers touch in each row."""
    shares: FloatArray
    """(T,) measured opening, as a fraction of the full opening."""
    commanded: FloatArray
    """(T,) commanded opening, as a fraction of the full opening."""
    postures: FloatArray | None = None
    """(T, J) positions of the arm's joints [rad or m]; None if unknown."""


@dataclass(frozen=True, kw_only=True)
class ContactRows:
    """Contacts of a demonstration."""

    arms: dict[str, ArmRows]
    neighbours: tuple[dict[str, frozenset[str]], ...]
    """Bodies that each object or part touches in each row, by name; grippers are ``hand:`` and the arm's name."""
    base: FloatArray
    """(3,) position of the first arm's base [m]."""


def find_contact_rows(demonstration: Demonstration, simulation: NewtonSimulation) -> ContactRows:
    """Find the contacts in every row of a demonstration.

    Args:
        demonstration: States of the demonstration.
        simulation: Simulation of the task's scene and robot; it loads the layout.
    """
    simulation.load(demonstration.layout)
    poser = _Poser(simulation, demonstration)
    robots = {name: simulation.robot.with_arm(name) for name in simulation.robot.arm_names}
    owner = {link: name for name, one in robots.items() for link in (*one.gripper.links, *one.gripper.fingers)}
    tools: dict[str, list[FloatArray]] = {name: [] for name in robots}
    touched: dict[str, list[frozenset[str]]] = {name: [] for name in robots}
    gripped: dict[str, list[frozenset[str]]] = {name: [] for name in robots}
    neighbours: list[dict[str, frozenset[str]]] = []
    root = simulation.model.body_rootid[simulation.model.body(simulation.robot.tool.link).id]
    links = {
        simulation.model.body(body).name
        for body in range(1, simulation.model.nbody)
        if simulation.model.body_rootid[body] == root
    }
    for row in range(demonstration.row_count):
        pairs = poser.contacts(row)
        near: dict[str, set[str]] = {}
        for one, other in pairs:
            for thing, partner in ((one, other), (other, one)):
                if thing not in links and thing != WORLD and (partner not in links or partner in owner):
                    near.setdefault(thing, set()).add(f"hand:{owner[partner]}" if partner in owner else partner)
        neighbours.append({thing: frozenset(partners) for thing, partners in near.items()})
        for name, robot in robots.items():
            tools[name].append(poser.tool_pose(robot.tool.link) @ make_transform(robot.tool.position, robot.tool.wxyz))
            mine = {link: {b for a, b in pairs if a == link} | {a for a, b in pairs if b == link} for link in owner}
            things = [mine[link] - links for link, arm in owner.items() if arm == name]
            touched[name].append(frozenset().union(*things))
            gripped[name].append(frozenset.intersection(*(frozenset(mine[f] - links) for f in robot.gripper.fingers)))
    arms = {}
    first = 0
    for name, robot in robots.items():
        gripper, count = robot.gripper, len(robot.arm.joints) + len(robot.gripper.joints)
        postures = demonstration.joint_positions[:, first : first + len(robot.arm.joints)]
        fingers = demonstration.joint_positions[:, first + len(robot.arm.joints) : first + count]
        first += count
        span = gripper.open - gripper.closed
        arms[name] = ArmRows(
            tool=np.array(tools[name]),
            touched=tuple(touched[name]),
            gripped=tuple(names - {WORLD} for names in gripped[name]),
            shares=np.clip((gripper.command_of(fingers).mean(axis=1) - gripper.closed) / span, 0.0, 1.0),
            commanded=np.clip((demonstration.openings[name] - gripper.closed) / span, 0.0, 1.0),
            postures=postures,
        )
    lead = simulation.robot.arms[0].arm.joints[0]
    base = simulation.data.xpos[int(simulation.model.jnt_bodyid[simulation.model.joint(lead).id])].copy()
    return ContactRows(arms=arms, neighbours=tuple(neighbours), base=base)


class _Poser:
    """Copy of the simulation's model that is set to the poses of one row of a demonstration.

    The robot is placed by its joints, and everything else by its recorded pose. The joint positions of other objects
    are therefore not needed.
    """

    def __init__(self, simulation: NewtonSimulation, demonstration: Demonstration) -> None:
        self._model = model = copy.copy(simulation.model)
        self._things = {item.name for item in demonstration.layout.objects} | set(simulation.stage.fixtures)
        model.opt.enableflags = 0  # sleeping bodies have no contacts
        model.geom_margin[:] = _TOUCHING / 2
        self._data = mujoco.MjData(model)
        self._data.qpos[:] = simulation.data.qpos
        self._joints, self._demonstration = simulation.qpos_index, demonstration
        base = model.body_rootid[model.body(simulation.robot.tool.link).id]
        known = {model.body(body).name: body for body in range(1, model.nbody) if model.body_rootid[body] != base}
        self._names = [name for name in known if name in demonstration.bodies]
        self._bodies: NDArray[np.int64] = np.array([known[name] for name in self._names], dtype=int)
        self._geoms = np.flatnonzero(np.isin(model.geom_bodyid, self._bodies))
        self._place = {int(body): place for place, body in enumerate(self._bodies)}
        self._of_geom = np.array([self._place[int(body)] for body in model.geom_bodyid[self._geoms]], dtype=int)
        self._inertial = quat_to_matrix(model.body_iquat[self._bodies]) if len(self._bodies) else np.zeros((0, 3, 3))
        self._shape = quat_to_matrix(model.geom_quat[self._geoms]) if len(self._geoms) else np.zeros((0, 3, 3))

    def contacts(self, row: int) -> set[tuple[str, str]]:
        """Return the pairs of bodies in contact in a row; fixed bodies are named ``world``."""
        model, data = self._model, self._data
        data.qpos[self._joints] = self._demonstration.joint_positions[row]
        mujoco.mj_kinematics(model, data)
        if len(self._bodies):
            poses = np.array([self._demonstration.bodies[name][row] for name in self._names])
            rotations, places = poses[:, :3, :3], poses[:, :3, 3]
            data.xpos[self._bodies] = places
            data.xmat[self._bodies] = rotations.reshape(-1, 9)
            data.xipos[self._bodies] = places + np.einsum("bij,bj->bi", rotations, model.body_ipos[self._bodies])
            data.ximat[self._bodies] = (rotations @ self._inertial).reshape(-1, 9)
            turned = rotations[self._of_geom]
            offsets = np.einsum("gij,gj->gi", turned, model.geom_pos[self._geoms])
            data.geom_xpos[self._geoms] = places[self._of_geom] + offsets
            data.geom_xmat[self._geoms] = (turned @ self._shape).reshape(-1, 9)
        mujoco.mj_collision(model, data)
        pairs = np.sort(model.geom_bodyid[data.contact.geom].reshape(-1, 2), axis=1)
        return {(self._name(one), self._name(other)) for one, other in np.unique(pairs, axis=0) if one != other}

    def tool_pose(self, link: str) -> FloatArray:
        """Return ``world_T_link`` (4, 4) [m] in the row that was placed last."""
        pose, body = np.eye(4), self._data.body(link)
        pose[:3, :3], pose[:3, 3] = body.xmat.reshape(3, 3), body.xpos
        return pose

    def _name(self, body: int) -> str:
        name = self._model.body(int(body)).name
        return name if self._model.body_weldid[body] or name.split(".")[0] in self._things else WORLD
