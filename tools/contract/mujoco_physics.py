"""Physics of Isaac Sim in the stand-in: MuJoCo steps the open stage behind Isaac Sim's interface.

Masses, friction, drives, armatures, joint limits and articulations are read from the open stage alone, so a value
that a simulation failed to write there is missing here too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from nimbus.datagen.simulate.builder import ROLLING_FRICTION, compile_world, start_positions, unmirror
from nimbus.datagen.simulate.newton import STEP_RATE, make_contacts_believable, make_parts_stay
from nimbus.datagen.simulate.newton_library import newton
from tools.contract import warp_arrays
from tools.contract.articulations import articulation_parts, dof_paths
from tools.contract.warp_arrays import Warp

_PRIMS = "isaacsim.core.experimental.prims.impl"
_MATERIAL = "isaacsim.core.experimental.materials.impl.physics_materials.rigid_body:RigidBodyMaterial"
_UTILS = "isaacsim.core.experimental.utils.impl"
_MANAGER = "isaacsim.core.simulation_manager.impl.simulation_manager:SimulationManager"
_THINGS = "/World/objects/"


def warp(values: Any) -> Warp:
    return warp_arrays.warp(values, float)


@dataclass(frozen=True, kw_only=True)
class _Dof:
    """Joint with one degree of freedom."""

    qpos: int
    dof: int
    actuator: int
    """Number of the actuator; -1 for a joint without a drive."""


class MujocoPhysics:
    """One stage, opened, played and stepped.

    Args:
        several_points: Compute several contact points for each pair of shapes, as PhysX always does and the default
            simulator does for wide pads.
    """

    def __init__(self, *, several_points: bool = False) -> None:
        self._several_points = several_points
        self.done: list[str] = []
        """Calls in order."""
        self.stage: Any = None
        self.step_count = 0
        self.forces: list[tuple[str, np.ndarray]] = []
        """Applied forces: prim path and force (3,) [N]."""
        self._model: mujoco.MjModel | None = None
        self._dt = 0.0

    @property
    def model(self) -> mujoco.MjModel:
        assert self._model is not None, "physics has not been initialized"
        return self._model

    def behaviour(self) -> dict[str, Callable[..., Any]]:
        """Return the behavior of all functions and methods of the stand-in."""
        arm, body = f"{_PRIMS}.articulation:Articulation", f"{_PRIMS}.rigid_prim:RigidPrim"
        played: dict[str, Callable[..., Any]] = {
            f"{_UTILS}.app:update_app": lambda **_: None,
            f"{_UTILS}.app:play": self._noted("play"),
            f"{_UTILS}.app:stop": self._noted("stop"),
            f"{_UTILS}.stage:open_stage": self._open,
            f"{_UTILS}.stage:is_stage_loading": lambda: False,
            f"{_UTILS}.stage:get_current_stage": lambda: self.stage,
            f"{_MANAGER}.assets_loading": lambda: False,
            f"{_MANAGER}.setup_simulation": self._set_up,
            f"{_MANAGER}.initialize_physics": self._initialize,
            f"{_MANAGER}.step": self._step,
            f"{_PRIMS}.prim:Prim.__init__": self._prims,
            f"{arm}.__init__": self._articulation,
            f"{body}.__init__": self._rigid,
            f"{_MATERIAL}.__init__": self._prims,
            f"{_MATERIAL}.set_friction_coefficients": self._rub,
            f"{arm}.dof_names": lambda prim: list(prim.played_dofs),
            f"{arm}.get_dof_indices": lambda prim, names: warp([list(prim.played_dofs).index(name) for name in names]),
            f"{arm}.set_dof_positions": self._setter(lambda one: (self.data.qpos, one.qpos)),
            f"{arm}.set_dof_velocities": self._setter(lambda one: (self.data.qvel, one.dof)),
            f"{arm}.set_dof_position_targets": self._setter(lambda one: (self.data.ctrl, one.actuator)),
            f"{arm}.set_dof_velocity_targets": self._no_speed,
            f"{arm}.get_dof_positions": self._getter(lambda one: self.data.qpos[one.qpos]),
            f"{arm}.get_dof_velocities": self._getter(lambda one: self.data.qvel[one.dof]),
            f"{arm}.set_dof_friction_properties": self._set_dry_friction,
            f"{body}.apply_forces": self._push,
        }
        for view in (arm, body):
            played[f"{view}.get_world_poses"] = self._poses
            played[f"{view}.set_world_poses"] = self._place
            played[f"{view}.get_velocities"] = self._velocities
            played[f"{view}.set_velocities"] = self._move
        return played

    # Stage

    def _noted(self, name: str) -> Callable[..., None]:
        return lambda *_, **options: self.done.append(name + "".join(f" {k}={v}" for k, v in options.items()))

    def _open(self, path: str) -> tuple[bool, Any]:
        from pxr import Usd

        self.done.append("open")
        self.stage, self._model = Usd.Stage.Open(path), None
        return True, self.stage

    def _set_up(self, *, dt: float, device: str) -> None:
        self._noted("setup")(dt=dt, device=device)
        self._dt = dt

    def _initialize(self) -> None:
        self.done.append("initialize")
        builder = newton.ModelBuilder()
        newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        builder.add_usd(self.stage, load_visual_shapes=False, load_static_visual_shapes=False)
        unmirror(builder)
        paths, joints = list(builder.body_label), list(builder.joint_label)
        self._read_schemas(builder, paths, joints)
        builder.body_label[:] = [_name(path) for path in paths]
        builder.joint_label[:] = [_name(path) for path in joints]
        self._model = model = compile_world(builder, cone="elliptic", impratio=50.0, solver="newton")
        make_contacts_believable(model)
        if self._several_points:
            model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
        # A carried body must not fall asleep in the hand, but the carried bodies are unknown here.
        model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        things = [joint for joint in range(model.njnt) if model.joint(joint).name.startswith(_name(_THINGS))]
        make_parts_stay(model, things)
        self.data = mujoco.MjData(model)
        self.data.qpos[:] = start_positions(model, builder)
        driven = {int(model.actuator_trnid[row, 0]): row for row in range(model.nu)}
        self._bodies = {path: model.body(_name(path)).id for path in paths}
        names = {model.joint(index).name: index for index in range(model.njnt)}
        self._dofs = {
            path: _Dof(
                qpos=int(model.jnt_qposadr[index]), dof=int(model.jnt_dofadr[index]), actuator=driven.get(index, -1)
            )
            for path in joints
            if (index := names.get(_name(path))) is not None
        }
        mujoco.mj_forward(model, self.data)

    def _read_schemas(self, builder: Any, paths: Sequence[str], joints: Sequence[str]) -> None:
        """Apply the values of PhysX's own schemas, which Newton does not read."""
        from pxr import UsdShade

        weightless = {row: 1.0 for row, path in enumerate(paths) if self._said(path, "physxRigidBody:disableGravity")}
        _add(builder, "mujoco:gravcomp", weightless)
        for row, path in enumerate(joints):
            armature = self._said(path, "physxJoint:armature")
            if armature is not None:
                builder.joint_armature[builder.joint_qd_start[row]] = armature
        firm: dict[int, float] = {}
        for shape, path in enumerate(builder.shape_label):
            binding: Any = UsdShade.MaterialBindingAPI(self.stage.GetPrimAtPath(path))
            material = binding.ComputeBoundMaterial("physics")[0] if binding else None
            if material and self._said(str(material.GetPath()), "physxMaterial:frictionCombineMode") == "multiply":
                firm[shape] = 1  # all other shapes have a friction of 1, so that the product is this material's
            if path.startswith(_THINGS):
                builder.shape_material_mu_rolling[shape] = ROLLING_FRICTION
        _add(builder, "mujoco:geom_priority", firm)
        for prim in self.stage.Traverse():
            if self._said(str(prim.GetPath()), "physxArticulation:enabledSelfCollisions") is False:
                links = {str(path) for path in articulation_parts(self.stage, str(prim.GetPath()))[1]}
                own = [shape for row, path in enumerate(paths) if path in links for shape in builder.body_shapes[row]]
                for pair in itertools.combinations(own, 2):
                    builder.add_shape_collision_filter_pair(*pair)

    def _said(self, path: str, name: str) -> Any:
        prim = self.stage.GetPrimAtPath(path)
        return prim.GetAttribute(name).Get() if prim and prim.HasAttribute(name) else None

    def _step(self, *, steps: int) -> None:
        for _ in range(steps * round(self._dt * STEP_RATE)):
            mujoco.mj_step(self.model, self.data)
        self.step_count += steps
        self.data.xfrc_applied[:] = 0.0

    # Views

    def _prims(self, prim: Any, paths: Any, **_: Any) -> None:
        prim.played_paths = [paths] if isinstance(paths, str) else list(paths)
        assert prim.played_paths, "Isaac Sim refuses a view without prims"
        assert all(self.stage.GetPrimAtPath(path) for path in prim.played_paths)

    def _rigid(self, prim: Any, paths: Any, **_: Any) -> None:
        from pxr import UsdPhysics

        self._prims(prim, paths)
        made = [self.stage.GetPrimAtPath(path).HasAPI(UsdPhysics.RigidBodyAPI) for path in prim.played_paths]
        assert all(made), "a static prim would become a body that falls"

    def _articulation(self, prim: Any, paths: Any, **_: Any) -> None:
        from pxr import Usd, UsdPhysics

        self._prims(prim, paths)
        below = Usd.PrimRange(self.stage.GetPrimAtPath(paths))
        roots = [str(found.GetPath()) for found in below if found.HasAPI(UsdPhysics.ArticulationRootAPI)]
        assert roots == [paths], "a robot whose root is a link would float"
        assert "initialize" in self.done, "joints have no names before physics is initialized"
        prim.played_dofs = {path.rsplit("/", 1)[1]: self._dofs[path] for path in dof_paths(self.stage, paths)}

    # Joints

    def _of(self, prim: Any, indices: Any) -> list[_Dof]:
        dofs = list(prim.played_dofs.values())
        return [dofs[int(index)] for index in indices]

    def _setter(self, place: Callable[[_Dof], tuple[np.ndarray, int]]) -> Callable[..., None]:
        def set_values(prim: Any, values: Any, *, dof_indices: Any) -> None:
            for one, value in zip(self._of(prim, dof_indices), values[0], strict=True):
                array, index = place(one)
                assert index >= 0, "a joint without a drive is commanded"
                array[index] = value

        return set_values

    def _getter(self, read: Callable[[_Dof], float]) -> Callable[..., Warp]:
        return lambda prim, *, dof_indices: warp([[read(one) for one in self._of(prim, dof_indices)]])

    def _no_speed(self, prim: Any, values: Any, *, dof_indices: Any) -> None:
        assert not np.any(values), "the drives here follow positions only"

    def _set_dry_friction(self, prim: Any, still: Any, moving: Any, *, dof_indices: Any) -> None:
        np.testing.assert_array_equal(still, moving)
        for one, value in zip(self._of(prim, dof_indices), still[0], strict=True):
            self.model.dof_frictionloss[one.dof] = value

    # Bodies

    def _ids(self, prim: Any) -> list[int]:
        return [self._bodies[path] for path in prim.played_paths]

    def _free(self, body: int) -> tuple[slice, slice]:
        joint = int(self.model.body_jntadr[body])
        assert joint >= 0 and self.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE, "it cannot be moved: fixed"
        place, dof = int(self.model.jnt_qposadr[joint]), int(self.model.jnt_dofadr[joint])
        return slice(place, place + 7), slice(dof, dof + 6)

    def _poses(self, prim: Any) -> tuple[Warp, Warp]:
        mujoco.mj_kinematics(self.model, self.data)
        ids = self._ids(prim)
        return warp(self.data.xpos[ids]), warp(self.data.xquat[ids])

    def _place(self, prim: Any, positions: Any, wxyz: Any) -> None:
        for body, position, turn in zip(self._ids(prim), positions, wxyz, strict=True):
            self.data.qpos[self._free(body)[0]] = [*position, *turn]
        mujoco.mj_kinematics(self.model, self.data)

    def _velocities(self, prim: Any) -> tuple[Warp, Warp]:
        """Return velocities of the centers of mass in the axes of the world, as PhysX reports them."""
        rows = []
        for body in self._ids(prim):
            speed = self.data.qvel[self._free(body)[1]]
            turn = self.data.xmat[body].reshape(3, 3)
            angular = turn @ speed[3:]
            rows.append((speed[:3] + np.cross(angular, turn @ self.model.body_ipos[body]), angular))
        return warp([row[0] for row in rows]), warp([row[1] for row in rows])

    def _move(self, prim: Any, linear: Any, angular: Any) -> None:
        for body, speed, spin in zip(self._ids(prim), linear, angular, strict=True):
            turn = self.data.xmat[body].reshape(3, 3)
            center = turn @ self.model.body_ipos[body]
            self.data.qvel[self._free(body)[1]] = [*(speed - np.cross(spin, center)), *(turn.T @ spin)]

    def _push(self, prim: Any, forces: Any, *, local_frame: bool) -> None:
        assert not local_frame
        for path, body, force in zip(prim.played_paths, self._ids(prim), forces, strict=True):
            self.data.xfrc_applied[body, :3] = force
            self.forces.append((path, np.array(force)))

    def _rub(self, prim: Any, still: Any, moving: Any) -> None:
        assert list(still) == list(moving)
        for path, friction in zip(prim.played_paths, moving, strict=True):
            owner = re.match(rf"{_THINGS}[^/]+", path)
            assert owner is not None
            bodies = {body for place, body in self._bodies.items() if f"{place}/".startswith(f"{owner[0]}/")}
            geoms = [geom for geom in range(self.model.ngeom) if int(self.model.geom_bodyid[geom]) in bodies]
            self.model.geom_friction[geoms, 0] = friction


def _name(path: str) -> str:
    """Return a prim path as the name of a body or joint, which may not contain slashes."""
    return path.replace("/", "_")


def _add(builder: Any, name: str, values: dict[int, float]) -> None:
    """Set an attribute of MuJoCo on some bodies or shapes."""
    attribute = builder.custom_attributes[name]
    attribute.values = (attribute.values or {}) | values
