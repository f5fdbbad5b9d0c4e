"""Decisions about a joint: its role, its closed end, range, friction and spring."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.decisions import Decision, Value
from nimbus.datagen.assets.found import FoundJoint
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.objects.model import Joint

_BUTTONS = re.compile(r"button|(^|_)key|push|pressable|nail")
_CONTROLS = re.compile(r"knob|dial|valve|wheel|faucet|tap|switch|lever|lock|latch|rotation")
_SMALL_SLIDE, _SMALL_HINGE = 0.035, 0.06
"""Travel below which a slide counts as a button, and reach below which a hinge counts as a knob [m]."""
_COMPACT = 1.05
"""Ratio of bounding-box volumes above which the more compact end of the range is the closed one."""
_DAMPING = {"button": 4.0, "drawer": 4.0, "control": 0.02, "door": 0.15, "lid": 0.05}
"""Default damping by role [N s/m or N m s/rad]."""
_FRICTION = {"button": 0.0, "drawer": 1.2, "control": 0.05, "door": 0.08, "lid": 0.08}
"""Smallest friction by role [N or N m]; joints that gravity would move get more."""
_PLAUSIBLE = 10.0
"""Largest accepted ratio of a source's friction or damping to the default; above it, the default is used."""
_HOLDS = 1.5
"""Ratio of a joint's friction to the largest torque or force of gravity."""
_PRESS = 5.0
"""Force of the spring of a pressed button [N]."""
_GRAVITY = 9.81
_SWEEP = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True, kw_only=True)
class JointPlan:
    """Moving joint; at position 0 the part is closed or at rest."""

    name: str
    role: str
    """``door``, ``lid``, ``drawer``, ``control`` or ``button``."""
    joint: Joint
    closed_T_found: FloatArray
    """(4, 4) transform from the source's configuration to the closed one."""
    holds: FloatArray
    """(n, 3) points that the source marks as handles, at the source's joint position 0 [m]."""


def decide_joint(
    found: FoundJoint, points: FloatArray, others: FloatArray, *, scale: float, given: Mapping[str, Value]
) -> tuple[JointPlan, dict[str, Decision]]:
    """Decide how a part moves.

    Args:
        found: Joint of the source.
        points: (n, 3) points of the part, in the source's configuration [m].
        others: (m, 3) points of all other parts [m].
        scale: Length of the source's unit [m].
        given: Decisions of the user by name; those about a part are named ``PART.NAME``.

    Raises:
        InputError: The limits are reversed, or leave no range of motion.
    """
    own = {
        name.removeprefix(f"{found.link}."): value for name, value in given.items() if name.startswith(f"{found.link}.")
    }
    kind = str(own.get("moves", found.kind))
    unit = scale if kind == "slide" else 1.0
    limits = {"lower": found.lower * unit, "upper": found.upper * unit}
    decisions = {"moves": _decide(own, "moves", found.kind, "as the source states")}
    for side, limit in limits.items():
        why = f"as the source states [{'m' if kind == 'slide' else 'rad'}]"
        decisions[side] = _decide(own, side, float(f"{limit:.6g}"), why)
    lower, upper = (float(decisions[side].value) for side in limits)
    if upper - lower < 1e-3:
        what = f"{found.link}: limits of {lower:g} to {upper:g} leave no range of motion"
        raise InputError(what, instead="write a lower limit below the upper one")
    axis, origin = np.array(found.axis), scale * np.array(found.origin)
    reach = float(np.linalg.norm(np.cross(points - origin, axis), axis=1).max())
    role = _role(found, kind, upper - lower, reach, axis)
    end, why = _closed_end(kind, role, axis, origin, (lower, upper), points, others)
    decisions["closed"] = _decide(own, "closed", end, why)
    is_lower = decisions["closed"].value == "lower"
    closed = move_about(kind, axis, origin, lower if is_lower else upper)
    joint = Joint(
        kind="slide" if kind == "slide" else "hinge",
        axis=axis if is_lower else -axis,
        origin=origin,
        range=(0.0, upper - lower),
        damping=_usual(decisions, own, "damping", found.damping, _DAMPING[role]),
        friction=_usual(decisions, own, "friction", found.friction, _FRICTION[role]),
    )
    holds = scale * np.array(found.holds, dtype=float).reshape(-1, 3)
    return JointPlan(name=found.link, role=role, joint=joint, closed_T_found=closed, holds=holds), decisions


def hold_against_gravity(
    plan: JointPlan, decisions: dict[str, Decision], given: Mapping[str, Value], *, mass: float, center: FloatArray
) -> JointPlan:
    """Increase a joint's friction so that gravity does not move it, or give a button its spring.

    Args:
        plan: Joint of the upright object.
        decisions: Record of friction and stiffness.
        given: Decisions of the user.
        mass: Mass of the part [kg].
        center: (3,) center of mass of the closed part [m].
    """
    joint = plan.joint
    pulls = []
    for position in joint.range[1] * _SWEEP:
        place = move_about(joint.kind, joint.axis, joint.origin, float(position))
        arm = place[:3, :3] @ center + place[:3, 3] - joint.origin
        lever = joint.axis[2] if joint.kind == "slide" else np.cross(joint.axis, arm)[2]
        pulls.append(abs(mass * _GRAVITY * float(lever)))
    pull, friction, stiffness = max(pulls), joint.friction, 0.0
    if plan.role == "button":
        stiffness = (_PRESS + 2 * pull) / joint.range[1]
        why = f"a spring of {_PRESS:g} N returns it"
        decisions["stiffness"] = _decide(
            given, f"{plan.name}.stiffness", float(f"{stiffness:.4g}"), why, key="stiffness"
        )
        stiffness = float(decisions["stiffness"].value)
        friction = min(friction, 0.1 * _PRESS)
    elif f"{plan.name}.friction" not in given and friction < _HOLDS * pull:
        friction = float(f"{_HOLDS * pull:.4g}")
        decisions["friction"] = Decision(
            value=friction, why=f"{_HOLDS:g} times the load of gravity, so that it stays where it is left"
        )
    return replace(plan, joint=replace(joint, friction=friction, stiffness=stiffness))


def turn_plan(plan: JointPlan, turn: FloatArray, shift: FloatArray) -> JointPlan:
    """Rotate a joint by ``turn`` (3, 3) about the origin, then shift it by ``shift`` (3,) [m]."""
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = turn, shift
    joint = replace(plan.joint, axis=turn @ plan.joint.axis, origin=turn @ plan.joint.origin + shift)
    closed = place @ plan.closed_T_found @ np.linalg.inv(place)
    return replace(plan, joint=joint, closed_T_found=closed, holds=plan.holds @ turn.T + shift)


def move_about(kind: str, axis: FloatArray, origin: FloatArray, position: float) -> FloatArray:
    """Return the motion (4, 4) of a part from joint position 0 to another [rad or m].

    Args:
        kind: ``hinge`` or ``slide``.
        axis: (3,) unit axis.
        origin: (3,) point on the axis [m].
        position: Position of the joint [rad or m].
    """
    if kind == "slide":
        return make_transform(position * axis, (1.0, 0.0, 0.0, 0.0))
    turn = make_transform((0, 0, 0), quat_from_axis_angle(axis, position))
    turn[:3, 3] = origin - turn[:3, :3] @ origin
    return turn


def opening_way(plan: JointPlan, points: FloatArray) -> FloatArray:
    """Return the direction (3,) in which the center of a closed part, with points (n, 3) [m], starts to move."""
    joint = plan.joint
    if joint.kind == "slide":
        return joint.axis
    way = np.asarray(np.cross(joint.axis, points.mean(axis=0) - joint.origin), dtype=np.float64)
    return way / max(float(np.linalg.norm(way)), 1e-9)


def _decide(given: Mapping[str, Value], name: str, value: Value, why: str, *, key: str = "") -> Decision:
    return Decision(value=given[name], why="given") if name in given else Decision(value=value, why=why)


def _usual(decisions: dict[str, Decision], own: Mapping[str, Value], name: str, claimed: float, usual: float) -> float:
    if claimed and usual and usual / _PLAUSIBLE <= claimed <= usual * _PLAUSIBLE:
        decisions[name] = _decide(own, name, claimed, "as the source states")
    else:
        why = f"usual for its role; the source states {claimed:g}" if claimed else "usual for its role"
        decisions[name] = _decide(own, name, usual, why)
    return float(decisions[name].value)


def _role(found: FoundJoint, kind: str, span: float, reach: float, axis: FloatArray) -> str:
    words = " ".join(found.words).lower()
    if kind == "slide":
        return "button" if _BUTTONS.search(words) or span <= _SMALL_SLIDE else "drawer"
    if re.search("door|lid", words):
        return "lid" if abs(axis[2]) < 0.5 else "door"
    if _CONTROLS.search(words) or reach < _SMALL_HINGE:
        return "control"
    return "lid" if abs(axis[2]) < 0.5 else "door"


def _closed_end(
    kind: str,
    role: str,
    axis: FloatArray,
    origin: FloatArray,
    limits: tuple[float, float],
    points: FloatArray,
    others: FloatArray,
) -> tuple[str, str]:
    """Choose the end of the range at which a part is closed or at rest; return it with the reason."""
    nearest = "lower" if abs(limits[0]) <= abs(limits[1]) else "upper"
    if role in ("button", "control"):
        return nearest, "the end nearest to the source's configuration"
    volumes = []
    for limit in limits:
        place = move_about(kind, axis, origin, limit)
        every = np.vstack([points @ place[:3, :3].T + place[:3, 3], others])
        volumes.append(float(np.prod(np.ptp(every, axis=0))))
    if max(volumes) > _COMPACT * min(volumes):
        return ("lower", "upper")[int(np.argmin(volumes))], "the object is more compact there"
    return nearest, "the end nearest to the source's configuration"
