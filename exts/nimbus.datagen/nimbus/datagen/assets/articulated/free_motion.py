"""Test in physics that a part moves through its whole range, and stays where it is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.objects.model import MovingPart
from nimbus.datagen.objects.shapes.contact import Piece

_RATE = 1000.0
"""Number of physics steps per second [Hz]."""
_STIFF, _NO_CREEP = (2.2 / _RATE, 1.0), (0.99, 0.999, 0.0001, 0.5, 2.0)
"""Time constant and impedances of dry friction, as in a scene; with MuJoCo's defaults, an open lid sinks slowly."""
_PUSH, _LEFT = 4.0, 1.0
"""Longest duration of a push through the whole range, and time without a push afterwards [s]."""
_FORCE = {"hinge": 0.4, "slide": 6.0}
"""Push in addition to friction, gravity and spring, by kind of joint [N m or N]."""
_ENDS = 0.03
"""Distance from an end of the range at which the end counts as reached, as a fraction of the range."""
_STAYS = 0.03
"""Largest accepted drift within a second without a push, as a fraction of the range."""
_ARMATURE = {"hinge": 1e-4, "slide": 0.01}
"""Armature of the joints, as in a scene [kg m² or kg]."""


def check_motion(parts: Sequence[MovingPart], index: int) -> str:
    """Open and close one part while the others are closed, then leave it half open.

    As in a scene, parts collide with each other, but not with the base.

    Args:
        parts: All parts of the object.
        index: Index of the moving part.
    """
    model = _world(parts)
    data = mujoco.MjData(model)
    joint = parts[index].joint
    span = joint.range[1]
    for goal, word in ((span, "opening"), (0.0, "closing")):
        reached = _push(model, data, parts[index], index, goal)
        if abs(reached - goal) > _ENDS * span:
            return f"stops at {reached / span:.0%} when {word}{_touched(model, data, parts, index)}"
    if joint.stiffness:
        return ""
    mujoco.mj_resetData(model, data)
    data.qpos[index] = span / 2
    for _ in range(round(_LEFT * _RATE)):
        mujoco.mj_step(model, data)
    moved = abs(float(data.qpos[index]) - span / 2) / span
    return f"does not stay half open: it moves by {moved:.0%} in a second" if moved > _STAYS else ""


def _push(model: mujoco.MjModel, data: mujoco.MjData, part: MovingPart, index: int, goal: float) -> float:
    joint = part.joint
    for _ in range(round(_PUSH * _RATE)):
        away = goal - float(data.qpos[index])
        if abs(away) < 0.5 * _ENDS * joint.range[1]:
            break
        drive = joint.friction + _FORCE[joint.kind] + joint.stiffness * joint.range[1]
        data.qfrc_applied[index] = np.sign(away) * drive + data.qfrc_bias[index]
        mujoco.mj_step(model, data)
    data.qfrc_applied[:] = 0
    return float(data.qpos[index])


def _touched(model: mujoco.MjModel, data: mujoco.MjData, parts: Sequence[MovingPart], index: int) -> str:
    bodies = {int(model.geom_bodyid[geom]) - 1 for pair in data.contact.geom for geom in pair} - {index}
    return f", against {parts[min(bodies)].name}" if bodies else ""


def _world(parts: Sequence[MovingPart]) -> mujoco.MjModel:
    spec = mujoco.MjSpec()
    spec.option.timestep = 1 / _RATE
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for number, part in enumerate(parts):
        joint = part.joint
        body = spec.worldbody.add_body(name=str(number), pos=joint.origin)
        body.mass, body.ipos = part.mass, part.center_of_mass
        body.fullinertia = part.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        body.explicitinertial = True
        kind = mujoco.mjtJoint.mjJNT_SLIDE if joint.kind == "slide" else mujoco.mjtJoint.mjJNT_HINGE
        body.add_joint(
            type=kind,
            axis=joint.axis,
            range=joint.range,
            limited=True,
            damping=joint.damping,
            frictionloss=joint.friction,
            stiffness=joint.stiffness,
            armature=_ARMATURE[joint.kind],
            solref_friction=_STIFF,
            solimp_friction=_NO_CREEP,
        )
        for place, piece in enumerate(part.convex_pieces):
            _add_piece(spec, body, f"{number}_{place}", piece)
    spec.compiler.degree = False
    return spec.compile()


def _add_piece(spec: mujoco.MjSpec, body: mujoco.MjsBody, name: str, piece: Piece) -> None:
    spec.add_mesh(name=name, uservert=piece[0].ravel(), userface=piece[1].ravel())
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, mass=0)
