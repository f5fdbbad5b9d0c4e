"""Physics in Isaac Sim: PhysX steps the same stage and layout as the default simulator.

Workers that run in Isaac Sim's Python load this module, and tests load it with a stand-in for Isaac Sim.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import EpisodeKey, Layout, Light, PhysicalLayout, VisualLayout
from nimbus.datagen.episode.trajectory import StartState
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.registry import register
from nimbus.datagen.simulate.newton import STEP_RATE as REFERENCE_RATE
from nimbus.datagen.simulate.newton import NewtonSimulation, PhysicsSnapshot
from nimbus.datagen.simulate.physics_world import BodyStates, PhysicsWorld, WorldParts
from nimbus.datagen.simulate.physx_world import STEP_RATE, PhysxWorld
from nimbus.datagen.simulate.rates import steps_per_period
from nimbus.datagen.usd.layout_export import OBJECTS, ROBOT, body_prims, write_layout_stage
from nimbus.datagen.usd.stage import StageInfo

if TYPE_CHECKING:
    from nimbus.datagen.robots.robot import Robot

_DARK = Light(direction=(0.0, 0.0, -1.0), color=(1.0, 1.0, 1.0), sky=(1.0, 1.0, 1.0), ground=(0.0, 0.0, 0.0))


@register("simulator", "isaacsim")
class IsaacSimSimulation(NewtonSimulation):
    """One world in PhysX: robot, fixtures and objects; the arm is driven by the joints' position drives.

    Skills and conditions use the default simulator's model of the same layout. After each step of PhysX, the state is
    copied into that model, which computes distances, contacts and the planning scene and is never stepped itself.
    Drives get commands as in the default simulator: the same smooth reference and feed-forward, with the delay and the
    gains of the layout.

    Args:
        stage: The scene.
        robot: The robot.
        rate: Record and command rate [Hz]; must divide 240.
    """

    NOT_APPLIED: ClassVar[frozenset[str]] = frozenset()
    """Randomizers that this simulator does not apply."""
    touch_gap: ClassVar[float] = 0.0005
    visual = VisualLayout(light=_DARK, cameras=())
    """Visual part of the written stages; it has no light and no cameras, because only physics uses these stages."""

    def __init__(self, stage: StageInfo, robot: Robot, *, rate: float) -> None:
        steps_per_period(STEP_RATE, rate)
        super().__init__(stage, robot, rate=rate)
        self._folder = make_owned("nimbus-physx-")
        self._count = 0
        self._world: PhysicsWorld | None = None
        self._loaded: PhysicalLayout | None = None

    def load(self, layout: PhysicalLayout) -> None:
        """Write and open the stage of a layout, start physics, and set the start state.

        The stage is reused if it is still open with the same layout.

        Raises:
            InputError: PhysX cannot simulate a part of the layout, or the stage cannot be opened.
        """
        if unable := find_unsupported(layout):
            raise InputError(unable, where="--physics isaacsim", instead="use --physics mujoco")
        super().load(layout)
        # Sleep is disabled: sleeping islands would keep their contacts when PhysX moves the bodies.
        self.model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        self.model.geom_margin[:] = self.touch_gap / 2
        self._find_free_bodies()
        if self._world is None or self._loaded != layout or not self._world.is_open:
            self._open(layout)
        self._loaded = layout
        self._slippery = False
        self._write_state()

    def close(self) -> None:
        """Remove the written stages."""
        self._folder.remove()

    def _open(self, layout: PhysicalLayout) -> None:
        self._world = None
        self._count += 1
        path = self._folder.path / f"{self._count:05d}.usda"
        key = EpisodeKey(task="physics", task_hash="", seed=0, index=0)
        whole = Layout(key=key, physical=layout, visual=self.visual)
        write_layout_stage(path, self.stage, self.robot, whole)
        self._paths = self._prim_paths(path)
        self._world = self._open_world(path, self._world_parts(layout))
        (path.parent / f"{self._count - 1:05d}.usda").unlink(missing_ok=True)  # a run writes thousands of stages

    def _open_world(self, path: Path, parts: WorldParts) -> PhysicsWorld:
        return PhysxWorld.open(path, parts)

    def _prim_paths(self, path: Path) -> dict[str, str]:
        """Return the prim path of each body by its name."""
        from pxr import Usd

        stage: Any = Usd.Stage.Open(str(path.absolute()))
        return {name: str(prim.GetPath()) for name, prim in body_prims(stage, self.stage).items()}

    def _world_parts(self, layout: PhysicalLayout) -> WorldParts:
        jointed = {
            item.name: {part.name: part.joint.friction * item.damping for part in model.parts}
            for item in layout.objects
            if (model := open_library(item.library).model(item.kind, item.variant, item.scale)).parts
        }
        return WorldParts(
            robot=ROBOT,
            objects=OBJECTS,
            joints=self.robot.joint_names,
            jointed=jointed,
            floating=[name for name in self._free_names if name in jointed],
            loose={name: self._paths[name] for name in self._free_names if name not in jointed},
        )

    def _find_free_bodies(self) -> None:
        """Find the bodies that move freely; those without parts come first, in the order of :class:`PhysxWorld`."""
        model = self.model
        free = [joint for joint in range(model.njnt) if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE]
        bodies = [int(model.jnt_bodyid[joint]) for joint in free]
        has_parts = np.array([bool((model.body_parentid == body).any()) for body in bodies], dtype=bool)
        order = np.argsort(has_parts, kind="stable")
        self._free_bodies = np.array(bodies, dtype=int)[order]
        self._free_names = [model.body(int(body)).name for body in self._free_bodies]
        joints = np.array(free, dtype=int)[order]
        self._free_positions = model.jnt_qposadr[joints][:, None] + np.arange(7)
        """(N, 7) indices of the free bodies' positions and orientations in the model's state."""
        self._free_velocities = model.jnt_dofadr[joints][:, None] + np.arange(6)
        """(N, 6) indices of their linear and angular velocities."""

    def _part_joint(self, item: str, part: str) -> tuple[int, int]:
        """Return the indices of a part's joint in the model's positions and velocities."""
        joint = self.model.joint(f"{item}.{part}")
        return int(joint.qposadr[0]), int(joint.dofadr[0])

    @property
    def world(self) -> PhysicsWorld:
        """Physics of the loaded layout."""
        assert self._world is not None, "no layout is loaded"
        return self._world

    def restore(self, state: StartState) -> None:
        """Restore a state at rest, such as the one after :meth:`load`; the time of a disturbance counts from here."""
        super().restore(state)
        self._write_state()

    def rewind(self, snapshot: PhysicsSnapshot) -> None:
        """Return to an earlier state; the state does not include the contacts that PhysX has cached."""
        super().rewind(snapshot)
        self._write_state()

    @property
    def is_stable(self) -> bool:
        """True if all numbers are finite."""
        return bool(np.isfinite(self.data.qpos).all() and np.isfinite(self.data.qvel).all())

    def _begin_period(self) -> None:
        """Do nothing: in PhysX, no held object can fall asleep."""

    def _take_steps(self, orders: FloatArray, observe: Callable[[], None] | None) -> None:
        """Take one step of PhysX, which is as long as ten steps of the default simulator."""
        order = self._keep_fingers_together(orders[-1])
        self.world.robot.command(order, np.zeros_like(order))
        if self._disturbance and self._step is not None:
            self._push(self._step, len(orders))
            self._step += len(orders)
        self.world.step()
        self._read_state(order)
        if observe:
            observe()

    def _keep_fingers_together(self, order: FloatArray) -> FloatArray:
        """Return an order whose fingers press with at most their full force at their mean opening.

        Each finger has its own drive. Two drives that both give their full force against each other do not resist a
        load across the fingers, so that a held object would move sideways with them. The returned order is limited to
        the targets at which both drives just reach their full force at the mean opening. When a load then moves the
        fingers, one of the drives gives less.

        Args:
            order: (J,) commanded positions [rad, m].
        """
        order, places = order.copy(), self.data.qpos[self.qpos_index]
        for arm in self.robot.arms:
            gripper = arm.gripper
            if len(gripper.joints) < 2:
                continue
            index = [self.joint_names.index(name) for name in gripper.joints]
            mean = float(gripper.command_of(places[index]).mean())
            reach = gripper.effort_limit / gripper.stiffness / max(map(abs, gripper.ratios))
            wanted = float(gripper.command_of(order[index]).mean())
            order[index] = gripper.joint_positions(np.array(min(max(wanted, mean - reach), mean + reach)))
        return order

    def _push(self, first: int, count: int) -> None:
        """Apply the part of the disturbance that falls into a step, counted in steps of the default simulator."""
        assert self._loaded is not None and self._loaded.disturbance is not None
        push = self._loaded.disturbance
        begin, end = (round(time * REFERENCE_RATE) for time in (push.time, push.time + push.duration))
        # A step of PhysX may contain only a part of the push: the scaled force gives the same impulse.
        share = max(0, min(end, first + count) - max(begin, first)) / count
        if share > 0.0:
            x, y, z = (share * value for value in push.force)
            self.world.push(self._paths[push.body], (x, y, z))
        is_slippery = push.is_slippery and share > 0.0
        if is_slippery != self._slippery:
            self._slippery = is_slippery
            item = next(item for item in self._loaded.objects if item.name == push.body)
            self.world.set_friction(item.name, 0.0 if is_slippery else self._friction_of(item.name))

    def _friction_of(self, name: str) -> float:
        from nimbus.datagen.usd.physics_schemas import contact_friction

        assert self._loaded is not None
        item = next(item for item in self._loaded.objects if item.name == name)
        return contact_friction(item.friction, open_library(item.library).model(item.kind, item.variant).friction)

    # State

    def _write_state(self) -> None:
        """Set PhysX to the model's state, with the arm holding its position."""
        data, world = self.data, self.world
        positions, velocities = data.qpos[self.qpos_index], data.qvel[self.dof_index]
        world.robot.put(positions, velocities)
        world.robot.command(positions, np.zeros_like(positions))
        for name, joints in world.parts.items():
            places = [self._part_joint(name, part) for part in joints.names]
            joints.put(data.qpos[[place for place, _ in places]], data.qvel[[dof for _, dof in places]])
        poses, moving = data.qpos[self._free_positions], data.qvel[self._free_velocities]
        turns = data.xmat[self._free_bodies].reshape(-1, 3, 3)
        angular = np.einsum(
            "nij,nj->ni", turns, moving[:, 3:]
        )  # angular velocities of the model are in the body's frame
        linear = moving[:, :3] + np.cross(angular, self._centers(turns))
        world.place(BodyStates(positions=poses[:, :3], wxyz=poses[:, 3:], linear=linear, angular=angular))
        self._read_state(positions)

    def _read_state(self, order: FloatArray) -> None:
        """Copy PhysX's state into the model, and compute contacts and forces of the drives from it.

        Args:
            order: (J,) positions that the drives have been commanded to [rad, m].
        """
        model, data, world = self.model, self.data, self.world
        data.qpos[self.qpos_index] = world.robot.positions()
        data.qvel[self.dof_index] = world.robot.velocities()
        for name, joints in world.parts.items():
            values = zip(joints.names, joints.positions(), joints.velocities(), strict=True)
            for part, position, velocity in values:
                place, dof = self._part_joint(name, part)
                data.qpos[place], data.qvel[dof] = position, velocity
        bodies = world.bodies()
        data.qpos[self._free_positions] = np.hstack([bodies.positions, bodies.wxyz])
        turns = _matrices(bodies.wxyz)
        linear = bodies.linear - np.cross(bodies.angular, self._centers(turns))
        angular = np.einsum("nji,nj->ni", turns, bodies.angular)
        data.qvel[self._free_velocities] = np.hstack([linear, angular])
        data.ctrl[self._actuators] = order
        # These are the stages of a forward pass up to the drive forces; contact forces are never solved here.
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_fwdActuation(model, data)

    def _centers(self, turns: FloatArray) -> FloatArray:
        """Return the centers of mass (N, 3) from the bodies' origins, in the axes of the world [m].

        Args:
            turns: (N, 3, 3) ``world_R_body`` of the free bodies.
        """
        return np.einsum("nij,nj->ni", turns, self.model.body_ipos[self._free_bodies])


def _matrices(wxyz: FloatArray) -> FloatArray:
    """Return the rotation matrices (N, 3, 3) of unit quaternions (N, 4)."""
    matrices = np.zeros((len(wxyz), 9))
    for row, turn in enumerate(wxyz):
        mujoco.mju_quat2Mat(matrices[row], turn)
    return matrices.reshape(-1, 3, 3)


def find_unsupported(layout: PhysicalLayout) -> str:
    """Return the part of a layout that PhysX cannot simulate; empty if there is none.

    PhysX cannot simulate the contact with a conveyor belt: it keeps friction anchors on the belt, which would pull
    objects back.
    """
    for item in layout.objects:
        for part in open_library(item.library).model(item.kind, item.variant).parts:
            if part.joint.speed:
                return f"{item.kind} '{item.name}' has a moving belt, which is not supported in PhysX"
    return ""
