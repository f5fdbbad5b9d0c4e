"""Cloth in MuJoCo: point masses at the vertices of a grid, held together by constraints on the lengths of edges.

A world with cloth has physics settings of its own; docs/decisions.md has figures and reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import Sheet

CLOTH_STEP_RATE = 600.0
"""Rate of physics in a world with cloth [Hz]."""

_LAYERS, _SURFACES, _ROBOT = 1 << 20, 1 << 21, 1 << 22
"""Collision bits beyond Newton's: of vertices with faces, of vertices with surfaces, of faces with the robot."""
_EDGE_DAMPING = 0.001
_SOLREF, _SOLIMP = (0.004, 1.0), (0.95, 0.99, 0.001, 0.5, 2.0)


@dataclass(frozen=True, kw_only=True)
class ClothWorld:
    """Compiled world with cloth."""

    model: mujoco.MjModel
    rigid: mujoco.MjModel
    """The same world with empty bodies in place of the cloths; its positions are the first ones of ``model``."""


def sheet_of(item: PlacedObject) -> Sheet | None:
    """Return the grid of an object that is cloth, None for any other."""
    return open_library(item.library).model(item.kind, item.variant, item.scale).sheet


def compile_with_cloths(
    newtons: mujoco.MjModel, mjcf: str, cloths: Iterable[PlacedObject], *, robot: Sequence[str]
) -> ClothWorld:
    """Compile a world with cloths that lie flat at their poses.

    Args:
        newtons: Newton's model of the rigid bodies.
        mjcf: The same model as MJCF, to which the cloths are added, because Newton has no cloth for MuJoCo.
        cloths: The cloths.
        robot: Joints of the robot, whose links touch the faces of a cloth; other bodies touch its vertices.
    """
    spec = mujoco.MjSpec.from_string(mjcf)
    roots = {int(newtons.body_rootid[newtons.joint(name).bodyid[0]]) for name in robot}
    links = {newtons.body(body).name for body in range(newtons.nbody) if newtons.body_rootid[body] in roots}
    for geom in spec.geoms:
        if geom.contype or geom.conaffinity:
            geom.conaffinity |= _ROBOT if geom.parent.name in links else _SURFACES
    bodies = [(item, spec.worldbody.add_body(name=item.name, pos=item.position, quat=item.wxyz)) for item in cloths]
    rigid = spec.compile()
    for item, body in bodies:
        sheet = sheet_of(item)
        assert sheet is not None
        _add_sheet(spec, body, item, sheet)
    model = spec.compile()
    for one in (model, rigid):
        _restore_limits(one, newtons)
    _set_options(model)
    return ClothWorld(model=model, rigid=rigid)


def _add_sheet(spec: mujoco.MjSpec, root: mujoco.MjsBody, item: PlacedObject, sheet: Sheet) -> None:
    """Add vertices, faces and edges of a sheet below a body that is fixed to the world."""
    radius = sheet.thickness / 2
    mass = item.mass / sheet.count
    labels = [part_label(item.name, str(vertex)) for vertex in range(sheet.count)]
    for label, place in zip(labels, sheet.points(), strict=True):
        body = root.add_body(name=label, pos=place, mass=mass, inertia=[mass * radius**2] * 3, explicitinertial=True)
        for axis in np.eye(3):
            body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
        # Vertices instead of faces touch surfaces: a face on a box has several contacts.
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[radius, 0.0, 0.0],
            mass=0.0,
            contype=_SURFACES | _LAYERS,
            conaffinity=0,
            friction=[item.friction, 5e-3, 1e-4],
        )
    flex = spec.add_flex(name=item.name, dim=2, radius=radius, vertbody=labels, elem=sheet.faces().ravel().tolist())
    flex.contype, flex.conaffinity = _ROBOT, _LAYERS
    flex.selfcollide = mujoco.mjtFlexSelf.mjFLEXSELF_NONE
    flex.condim = 3
    flex.friction = [item.friction, 5e-3, 1e-4]
    flex.solref, flex.solimp = _SOLREF, _SOLIMP
    flex.edgedamping = _EDGE_DAMPING
    edges = spec.add_equality(type=mujoco.mjtEq.mjEQ_FLEX, objtype=mujoco.mjtObj.mjOBJ_FLEX)
    edges.name1 = item.name


def _restore_limits(model: mujoco.MjModel, newtons: mujoco.MjModel) -> None:
    """Set the stiffness of joint limits, which Newton does not write."""
    model.jnt_solref[: newtons.njnt] = newtons.jnt_solref
    model.jnt_solimp[: newtons.njnt] = newtons.jnt_solimp


def _set_options(model: mujoco.MjModel) -> None:
    option = model.opt
    option.timestep = 1.0 / CLOTH_STEP_RATE
    option.integrator = mujoco.mjtIntegrator.mjINT_DISCRETE
    option.solver = mujoco.mjtSolver.mjSOL_CG
    option.cone, option.impratio = mujoco.mjtCone.mjCONE_PYRAMIDAL, 1.0
    option.iterations, option.ls_iterations, option.tolerance = 20, 20, 1e-6
    model.geom_gap[:] = model.geom_margin[:] = 0.0
    model.geom_solref[:], model.geom_solimp[:] = _SOLREF, _SOLIMP
    model.geom_condim[:] = 3


class ClothStates:
    """Places of cloths in the state of a simulation.

    Args:
        model: The compiled world.
        cloths: Names of the cloths.
    """

    def __init__(self, model: mujoco.MjModel, cloths: Iterable[str]) -> None:
        self._roots = {name: model.body(name).id for name in cloths}
        self._vertices = {name: np.flatnonzero(model.body_parentid == root) for name, root in self._roots.items()}
        self._dofs = {
            name: (model.body_dofadr[bodies][:, None] + np.arange(3)) for name, bodies in self._vertices.items()
        }

    def __contains__(self, name: object) -> bool:
        """Return True for the name of a cloth."""
        return name in self._roots

    def __bool__(self) -> bool:
        """Return True if there is any cloth."""
        return bool(self._roots)

    def points(self, data: mujoco.MjData, name: str) -> FloatArray:
        """Return the vertices (V, 3) of a cloth in the world frame [m]."""
        return data.xpos[self._vertices[name]]

    def speed(self, data: mujoco.MjData, name: str) -> float:
        """Return the speed of a cloth's fastest vertex [m/s]."""
        return float(np.linalg.norm(data.qvel[self._dofs[name]], axis=1).max())

    def move_roots(self, data: mujoco.MjData, positions: FloatArray) -> None:
        """Put the origin of each cloth at the mean of its vertices, in positions (B, 3) of all bodies [m]."""
        for name, root in self._roots.items():
            positions[root] = self.points(data, name).mean(axis=0)
