"""Grasp trials: a gripper closes on a resting object, the table is removed, and the object is shaken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.motions.grasps import find_model_axes
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.geometry.transforms import quat_from_matrix, quat_to_matrix
from nimbus.datagen.objects.model import ObjectModel, RestPose, TriedGrasp
from nimbus.datagen.plan.grasp import Grasp, GraspAxes
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.robots.robot import Gripper

TRIED = 8
"""Number of grasps tried per rest pose."""
_LOOKED_AT = 24
"""Number of candidates per rest pose, including those without clearance for the fingers, which are skipped."""
_ENOUGH = 3
"""Number of successful grasps in a rest pose after which its other grasps are skipped."""
_HEADINGS = (0.0, np.pi / 2)
"""Headings of the arm's home posture relative to the object [rad]. The canonical grasps of each heading are tried,
because a pick may use any heading."""
_STEP_RATE = 2400.0
"""Physics rate, as in the default simulator [Hz]: creep in the hand is proportional to the time step."""
_ROOM = 0.01
"""Distance of each pad from the object before closing, if fully open fingers would touch other parts of it [m]."""
_CLOSING, _WAITING, _SETTLING, _SHAKING, _HANGING = 0.25, 0.1, 0.1, 0.6, 0.25
"""Durations [s]: closing, settling of the fingers, settling of the hanging object, shaking, and hanging afterwards."""
_SHAKE, _SWINGS = 4.0, 3.0
"""Acceleration along each axis of the hand, as by a fast arm [m/s²], and number of swings per axis."""
_MOST_CREEP = 2.5e-4
"""Largest mean speed of the object in the hand in a successful grasp [m/s]; it is half the limit of a run."""
_LOST = 0.01
"""Displacement in the hand that counts as slipping out [m]."""
_HEAVIEST_FINGER = 0.015
"""Mass of a finger [kg]."""
_TORSION, _ROLLING = 0.005, 2e-3
"""Torsional and rolling friction of objects, as in the default simulator [m]."""
_OUTCOMES = {
    "blocked": "without clearance for the fingers",
    "missed": "missed by the fingers",
    "slipped": "slipped out when shaken",
    "crept": "crept in the hand",
}


@dataclass(frozen=True, kw_only=True)
class GraspTrials:
    """Result of all trials with one object."""

    grasps: tuple[TriedGrasp, ...]
    summary: str
    """Summary of the trials for users."""
    not_graspable: str
    """Reason why no grasp held; empty if one did."""


def try_grasps(model: ObjectModel, gripper: Gripper) -> GraspTrials:
    """Try the grasps that a pick would propose in each rest pose; equal objects give equal results.

    Args:
        model: Object to grasp.
        gripper: Gripper that grasps it.
    """
    axes = find_model_axes(model, gripper.shape)
    candidates = [(rest, grasp) for rest in model.rest_poses for grasp in _candidates(model, axes, rest)]
    if not candidates:
        narrow, most = float(np.ptp(model.bounds, axis=0).min()), gripper.shape.max_width
        why = f"it is {1000 * narrow:.0f} mm wide; the fingers open to {1000 * most:.0f} mm"
        why = why if narrow > most else "it has no two opposite sides for the fingers, or none above the table"
        return GraspTrials(grasps=(), summary=f"not graspable: {why}", not_graspable=why)
    hand = _Hand(model, gripper)
    tried: list[TriedGrasp] = []
    counts: Counter[str] = Counter()
    held: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    for rest, grasp in candidates:
        if held[rest.name] >= _ENOUGH or closed[rest.name] >= TRIED:
            continue
        outcome = hand.try_grasp(rest, grasp)
        counts[outcome] += 1
        held[rest.name] += outcome == "held"
        closed[rest.name] += outcome != "blocked"
        tried.append(TriedGrasp(object_T_tool=grasp.object_T_tool, width=grasp.width, holds=outcome == "held"))
    failed = ", ".join(f"{counts[name]} {words}" for name, words in _OUTCOMES.items() if counts[name])
    share = f"{counts['held']} of {len(tried)} grasps held" + (f": {failed}" if failed else "")
    without = ", ".join(rest.name for rest in model.rest_poses if not held[rest.name])
    return GraspTrials(
        grasps=tuple(tried),
        summary=share + (f"; none {without}" if without else "") if counts["held"] else f"not graspable: {share}",
        not_graspable="" if counts["held"] else share,
    )


def _candidates(model: ObjectModel, axes: GraspAxes, rest: RestPose) -> Iterator[Grasp]:
    """Yield grasps in a rest pose, alternating between canonical grasps at several headings and the firmest grasps."""
    pose = np.eye(4)
    pose[:3, :3], pose[2, 3] = quat_to_matrix(rest.wxyz), rest.height
    headings = _HEADINGS[:1] if model.symmetry == "revolution" and abs(pose[2, 2]) > 0.9 else _HEADINGS
    ranked = [rank_grasps(axes, pose, limit=_LOOKED_AT, home_heading=heading) for heading in headings]
    ranked.append(rank_grasps(axes, pose, limit=_LOOKED_AT))
    found: list[Grasp] = []
    for place in range(_LOOKED_AT):
        for grasp in (grasps[place] for grasps in ranked if place < len(grasps)):
            if len(found) < _LOOKED_AT and not any(map(grasp.resembles, found)):
                found.append(grasp)
                yield grasp


class _Hand:
    """Gripper fixed in the air above a table with an object on it.

    Removing the table simulates lifting; changing gravity simulates shaking.

    Args:
        model: Object to grasp.
        gripper: Gripper whose pads are boxes.
    """

    def __init__(self, model: ObjectModel, gripper: Gripper) -> None:
        self._opening, self._travel = gripper.width, gripper.width / 2
        self._model = _world(model, gripper)
        self._data = mujoco.MjData(self._model)
        self._table = self._model.geom("table").id
        self._object = self._model.body("object").id
        self._pads = [self._model.body(name).id for name in ("left", "right")]

    def try_grasp(self, rest: RestPose, grasp: Grasp) -> str:
        """Close, lift and shake; return ``held`` or a key of ``_OUTCOMES``."""
        model, data = self._model, self._data
        mujoco.mj_resetData(model, data)
        model.geom_contype[self._table] = model.geom_conaffinity[self._table] = 1
        model.opt.gravity[:] = (0, 0, -9.81)
        data.qpos[:7] = (0, 0, rest.height, *rest.wxyz)
        data.mocap_pos[0] = grasp.world_T_tool[:3, 3]
        data.mocap_quat[0] = quat_from_matrix(grasp.world_T_tool[:3, :3])
        start = self._free_opening(grasp)
        if not start:
            return "blocked"
        steps = round(_CLOSING * _STEP_RATE)
        for step in range(steps + round(_WAITING * _STEP_RATE)):
            data.ctrl[:] = start * max(0.0, 1 - step / steps)
            mujoco.mj_step(model, data)
        if not self._touched():
            return "missed"
        model.geom_contype[self._table] = model.geom_conaffinity[self._table] = 0
        self._step(_SETTLING)
        if not self._touched():
            return "slipped"
        before, turn = self._place(), grasp.world_T_tool[:3, :3]
        count = round(_SHAKING / 3 * _STEP_RATE)
        for axis in range(3):
            for step in range(count):
                push = _SHAKE * np.sin(2 * np.pi * _SWINGS * step / count)
                model.opt.gravity[:] = np.array([0, 0, -9.81]) + push * turn[:, axis]
                mujoco.mj_step(model, data)
            if not self._touched():
                return "slipped"
        model.opt.gravity[:] = (0, 0, -9.81)
        self._step(_HANGING)
        moved = float(np.linalg.norm(self._place() - before))
        if not self._touched() or moved > _LOST:
            return "slipped"
        return "held" if moved < _MOST_CREEP * (_SHAKING + _HANGING) else "crept"

    def _free_opening(self, grasp: Grasp) -> float:
        """Open the fingers fully, or until just clear of the object; return the opening, or 0 if neither is free."""
        for opening in (self._travel, min(self._travel, grasp.width / 2 + _ROOM)):
            self._data.qpos[7:] = opening
            mujoco.mj_forward(self._model, self._data)
            if not any(self._touches()):
                return opening
        return 0.0

    def _step(self, seconds: float) -> None:
        mujoco.mj_step(self._model, self._data, nstep=round(seconds * _STEP_RATE))

    def _place(self) -> FloatArray:
        return self._data.qpos[:3].copy()

    def _touched(self) -> bool:
        return all(self._touches())

    def _touches(self) -> list[bool]:
        """Return, for each pad, True if it touches the object."""
        contact = self._data.contact
        bodies = self._model.geom_bodyid[contact.geom].reshape(-1, 2)[np.asarray(contact.dist) <= 0.0]
        partners = set(bodies[(bodies == self._object).any(axis=1)].ravel().tolist())
        return [pad in partners for pad in self._pads]


def _world(model: ObjectModel, gripper: Gripper) -> mujoco.MjModel:
    spec = mujoco.MjSpec()
    option = spec.option
    option.timestep, option.integrator = 1.0 / _STEP_RATE, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone, option.impratio, option.iterations = mujoco.mjtCone.mjCONE_ELLIPTIC, 50.0, 50
    option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
    spec.compiler.balanceinertia = True
    plane = spec.worldbody.add_geom(name="table", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    _make_stiff([plane], 1.0)
    _add_object(spec, model)
    hand = spec.worldbody.add_body(name="hand", mocap=True)
    for name, side in (("left", 1.0), ("right", -1.0)):
        finger = hand.add_body(name=name, gravcomp=1.0)
        joint = finger.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0, side, 0])
        joint.range, joint.limited = [0, gripper.width / 2], mujoco.mjtLimited.mjLIMITED_TRUE
        joint.armature, joint.damping[0] = gripper.armature, 0.3
        half = [gripper.pad_width / 2, gripper.finger_thickness / 2, gripper.pad_height / 2]
        pad = finger.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=half, pos=[0, side * half[1], 0])
        pad.mass = _HEAVIEST_FINGER
        _make_stiff([pad], 1.0)
        pull = gripper.effort_limit
        gains = {"gainprm": [gripper.stiffness, *[0.0] * 9], "forcerange": [-pull, pull]}
        spec.add_actuator(
            target=name,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            biastype=mujoco.mjtBias.mjBIAS_AFFINE,
            biasprm=[0.0, -gripper.stiffness, -gripper.damping, *[0.0] * 7],
            forcelimited=True,
            **gains,
        )
    same = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1="right", name2="left")
    same.data[:5], same.solref, same.solimp = [0, 1, 0, 0, 0], [2.2 / _STEP_RATE, 1], [0.99, 0.999, 1e-4, 0.5, 2]
    return spec.compile()


def _add_object(spec: mujoco.MjSpec, model: ObjectModel) -> None:
    moments, axes = np.linalg.eigh(model.inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    x, y, z, w = Rotation.from_matrix(axes).as_quat()
    body = spec.worldbody.add_body(
        name="object", mass=model.mass, ipos=model.center_of_mass, inertia=moments, iquat=[w, x, y, z]
    )
    body.explicitinertial = True
    body.add_freejoint()
    geoms = []
    for index, (vertices, faces) in enumerate(model.convex_pieces):
        mesh = spec.add_mesh(name=f"piece_{index}", uservert=vertices.ravel().tolist(), userface=faces.ravel().tolist())
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
        geoms.append(body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"piece_{index}", mass=0.0))
    _make_stiff(geoms, model.friction)


def _make_stiff(geoms: Sequence[mujoco.MjsGeom], friction: float) -> None:
    """Give geoms the contact parameters of the default simulator."""
    for geom in geoms:
        geom.condim, geom.friction = 6, [friction, _TORSION, _ROLLING]
        geom.solref[:2], geom.solimp = [2.2 / _STEP_RATE, 1], [0.95, 0.99, 0.001, 0.5, 2]
