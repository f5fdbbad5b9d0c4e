"""Route: lay a cable through one or more gates, such as the clips of a cable guide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import numpy as np

from nimbus.datagen.execute.toolkit import (
    CarryPath,
    MotionPlan,
    align_hand,
    find_frame,
    pinch_height,
    reach_carry_path,
    release_upward,
)
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    ObjectReference,
    ObjectsReference,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    each,
    register,
)

_OVER_BASE = 0.012
"""Rise of the hand while it moves through the gates, clear of the bases of clips [m]."""
_OPENING = 0.022
"""Distance of the pads before they close [m]."""
_FROM_END = 0.02
"""Distance of the grasp from the end of the cable [m]; a longer end catches on the posts of a gate."""
_LENGTH = 0.04
"""Length of the cable from its end, over which its direction is measured [m]."""
_BEFORE, _BEYOND = 0.07, 0.06
"""Distances of the hand before the first gate where it is lowered, and beyond the last one where it releases [m]."""
_OVER = 0.09
"""Height of the tool above the surface while it carries the end to the first gate [m]."""
_SHARES = (1.0, 0.5, 0.0)
"""Fractions of the rotation between cable and passage that the hand makes, in the order of preference; the pads still
hold a cable that leaves them at an angle."""
_STEP = 0.01
"""Distance of the poses along the path [m]."""
_CLOSING = 8
"""Record periods in which the fingers close."""
_ROOM = 0.008
"""Travel of each finger at the release [m]."""


@register("skill", "route")
class RouteCable(Skill):
    """Pinch an end of a cable, carry it to a gate, pull it through all gates at the height of the surface, release it.

    A gate is the frame ``gate`` of an object, with z along the passage. Needs an empty gripper and a cable that lies
    flat. Takes the end of the cable that rotates the hand least and that the arm can pull through.
    Fails with ``no_grasp`` when the arm can carry no end through the gates, or with ``missed_grasp``.
    """

    main = "object"
    needs_flexible = "cable"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)")
    gives = ("routed(object, through)",)
    frames = {"through": "gate"}  # noqa: RUF012
    object: ObjectReference = Field(description="Cable to route.")
    through: ObjectsReference = Field(description="Objects with the gates: a group or a list, in their order.")
    speed: Annotated[float, Field(gt=0, le=0.5)] = Field(0.15, description="Speed of the hand with the cable [m/s].")
    retries: int = Field(1, ge=0, le=10, description="Number of further tries after the end was missed or lost.")

    def run(self, arm: Workcell) -> None:
        """Try until the end stays in the fingers."""
        surface = arm.lowest_point(self.object)
        for _ in range(self.retries + 1):
            if self._pull_end(arm, surface):
                return
        raise SkillFailure(Reason.MISSED_GRASP, f"the fingers did not keep an end of {self.object}")

    def _pull_end(self, arm: Workcell, surface: float) -> bool:
        """Pinch, carry, pull and release; return True if the end was in the fingers beyond the last gate."""
        carry, pull = reach_carry_path(
            arm,
            self._carry_paths(arm, surface),
            opening=_OPENING,
            over=surface + _OVER,
            speed=self.speed,
            carried=f"end of {self.object}",
        )
        arm.begin("grasp")
        kept = arm.close_on(self.object, steps=_CLOSING)
        if kept:
            plan = arm.planner.plan_curve(arm.look(), arm.arm_command, carry + pull, speed=self.speed)
            for phase, part in zip(("carry", "pull"), _split(arm, plan, carry[-1]), strict=True):
                if kept:
                    arm.begin(phase)
                    arm.follow(part)
                    kept = arm.is_gripping(self.object)
        arm.begin("release")
        arm.wait(2)
        release_upward(arm, room=_ROOM, height=surface + _OVER)
        return kept

    def _carry_paths(self, arm: Workcell, surface: float) -> Iterator[CarryPath]:
        """Yield the tool poses to the first gate, and those through the gates, for each end and share of rotation."""
        height = pinch_height(arm, surface)
        for place, outward, gates in self._choices(arm):
            for share in _SHARES:
                yield _paths(place, outward, gates, height=height, over=surface + _OVER, share=share)

    def _choices(self, arm: Workcell) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Return the grasps, the outward directions and the gates with their passages, the smallest rotation first.

        Returns:
            Rows of a point (2,) on the cable [m], a unit vector (2,), and the gates' centers and passages (G, 2, 2).
        """
        points = arm.points(self.object)[:, :2]
        frames = [arm.pose(name) @ find_frame(arm, name, "gate") for name in each(self.through)]
        gates = np.array([[frame[:2, 3], frame[:2, 2] / np.linalg.norm(frame[:2, 2])] for frame in frames])
        choices = []
        for row in (points, points[::-1]):
            place, inner = _along(row, _FROM_END), _along(row, _LENGTH)
            outward = (row[0] - inner) / np.linalg.norm(row[0] - inner)
            for sign in (1.0, -1.0) if len(gates) == 1 else (1.0,):
                choices.append((place, outward, _directed(gates, sign)))
        return sorted(choices, key=lambda choice: -float(choice[1] @ choice[2][0, 1]))


def _split(arm: Workcell, plan: MotionPlan, middle: FloatArray) -> tuple[MotionPlan, MotionPlan]:
    """Split a motion where the tool is nearest to a pose (4, 4); a failed plan is returned twice."""
    if not plan:
        return plan, plan
    scene = arm.look()
    ways = [np.linalg.norm((scene.tool_pose(posture) - middle)[:3, 3]) for posture in plan.positions]
    row = int(np.clip(np.argmin(ways), 1, len(ways) - 2))
    return replace(plan, positions=plan.positions[: row + 1]), replace(plan, positions=plan.positions[row:])


def _along(points: FloatArray, distance: float) -> FloatArray:
    """Return the point (2,) at a distance from the start of a polyline (N, 2) [m]."""
    lengths = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))]
    return np.array([np.interp(distance, lengths, points[:, axis]) for axis in range(2)])


def _directed(gates: FloatArray, sign: float) -> FloatArray:
    """Return gates (G, 2, 2) with their passages along the way from the first to the last one."""
    way = gates[-1, 0] - gates[0, 0] if len(gates) > 1 else sign * gates[0, 1]
    result = gates.copy()
    result[:, 1] *= np.where(gates[:, 1] @ way < 0.0, -1.0, 1.0)[:, None]
    return result


def _paths(
    place: FloatArray, outward: FloatArray, gates: FloatArray, *, height: float, over: float, share: float
) -> CarryPath:
    """Return the tool poses (4, 4) from the grasp to the height of the first gate, and from there to the release."""
    first, last = gates[0], gates[-1]
    stops = [first[0] - _BEFORE * first[1], *gates[:, 0], last[0] + _BEYOND * last[1]]
    headings = [first[1], *gates[:, 1], last[1]]
    path = [stops[0]]
    for one, other, leaving, arriving in zip(stops[:-1], stops[1:], headings[:-1], headings[1:], strict=True):
        path += _bend(one, other, leaving, arriving)
    begin, angle = np.arctan2(outward[1], outward[0]), np.arctan2(first[1][1], first[1][0])
    turn = (angle - begin + np.pi) % (2 * np.pi) - np.pi
    way = stops[0] - place
    count = max(2, int(np.ceil(np.linalg.norm(way) / _STEP)))
    turn *= share
    rise = np.linspace(height, over, max(2, int((over - height) / _STEP)))
    low = height + _OVER_BASE
    carry = [_pose([*place, z], begin) for z in rise]
    carry += [
        _pose([*(place + part * way), over], begin + part * turn) for part in np.linspace(0.0, 1.0, count + 1)[1:]
    ]
    end, heading = begin + turn, angle
    carry += [_pose([*stops[0], z], end) for z in np.linspace(over, low, len(rise))[1:]]
    pull = []
    for one, other in zip(path[:-1], path[1:], strict=True):
        change = np.arctan2(*(other - one)[::-1]) - heading
        heading += change
        end += share * ((change + np.pi) % (2 * np.pi) - np.pi)
        pull.append(_pose([*other, low], end))
    return carry, pull


def _bend(one: FloatArray, other: FloatArray, leaving: FloatArray, arriving: FloatArray) -> list[FloatArray]:
    """Return points (2,) on a cubic curve between two points, with unit vectors (2,) as directions at its ends."""
    reach = float(np.linalg.norm(other - one))
    shares = np.linspace(0.0, 1.0, max(2, int(np.ceil(reach / _STEP))) + 1)[1:]
    corners = [one, one + reach / 3 * leaving, other - reach / 3 * arriving, other]
    weights = [(1 - shares) ** 3, 3 * shares * (1 - shares) ** 2, 3 * shares**2 * (1 - shares), shares**3]
    return list(np.einsum("cn,cd->nd", np.array(weights), np.array(corners)))


def _pose(position: list[float], heading: float) -> FloatArray:
    """Return a tool pose (4, 4) that points down; the fingers close across the heading [rad]."""
    pose = np.eye(4)
    pose[:3, :3] = align_hand(np.array([np.cos(heading), np.sin(heading)]))
    pose[:3, 3] = position
    return pose
