"""Worlds with flexible objects: cloths, cables and grains, which are added to the MuJoCo model that Newton builds.

Such a world has physics settings of its own; docs/decisions.md has figures and reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.simulate.cable import add_chain
from nimbus.datagen.simulate.cloth import ROBOT, SOLIMP, SOLREF, SURFACES, add_sheet
from nimbus.datagen.simulate.grains import add_grains, keep_in_hand

FLEXIBLE_STEP_RATE = 600.0
"""Rate of physics in a world with flexible objects [Hz]."""
_ITERATIONS, _FIRM_ITERATIONS = 20, 60
"""Iterations of the solver, and those in a world with a firm cloth, whose edges stretch in fewer ones."""


@dataclass(frozen=True, kw_only=True)
class FlexibleWorld:
    """Compiled world with flexible objects."""

    model: mujoco.MjModel
    rigid: mujoco.MjModel
    """The same world with empty bodies in place of the flexible objects; its positions are the first ones of
    ``model``."""


def is_flexible(item: PlacedObject) -> bool:
    """Return True if an object is cloth, a cable or grains."""
    return _model(item).is_flexible


def _model(item: PlacedObject) -> ObjectModel:
    return open_library(item.library).model(item.kind, item.variant, item.scale)


def compile_flexible(
    newtons: mujoco.MjModel, mjcf: str, items: Sequence[PlacedObject], *, robot: Sequence[str]
) -> FlexibleWorld:
    """Compile a world with flexible objects, in their shapes at rest, at their poses.

    Args:
        newtons: Newton's model of the rigid bodies.
        mjcf: The same model as MJCF, to which the objects are added, because Newton has none of them for MuJoCo.
        items: The flexible objects.
        robot: Joints of the robot, whose links touch the faces of a cloth; other bodies touch its vertices.
    """
    spec = mujoco.MjSpec.from_string(mjcf)
    roots = {int(newtons.body_rootid[newtons.joint(name).bodyid[0]]) for name in robot}
    links = {newtons.body(body).name for body in range(newtons.nbody) if newtons.body_rootid[body] in roots}
    for geom in spec.geoms:
        if geom.contype or geom.conaffinity:
            geom.conaffinity |= ROBOT if geom.parent.name in links else SURFACES
    bodies = [(item, spec.worldbody.add_body(name=item.name, pos=item.position, quat=item.wxyz)) for item in items]
    rigid = spec.compile()
    for item, body in bodies:
        shape = _model(item)
        if shape.sheet:
            add_sheet(spec, body, item, shape.sheet)
        elif shape.chain:
            add_chain(spec, body, item, shape.chain)
        elif shape.heap:
            add_grains(spec, body, item, shape.heap)
    model = spec.compile()
    for one in (model, rigid):
        _restore_limits(one, newtons)
    sheets = [sheet for item, _ in bodies if (sheet := _model(item).sheet)]
    _set_options(model, is_firm=any(sheet.is_firm for sheet in sheets))
    if all(_model(item).heap for item in items):
        keep_in_hand(model, [item.name for item in items])
    return FlexibleWorld(model=model, rigid=rigid)


def _restore_limits(model: mujoco.MjModel, newtons: mujoco.MjModel) -> None:
    """Set the stiffness of joint limits, which Newton does not write."""
    model.jnt_solref[: newtons.njnt] = newtons.jnt_solref
    model.jnt_solimp[: newtons.njnt] = newtons.jnt_solimp


def _set_options(model: mujoco.MjModel, *, is_firm: bool) -> None:
    option = model.opt
    option.timestep = 1.0 / FLEXIBLE_STEP_RATE
    option.integrator = mujoco.mjtIntegrator.mjINT_DISCRETE
    option.solver = mujoco.mjtSolver.mjSOL_CG
    option.cone, option.impratio = mujoco.mjtCone.mjCONE_PYRAMIDAL, 1.0
    option.iterations, option.ls_iterations = _FIRM_ITERATIONS if is_firm else _ITERATIONS, 20
    option.tolerance = 1e-6
    model.geom_gap[:] = model.geom_margin[:] = 0.0
    model.geom_solref[:], model.geom_solimp[:] = SOLREF, SOLIMP
    model.geom_condim[:] = 3


class FlexibleStates:
    """Places of flexible objects in the state of a simulation.

    Args:
        model: The compiled world.
        items: The flexible objects.
    """

    def __init__(self, model: mujoco.MjModel, items: Sequence[PlacedObject]) -> None:
        self._model = model
        self._roots = {item.name: model.body(item.name).id for item in items}
        self._bodies: dict[str, FloatArray] = {}
        self.has_heap = any(_model(item).heap for item in items)
        """True if one of the objects is grains."""
        self._ends: dict[str, FloatArray] = {}
        """(3,) end of the last link of a cable in the frame of the link [m]."""
        for item in items:
            shape = _model(item)
            self._bodies[item.name] = np.array(
                [model.body(part_label(item.name, str(index))).id for index in range(shape.body_count)]
            )
            if shape.chain:
                self._ends[item.name] = np.array([shape.chain.link_length, 0.0, 0.0])

    def __contains__(self, name: object) -> bool:
        """Return True for the name of a flexible object."""
        return name in self._roots

    def __bool__(self) -> bool:
        """Return True if there is any flexible object."""
        return bool(self._roots)

    def points(self, data: mujoco.MjData, name: str) -> FloatArray:
        """Return the vertices (V, 3) of a cloth, the ends of the links of a cable, or the centers of grains [m]."""
        bodies = self._bodies[name]
        if name not in self._ends:
            return data.xpos[bodies]
        last = bodies[-1]
        return np.vstack([data.xpos[bodies], data.xpos[last] + data.xmat[last].reshape(3, 3) @ self._ends[name]])

    def speed(self, data: mujoco.MjData, name: str) -> float:
        """Return the speed of the fastest vertex, link or grain [m/s]."""
        velocity, fastest = np.zeros(6), 0.0
        for body in self._bodies[name]:
            mujoco.mj_objectVelocity(self._model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
            fastest = max(fastest, float(np.linalg.norm(velocity[3:])))
        return fastest

    def move_roots(self, data: mujoco.MjData, positions: FloatArray) -> None:
        """Put the origin of each object at the mean of its points, in positions (B, 3) of all bodies [m]."""
        for name, root in self._roots.items():
            positions[root] = self.points(data, name).mean(axis=0)
