"""Pushing without grasping: the fingers descend behind an object and move it along a line."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.tasks.workcell_interface import Workcell


_TIPS = 0.004
"""Height of the finger tips above the object's support [m]."""
_BEHIND = (0.025, 0.012)
"""Clearances between fingers and object at the descent [m]; the smaller one is the fallback."""
_OVER = 0.05
"""Height of the free motion above the object [m]."""
HALF_TURNS = (np.eye(4), np.diag([-1.0, -1.0, 1.0, 1.0]))
"""Rotations of the hand about its approach: none, and a half turn."""
_LOW = 0.04
"""Height of an object above which the hand leans back [m], so that the finger tips touch it first."""
_LEAN = 0.4
"""Angle by which the hand leans back [rad]."""
_LONGEST = 0.12
"""Longest stroke [m]; the next one aims again."""
_SHORT = 0.004
"""Distance by which a stroke stops short of the target [m]; a further stroke can push an object on, but not back."""
_TOPPLED = 0.5
"""Tilt at which an object counts as toppled [rad]."""


def plan_straight(cell: Workcell, goal: ArrayLike, *, speed: float = 0.25, touching: Iterable[str] = ()) -> None:
    """Move the tool in a straight line to ``world_T_tool`` (4, 4); it may touch the bodies ``touching``.

    Raises:
        SkillFailure: There is no such line, or the arm did not follow.
    """
    scene, bodies = cell.look(), tuple(touching)
    with scene.allow(*bodies):
        plan = cell.planner.plan_line(scene, cell.arm_command, goal, speed=speed)
    cell.follow(plan, touching=bodies)


def align_hand(direction: FloatArray, *, lean: float = 0.0) -> FloatArray:
    """Return the orientation (3, 3) of a hand that points down, with its fingers across a level direction (2,).

    Args:
        direction: Unit direction.
        lean: Angle by which the palm leans back, against the direction [rad].
    """
    forward = np.array([*direction, 0.0])
    approach = np.sin(lean) * forward - np.cos(lean) * np.array([0.0, 0.0, 1.0])
    closing = np.cross((0.0, 0.0, 1.0), forward)
    return np.stack([np.cross(closing, approach), closing, approach], axis=1)


def push_object(
    cell: Workcell,
    name: str,
    target: FloatArray,
    *,
    tolerance: float,
    strokes: int,
    speed: float,
    until: Callable[[], bool] | None = None,
    touching: Iterable[str] = (),
) -> None:
    """Push an object in strokes until its center is at a point; each stroke aims again.

    Args:
        cell: The scene, with an empty gripper.
        name: The object.
        target: (2,) x, y in the world [m].
        tolerance: Distance at which to stop [m].
        strokes: Largest number of strokes.
        speed: Speed of the fingers [m/s].
        until: Condition that replaces the tolerance.
        touching: Other bodies that the fingers may push.

    Raises:
        SkillFailure: The object fell over, or has not arrived.
    """
    upright = cell.pose(name)[:3, :3].copy()
    is_there = until or (lambda: float(np.linalg.norm(target - object_center(cell, name))) <= tolerance)
    bodies = tuple({name, *touching})
    reach: float | None = None
    for _ in range(strokes):
        if is_there():
            return
        # The first stroke estimates the distance from tool to object by the outline; later ones use the measured one.
        reach = _stroke(cell, name, target - object_center(cell, name), reach=reach, speed=speed, touching=bodies)
        turned = cell.pose(name)[:3, :3] @ upright.T
        if np.arccos(np.clip(turned[2, 2], -1.0, 1.0)) > _TOPPLED:
            raise SkillFailure(Reason.TOPPLED, f"{name} fell over")
    if not is_there():
        left = float(np.linalg.norm(target - object_center(cell, name)))
        raise SkillFailure(Reason.OFF_TARGET, f"{name} is {left * 100:.1f} cm off")


def object_center(cell: Workcell, name: str) -> FloatArray:
    """Return the center (2,) of an object's outline, x, y in the world [m]."""
    lower, upper = cell.bounds(name)
    return ((lower + upper) / 2)[:2]


def _stroke(
    cell: Workcell, name: str, way: FloatArray, *, reach: float | None, speed: float, touching: tuple[str, ...]
) -> float:
    """Push once; returns the distance of the object's center ahead of the tool at the end [m]."""
    distance = float(np.linalg.norm(way))
    direction, across = way / distance, np.array([-way[1], way[0]]) / distance
    vertices, pose = cell.model(name).vertices, cell.pose(name)
    points = vertices @ pose[:3, :3].T + pose[:3, 3]
    place, level = object_center(cell, name), points[:, 2].min()
    back = float(((place - points[:, :2]) @ direction).max())
    width = float(np.ptp(points[:, :2] @ across))
    gripper = cell.robot.gripper
    lean = _LEAN if points[:, 2].max() - level > _LOW else 0.0
    front = gripper.pad_width / 2 + 0.003
    reach = back + front if reach is None else reach

    # The lean lowers the front edge of the pads, so the tool is raised to keep the tips just above the support.
    hand = np.eye(4)
    hand[:3, :3] = align_hand(direction, lean=lean)
    hand[2, 3] = level + _TIPS + gripper.pad_height / 2 * np.cos(lean) + front * np.sin(lean)

    cell.begin("approach")
    turn = _come_behind(cell, hand, place - direction * (back + front), direction, width, points[:, 2].max() + _OVER)
    cell.begin("push")
    along = hand.copy()
    along[:2, 3] = place + direction * (min(distance, _LONGEST) - _SHORT - reach)
    ahead = along[:2, 3].copy()
    plan_straight(cell, along @ turn, speed=speed, touching=touching)
    cell.wait(2)
    reached = float((object_center(cell, name) - ahead) @ direction)
    cell.begin("retreat")
    # Back before up: fingers that rise along the object would tip it over.
    along[:2, 3] -= _BEHIND[0] * direction
    plan_straight(cell, along @ turn, touching=touching)
    along[2, 3] = points[:, 2].max() + _OVER
    plan_straight(cell, along @ turn, touching=touching)
    return reached


def _come_behind(
    cell: Workcell, hand: FloatArray, contact: FloatArray, direction: FloatArray, width: float, over: float
) -> FloatArray:
    """Descend behind an object, and return the rotation (4, 4) of the hand that was nearer: none, or a half turn.

    Raises:
        SkillFailure: There is no room, even for closed fingers.
    """
    plan = MotionPlan(status=MotionStatus.NO_IK)
    for spread, behind in itertools.product((0.6 * width, 0.0), _BEHIND):
        # Spread fingers push a wide object without turning it; closed fingers fit into narrow gaps.
        set_fingers(cell, spread)
        down = hand.copy()
        down[:2, 3] = contact - behind * direction
        above = down.copy()
        above[2, 3] = over
        plan = cell.planner.plan_pose(
            cell.look(), cell.arm_command, [above @ turn for turn in HALF_TURNS], rng=cell.rng()
        )
        if not plan:
            continue
        turn = HALF_TURNS[plan.goal_index]
        lower = cell.planner.plan_line(cell.look(), plan.end, down @ turn)
        if lower:
            cell.follow_all(plan, lower)
            return turn
        plan = lower
    raise SkillFailure.of_plan(plan)


def set_fingers(cell: Workcell, width: float) -> None:
    """Set the distance between the pads [m], at most fully open."""
    gripper = cell.robot.gripper
    share = min(1.0, max(0.0, width / gripper.shape.opening))
    for opening in np.linspace(cell.opening, gripper.closed + share * (gripper.open - gripper.closed), 4)[1:]:
        cell.command(opening=float(opening))
