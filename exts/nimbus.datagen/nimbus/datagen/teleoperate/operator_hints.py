"""Hints for the operator: ways to an object and to a region, the height of a tool, and fingers that cannot close."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.execute.motions.release import find_solid_below
from nimbus.datagen.success.placement import On
from nimbus.datagen.tasks.steps import Step

if TYPE_CHECKING:
    from nimbus.datagen.policies.environment import Environment

_KEYS = (("+x (W)", "-x (S)"), ("+y (A)", "-y (D)"), ("+z (E)", "-z (Q)"))
"""Positive and negative direction of the axes of the world, with the keys that move there."""
_INSIDE = 0.01
"""Distance from the edges of a region to which a held object is guided [m]; an opening hand moves it by millimeters."""
_UPRIGHT = 0.95
"""Least cosine between a tool or a side of an object and the vertical at which an angle is given."""
_TURNED = 2.0
"""Angle between a hand and the sides of an object below which no rotation is named [deg]."""
_NEAR = 0.001
"""Distance below which no direction is named [m]."""
_SKIPPED = 1e-8
"""Distance below a held object in which no surface is found [m]. A gripped object on a table may hover
above it by micrometers; with a larger distance, the search would continue inside the table, to its lower side."""
_OFF = re.compile(r"is (\d+\.\d) cm off (.+), (-?\d+\.\d) cm above$")
"""Detail of the condition ``on`` for an object beside its region, or above it."""
_OPEN = 0.1
"""Part of the gripper's travel that closed fingers may lack; thinner objects than this are not in the hand."""


def describe_failure(failure: Outcome | None) -> str:
    """Return the first condition that does not hold, and why, for the operator; empty if all hold.

    The detail of an object that is off its region is about the episode; the operator reads how far it still has to go.
    """
    if failure is None:
        return ""
    # The detail says the same as the reason, which is a code for statistics.
    detail = failure.detail or failure.reason.replace("_", " ")
    return f"{failure.phase}: {_OFF.sub(_still_to_go, detail)}"


def _still_to_go(found: re.Match[str]) -> str:
    left, region, height = float(found[1]), found[2], float(found[3])
    where = f"{abs(height):.1f} cm {'below' if height < 0 else 'above'}"
    return f"has {left:.1f} cm still to go to {region}, {where} it" if left else f"is {where} {region}"


def way_to_region(environment: Environment, held: Mapping[str, str]) -> str:
    """Return the way from the first object that is beside its region, along the axes of the world; empty if none is.

    A held object has to go on until it is 1 cm inside.

    Args:
        environment: Environment of the session.
        held: Name of the object in each hand.
    """
    scene = environment.scene
    for condition in environment.task.success:
        if not isinstance(condition, Step) or not isinstance(condition.statement, On):
            continue
        predicate = environment.resolve(condition.statement)
        assert isinstance(predicate, On)
        inside = dict(predicate.ways(scene, inside=_INSIDE))
        for name, way in predicate.ways(scene):
            way = inside[name] if name in held.values() else way
            if np.abs(way).max() > _NEAR:
                return f"move {name} {_axes(way)}"
    return ""


def way_to_object(environment: Environment, failure: Outcome) -> str:
    """Return the way from a tool to the middle of the nearest object that a failed condition names; empty if none.

    Args:
        environment: Environment of the session.
        failure: First condition of success that does not hold.
    """
    scene = environment.scene
    words = set(re.findall(r"\w+", f"{failure.phase} {failure.detail}"))
    tools = {arm: one.tool_pose()[:3, 3] for arm, one in scene.arms.items()}
    ways = [
        (np.mean(scene.bounds(name), axis=0) - tool, name, arm)
        for name in scene.objects
        if name in words
        for arm, tool in tools.items()
    ]
    if not ways:
        return ""
    way, name, arm = min(ways, key=lambda one: float(np.linalg.norm(one[0])))
    tool = "the tool" if len(tools) == 1 else f"the {arm} tool"
    parts = [f"{name} is {axes} from {tool}"] if (axes := _axes(way)) else []
    if scene.model(name).symmetry == "box":
        angle = turn_to_sides(scene.arms[arm].tool_pose(), scene.pose(name))
        if abs(angle) >= _TURNED:
            start = "turn" if parts else f"{name}: turn {tool}"
            parts.append(f"{start} {abs(angle):.0f} deg ({'J' if angle > 0 else 'L'})")
    return "; ".join(parts)


def turn_to_sides(world_T_tool: FloatArray, world_T_object: FloatArray) -> float:
    """Return the angle by which to turn a tool about z to be parallel to the sides of a box [deg], from -45 to 45.

    It is 0 for a tool that does not point down, and for a box that does not lie on a side.
    """
    tool, box = world_T_tool[:3, :3], world_T_object[:3, :3]
    if abs(tool[2, 2]) < _UPRIGHT or np.abs(box[2]).max() < _UPRIGHT:
        return 0.0
    side = box[:, int(np.argmin(np.abs(box[2])))]
    angle = np.degrees(np.arctan2(side[1], side[0]) - np.arctan2(tool[1, 0], tool[0, 0]))
    return float((angle + 45.0) % 90.0 - 45.0)


def _axes(way: FloatArray) -> str:
    """Return the parts of a way (2,) or (3,) along the axes of the world [m], in words."""
    parts = [
        f"{abs(length) * 100:.1f} cm toward {keys[int(length < 0)]}"
        for length, keys in zip(way, _KEYS, strict=False)
        if abs(length) > _NEAR
    ]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def tool_heights(environment: Environment, held: Mapping[str, str]) -> dict[str, float]:
    """Return the height of each tool above the surface below it [m], by name of the arm.

    Tools above nothing are omitted.

    Args:
        environment: Environment of the session.
        held: Name of the object in each hand; it and the robot are ignored.
    """
    scene = environment.scene
    model = scene.simulation.model
    heights: dict[str, float] = {}
    for name, arm in scene.arms.items():
        names = [arm.robot.tool.link, *([held[name]] if name in held else [])]
        passed = np.isin(model.body_rootid, [model.body_rootid[model.body(body).id] for body in names])
        tool = arm.tool_pose()[:3, 3]
        surface = find_solid_below(scene.simulation, tool, passed, skipped=_SKIPPED)
        if np.isfinite(surface):
            heights[name] = float(tool[2]) - surface
    return heights


def find_pressing(environment: Environment, held: Mapping[str, str], gaps: Mapping[str, float]) -> tuple[str, ...]:
    """Return the arms whose fingers press on something that is no object, and therefore do not close.

    Args:
        environment: Environment of the session.
        held: Name of the object in each hand.
        gaps: Part of the travel by which the fingers of each arm are wider open than commanded.
    """
    scene = environment.scene
    return tuple(
        name
        for name, gap in gaps.items()
        if gap > _OPEN and name not in held and scene.arms[name].touched_by_gripper() - set(scene.objects)
    )
