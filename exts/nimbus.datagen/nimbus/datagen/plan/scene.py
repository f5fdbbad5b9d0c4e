"""Collision queries for postures of the robot, in the simulator's own geometry."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.geometry.transforms import quat_from_matrix
from nimbus.datagen.plan.arm import ArmKinematics, arm_model
from nimbus.datagen.plan.parts import SceneParts
from nimbus.datagen.random_streams import generator

BodyPair = tuple[str, str]

_TOLERANCE = 1e-3
"""Largest displacement of a hand or held object between two solutions of one pose [m]."""
_WORLD = 1
"""Collision bit of everything outside the robot; the robot's bodies use the bits after it."""


class PlanningScene:
    """Private copy of a simulation's model, in which only the robot and the held object can collide.

    Only contacts that a plan can avoid are detected: of the robot with the world, of the held object with the world and
    the arm, and of the robot with itself, except for pairs that are always in contact. Contact begins at ``margin``.

    Args:
        model: The simulation's model. Movable objects are free bodies, listed after the tool body.
        arm_joints: Planned hinge or slide joints, base first.
        tool_body: Body that carries the tool.
        body_T_tool: (4, 4) tool frame in that body.
        robot_bodies: Every body of the robot: links, hand and fingers.
        gripper_bodies: Bodies that may touch the held object.
        margin: Distance that counts as contact [m].
        home: Posture without self-collision; by default the middle of all ranges.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        arm_joints: Sequence[str],
        tool_body: str,
        body_T_tool: ArrayLike,
        robot_bodies: Sequence[str],
        gripper_bodies: Sequence[str],
        margin: float = 0.004,
        home: ArrayLike | None = None,
    ) -> None:
        self.margin = margin
        self.check_count = 0
        # The model is copied, because masks, margins and the held body are changed below while physics uses the
        # original.
        self._model = copy.copy(model)
        self._data = mujoco.MjData(self._model)
        self._tool = model.body(tool_body).id
        self._body_T_tool = np.array(body_T_tool, dtype=float)
        self._robot = [model.body(name).id for name in robot_bodies]
        self._robot_names = frozenset(robot_bodies)
        self.gripper_bodies = frozenset(gripper_bodies)
        self._gripper = {model.body(name).id for name in gripper_bodies}
        self._hand = {body for body in self._gripper if self._tool in _chain(model, body)}
        joints = [model.joint(name) for name in arm_joints]
        self._moving = {body for body in self._robot if _has_joint(model, body)}
        self._address = np.array([joint.qposadr[0] for joint in joints])
        self.limits: FloatArray = np.array([joint.range for joint in joints])
        """(J, 2) lower and upper joint limits [rad or m]."""
        self.arm = ArmKinematics(
            arm_model(model, arm_joints=arm_joints, tool_body=tool_body, body_T_tool=self._body_T_tool)
        )
        self.home: FloatArray = self.limits.mean(axis=1) if home is None else np.asarray(home, dtype=float)
        """(J,) posture without self-collision [rad or m]."""
        self._joints = tuple(joint.id for joint in joints)
        self._held: int | None = None
        self._allowed: frozenset[int] = frozenset()
        self._saved: tuple[FloatArray, FloatArray, int, int] | None = None

        self._model.opt.enableflags = 0
        # Pairs are selected by masks alone. Sleep, which the simulator enables, would hide contacts.
        self._model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
        self._set_margin(margin)
        self._solid = (model.geom_contype | model.geom_conaffinity) != 0
        first = int(self._address[0])
        consecutive = np.array_equal(self._address, np.arange(first, first + len(joints)))
        # Writing through a slice is faster than through an index array, in thousands of checks per plan.
        self._arm_slot: slice | NDArray[np.int64] = slice(first, first + len(joints)) if consecutive else self._address
        self._qpos = self._data.qpos
        self._tool_position = self._data.xpos[self._tool]
        self._tool_rotation = self._data.xmat[self._tool].reshape(3, 3)
        self._pairs = self._robot_pairs(self.home)
        self._write_masks()

    # State of the scene

    def set_world(self, qpos: ArrayLike) -> None:
        """Set the positions of everything.

        Args:
            qpos: (nq,) the simulator's whole position vector [m, rad, unit quaternions wxyz]; entries beyond those of
                this scene's model, of flexible objects, are ignored.
        """
        self._qpos[:] = np.asarray(qpos)[: len(self._qpos)]

    def hold(self, body: str | None, tool_T_object: ArrayLike | None = None) -> None:
        """Attach a free body to the tool as part of the robot; with ``None``, release it at its previous pose.

        Args:
            body: Name of the free body, or None.
            tool_T_object: (4, 4) pose of the body in the tool frame, translation in [m]; the identity by default.
        """
        self._release()
        if body is not None:
            held = self._model.body(body).id
            if held < self._tool or self._model.body_dofnum[held] != 6:
                raise ValueError(f"body '{body}' cannot be held: it is not a free body listed after the tool's body")
            tool_T_held = np.eye(4) if tool_T_object is None else np.asarray(tool_T_object, dtype=float)
            self._attach(held, self._body_T_tool @ tool_T_held)
        self._write_masks()

    @contextmanager
    def allow(self, *bodies: str) -> Iterator[None]:
        """Ignore contact with these bodies in the block; of the held body, ignore only contact with the world."""
        before = self._allowed
        self._allowed = before | {self._model.body(name).id for name in bodies}
        self._write_masks()
        try:
            yield
        finally:
            self._allowed = before
            self._write_masks()

    @contextmanager
    def nearer(self, margin: float) -> Iterator[None]:
        """Use another collision margin [m] in the block."""
        before = self.margin
        self.margin = margin
        self._set_margin(margin)
        try:
            yield
        finally:
            self.margin = before
            self._set_margin(before)

    # Access for planners that build their own model

    def parts(self) -> SceneParts:
        """Return the contents of the scene, with the arm as in the last query."""
        mujoco.mj_kinematics(self._model, self._data)
        model, robot = self._model, set(self._robot)
        return SceneParts(
            model=model,
            data=self._data,
            arm_joints=self._joints,
            tool_body=self._tool,
            body_T_tool=self._body_T_tool,
            robot=tuple(self._robot),
            gripper=frozenset(self._gripper),
            held=self._held,
            pairs=frozenset(self._pairs),
            world_geoms=tuple(np.flatnonzero(model.geom_contype & _WORLD).tolist()),
            facing_world=frozenset(b for b in (*robot, self._held or 0) if model.body_conaffinity[b] & _WORLD),
        )

    # Queries for a posture of the arm, (J,) joint positions

    def in_collision(self, q: ArrayLike) -> bool:
        """Return True if anything is nearer than the margin at ``q`` (J,) [rad or m]; joint limits are ignored."""
        self.check_count += 1
        self._qpos[self._arm_slot] = q
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_collision(self._model, self._data)
        return self._data.ncon > 0

    def touches(self, q: ArrayLike) -> bool:
        """Return True if anything touches at ``q`` (J,) [rad or m]; this is the same check without a margin."""
        return self.in_collision(q) and bool(self._data.contact.dist.min() < 0.0)

    def contacts(self, q: ArrayLike) -> dict[BodyPair, float]:
        """Find pairs of bodies nearer than the margin at ``q`` (J,) [rad or m], with their signed distance [m]."""
        pairs: dict[BodyPair, float] = {}
        if self.in_collision(q):
            found = self._data.contact
            bodies = self._model.geom_bodyid[found.geom]
            for (one, other), distance in zip(bodies, found.dist, strict=True):
                pair = (self._model.body(one).name, self._model.body(other).name)
                pairs[pair] = min(float(distance), pairs.get(pair, np.inf))
        return pairs

    def first_contact(self, q: ArrayLike) -> BodyPair | None:
        """Return the pair of bodies in deepest contact at ``q`` (J,) [rad or m], for messages."""
        pairs = self.contacts(q)
        return min(pairs, key=pairs.__getitem__) if pairs else None

    def blocks_tool(self, q: ArrayLike) -> bool:
        """Return True if hand or held object touches the world at ``q`` (J,) [rad or m], so that no posture is free.

        Contact that could vanish within the tolerance of solutions does not count.
        """
        if not self.in_collision(q):
            return False
        found = self._data.contact
        bodies = self._model.geom_bodyid[found.geom[found.dist < self.margin - _TOLERANCE]]
        moving = np.isin(bodies, [*self._hand, *([] if self._held is None else [self._held])])
        fixed = ~np.isin(bodies, [*self._robot, *([] if self._held is None else [self._held])])
        return bool((moving.any(axis=1) & fixed.any(axis=1)).any())

    def clearance(self, q: ArrayLike, *, reach: float = 0.05) -> float:
        """Return the smallest signed distance to anything but the robot [m], negative in contact.

        Args:
            q: (J,) joint positions [rad or m].
            reach: Upper bound of the result [m].
        """
        with self.nearer(reach):
            outside = (pair for pair in self.contacts(q).items() if not self._robot_names.issuperset(pair[0]))
            return min((distance for _, distance in outside), default=reach)

    def clearance_along(self, postures: FloatArray) -> float:
        """Return the smallest :meth:`clearance` over postures (N, J) [m]."""
        return min(self.clearance(q) for q in postures)

    def within_limits(self, q: ArrayLike, *, slack: float = 1e-6) -> bool:
        """Return True if all joints are inside their limits.

        Args:
            q: (J,) joint positions [rad or m].
            slack: Tolerated excess [rad or m].
        """
        q = np.asarray(q)
        return bool(np.all(q >= self.limits[:, 0] - slack) and np.all(q <= self.limits[:, 1] + slack))

    def tool_pose(self, q: ArrayLike) -> FloatArray:
        """Return (4, 4) ``world_T_tool``."""
        self._qpos[self._arm_slot] = q
        mujoco.mj_kinematics(self._model, self._data)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self._tool_rotation, self._tool_position
        return pose @ self._body_T_tool

    @property
    def watched_pairs(self) -> frozenset[BodyPair]:
        """Pairs of robot links that are checked against each other."""
        return frozenset((self._model.body(one).name, self._model.body(other).name) for one, other in self._pairs)

    def body_pose(self, body: str) -> FloatArray:
        """Return (4, 4) ``world_T_body`` of a link or object, with the arm as in the last query."""
        mujoco.mj_kinematics(self._model, self._data)
        pose, place = np.eye(4), self._data.body(body)
        pose[:3, :3], pose[:3, 3] = place.xmat.reshape(3, 3), place.xpos
        return pose

    # The model's arrays

    def _set_margin(self, margin: float) -> None:
        # MuJoCo adds the margins of the two geoms, so each gets half.
        self._model.geom_margin[:] = self._model.body_margin[:] = margin / 2
        self._model.geom_gap[:] = 0.0

    def _attach(self, held: int, body_T_held: FloatArray) -> None:
        # Without its joint and with the tool as its parent, the body is moved by MuJoCo's forward kinematics.
        model = self._model
        saved = model.body_pos[held].copy(), model.body_quat[held].copy()
        self._saved = (*saved, int(model.body_parentid[held]), int(model.body_jntnum[held]))
        self._held = held
        model.body_parentid[held], model.body_jntnum[held] = self._tool, 0
        model.body_pos[held] = body_T_held[:3, 3]
        model.body_quat[held] = quat_from_matrix(body_T_held[:3, :3])

    def _release(self) -> None:
        if self._saved is None or self._held is None:
            return
        model, held = self._model, self._held
        model.body_pos[held], model.body_quat[held], model.body_parentid[held], model.body_jntnum[held] = self._saved
        self._held = self._saved = None

    def _robot_pairs(self, home: FloatArray) -> set[tuple[int, int]]:
        """Return the pairs of robot bodies to be checked: not adjacent, apart at home, and not always in contact."""
        weld, parent = self._model.body_weldid, self._model.body_parentid

        def neighbours(one: int, other: int) -> bool:
            a, b = weld[one], weld[other]
            return a == b or weld[parent[a]] == b or weld[parent[b]] == a

        bodies = sorted(self._robot)
        self._pairs = {
            (one, other)
            for index, one in enumerate(bodies)
            for other in bodies[index + 1 :]
            if not neighbours(one, other) and not {one, other} <= self._gripper
        }
        self._write_masks(world=0)
        at_home = self._touching_robot_pairs(home)
        rng = generator(0, "robot pairs")
        samples = [self._touching_robot_pairs(q) for q in rng.uniform(*self.limits.T, size=(50, len(self.limits)))]
        # Pairs that touch in nine of ten random postures are an artifact of convex hulls, not a constraint.
        return {pair for pair in self._pairs if pair not in at_home and sum(pair in s for s in samples) < 45}

    def _touching_robot_pairs(self, q: FloatArray) -> set[tuple[int, int]]:
        if not self.in_collision(q):
            return set()
        bodies = np.sort(self._model.geom_bodyid[self._data.contact.geom], axis=1)
        return {(int(one), int(other)) for one, other in bodies}

    def _write_masks(self, *, world: int = _WORLD) -> None:
        """Encode the tested pairs in MuJoCo's 32 collision bits, one bit for each robot body."""
        model = self._model
        contype = np.full(model.nbody, world)
        conaffinity = np.zeros(model.nbody, dtype=int)
        bit = {body: _WORLD << (1 + index) for index, body in enumerate(self._robot)}
        for body in self._robot:
            contype[body] = bit[body]
            conaffinity[body] = world if body in self._moving else 0
        for one, other in self._pairs:
            conaffinity[one] |= bit[other]
        for body in self._allowed:
            contype[body] = 0
        if self._held is not None:
            arm = (bit[body] for body in self._robot if body not in self._gripper)
            contype[self._held] = 0
            conaffinity[self._held] = sum(arm) | (0 if self._held in self._allowed else world)
        model.body_contype[:], model.body_conaffinity[:] = contype, conaffinity
        model.geom_contype[:] = np.where(self._solid, contype[model.geom_bodyid], 0)
        model.geom_conaffinity[:] = np.where(self._solid, conaffinity[model.geom_bodyid], 0)


def _chain(model: mujoco.MjModel, body: int) -> list[int]:
    """List a body and its ancestors, without the world."""
    return [body, *_chain(model, int(model.body_parentid[body]))] if body else []


def _has_joint(model: mujoco.MjModel, body: int) -> bool:
    """Return True if a joint lies between the world and a body."""
    return body != 0 and bool(model.body_jntnum[body] or _has_joint(model, int(model.body_parentid[body])))
