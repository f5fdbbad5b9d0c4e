"""Jointed parts of objects: their state, grasps of their handles, and hand paths that move them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import part_label
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.objects.articulated.pose import object_T_part
from nimbus.datagen.objects.model import Handle, MovingPart, Pressing
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.tasks.workcell_interface import SceneState


_TURN_STEP, _TILTS = 0.26, np.radians([0, 20, 40])
"""Step of the hand's rotation about a handle, and its tilts along the handle, away from obstacles below [rad]."""
_CURVE_STEP, _CURVE_TURN = 0.005, np.radians(1.5)
"""Distance [m] and rotation [rad] between two poses of a hand path."""
_NEAR = 0.03
"""Distance of the tool's origin from the surface before a press; the remaining gap is then measured [m]."""
_COMFORT = np.array([0.6, 0.0, -0.8])
"""Preferred approach direction of an arm on a table: away from its base, and down."""


@dataclass(frozen=True, kw_only=True)
class PartGrasp:
    """Pose of the hand for holding or pressing a part."""

    world_T_tool: FloatArray
    """(4, 4) pose of the tool in the world [m]."""
    width: float
    """Distance between the pads when they hold the part [m]; 0 to press with closed fingers."""
    round: bool
    """True when the held handle may rotate between the fingers."""
    cost: float
    """Penalty for a tilt of the hand and for an offset from the handle's center."""
    into: FloatArray = field(default_factory=lambda: np.zeros(3))
    """(3,) unit direction in which the fingers press, in the part's frame."""

    def resembles(self, other: PartGrasp) -> bool:
        """Return True for nearly the same position and approach direction."""
        one, two = self.world_T_tool, other.world_T_tool
        return bool(np.abs(one[:3, 3] - two[:3, 3]).max() < 0.008 and one[:3, 2] @ two[:3, 2] > 0.97)


class JointedPart:
    """Moving part of an object in the cell, for example the lid of a box.

    Args:
        cell: The scene.
        item: Name of the object.
        name: Name of the part; empty selects the first part without a spring, or the first part if all have one.

    Raises:
        SkillFailure: The object has no such part.
    """

    def __init__(self, cell: SceneState, item: str, name: str = "") -> None:
        self._cell, self.item = cell, item
        self.model = _find(cell.model(item).parts, item, name)
        self.label = part_label(item, self.model.name)
        """Label of its body and of its joint."""

    @property
    def position(self) -> float:
        """Return the position of its joint [rad or m]."""
        data = self._cell.simulation.data
        return float(data.joint(self.label).qpos[0])

    @property
    def fraction(self) -> float:
        """Return the fraction of its joint's range: 0 closed or at rest, 1 fully open."""
        low, high = self.model.joint.range
        return (self.position - low) / (high - low)

    @property
    def pose(self) -> FloatArray:
        """Return ``world_T_part`` (4, 4)."""
        return self._cell.pose(self.label)

    def position_at(self, fraction: float) -> float:
        """Return the joint position [rad or m] of a fraction of the range."""
        low, high = self.model.joint.range
        return low + fraction * (high - low)

    def motion(self, start: float, end: float) -> FloatArray:
        """Return the transform (4, 4) in the world that moves the part between two joint positions."""
        world = self._cell.pose(self.item)
        start_pose, end_pose = (object_T_part(self.model, position) for position in (start, end))
        # Both poses are computed from the model: the joint itself stays where it is.
        return world @ end_pose @ np.linalg.inv(world @ start_pose)

    def hand_path(self, world_T_tool: FloatArray, start: float, end: float, *, share: float = 1.0) -> list[FloatArray]:
        """Return the poses (4, 4) along which a hand moves the part, without the start pose.

        Args:
            world_T_tool: (4, 4) pose at which it holds or touches the part.
            start: Joint position at that pose [rad or m].
            end: Joint position at the end.
            share: Fraction of the part's rotation that the hand copies; the handle rotates between the fingers by the
                remainder.
        """
        # Inverse kinematics follows the path from pose to pose; short steps keep it from jumping between solutions.
        count = self._step_count(world_T_tool, start, end)
        axis = self._cell.pose(self.item)[:3, :3] @ self.model.joint.axis
        poses = []
        for position in np.linspace(start, end, count + 1)[1:]:
            pose = self.motion(start, float(position)) @ world_T_tool
            if self.model.joint.kind == "hinge" and share != 1.0:
                turn = quat_from_axis_angle(axis, share * (float(position) - start))
                pose[:3, :3] = quat_to_matrix(turn) @ world_T_tool[:3, :3]
            poses.append(pose)
        return poses

    def _step_count(self, world_T_tool: FloatArray, start: float, end: float) -> int:
        if self.model.joint.kind == "slide":
            return max(1, int(np.ceil(abs(end - start) / _CURVE_STEP)))
        arm = np.linalg.norm(world_T_tool[:3, 3] - self.pose[:3, 3])
        return max(1, int(np.ceil(abs(end - start) * max(arm / _CURVE_STEP, 1 / _CURVE_TURN))))

    def grips(self) -> list[PartGrasp]:
        """Return grasps of its handles, the most comfortable first."""
        grips = [grip for handle in self.model.handles for grip in _grips_of(handle, self.pose)]
        return _by_comfort(self._cell, grips)

    def presses(self) -> list[PartGrasp]:
        """Return poses that press on it with closed fingers, the most comfortable first.

        The tool's origin starts off the surface, because only the planning scene can measure the gap of the fingers.
        """
        grips = [grip for place in self.model.pressings for grip in _presses_of(place, self.pose)]
        return _by_comfort(self._cell, grips)


def cavity(cell: SceneState, item: str) -> tuple[FloatArray, FloatArray]:
    """Return an object's cavity: frame (4, 4) in the world, lower and upper corner (2, 3) in that frame [m].

    For an object whose parts have cavities, such as a cabinet, the result is the cavity of the part that is open
    furthest.

    Raises:
        SkillFailure: The object has no cavity.
    """
    model = cell.model(item)
    if model.cavities:
        return cell.pose(item), model.cavities.get("opening", next(iter(model.cavities.values())))
    rooms = [JointedPart(cell, item, part.name) for part in model.parts if part.cavities]
    if not rooms:
        raise SkillFailure(Reason.NO_ROOM, f"{item} has no space inside")
    part = max(rooms, key=lambda one: one.fraction)
    return part.pose, _that_stands_out(part, next(iter(part.model.cavities.values())))


def _that_stands_out(part: JointedPart, room: FloatArray) -> FloatArray:
    """Return the portion of a drawer's cavity outside the case."""
    joint, room = part.model.joint, np.array(room)
    if joint.kind == "slide":
        along = int(np.abs(joint.axis).argmax())
        if joint.axis[along] < 0:
            room[1, along] = min(room[1, along], part.position)
        else:
            room[0, along] = max(room[0, along], -part.position)
    return room


def _find(parts: tuple[MovingPart, ...], item: str, name: str) -> MovingPart:
    # Springs move buttons and bells, which a task rarely means when it opens or closes an object.
    free = [part for part in parts if part.joint.stiffness == 0.0]
    wanted = [part for part in parts if part.name == name] if name else (free or list(parts))
    if not wanted:
        known = ", ".join(part.name for part in parts) or "none"
        raise SkillFailure(Reason.NO_GRASP, f"{item} has no part '{name}' that moves; it has {known}")
    return wanted[0]


def _grips_of(handle: Handle, pose: FloatArray) -> Iterator[PartGrasp]:
    turn = pose[:3, :3]
    along, straight = turn @ handle.along, turn @ handle.approach
    low, high = handle.turns
    turns = np.linspace(low, high, max(1, int(np.ceil((high - low) / _TURN_STEP)) + 1))
    # np.unique leaves a single shift for a handle without length, such as a knob.
    shifts = np.unique([-handle.length / 2, 0.0, handle.length / 2])
    for angle, tilt, shift in itertools.product(turns, _TILTS, shifts):
        approach = quat_to_matrix(quat_from_axis_angle(along, float(angle))) @ straight
        closing = np.cross(along, approach)
        # Of the two directions of a tilt, choose the one that keeps the hand above the handle.
        tilted = [quat_to_matrix(quat_from_axis_angle(closing, sign * float(tilt))) @ approach for sign in (1, -1)]
        # Rounding makes the choice between two level approaches independent of the last bit.
        approach = min(tilted, key=lambda way: round(float(way[2]), 6))
        position = pose[:3, :3] @ (handle.position + shift * handle.along) + pose[:3, 3]
        cost = 0.1 * abs(float(shift)) + 0.2 * float(tilt)
        yield PartGrasp(
            world_T_tool=_hand(position, approach, closing), width=handle.width, round=handle.round, cost=cost
        )


def _presses_of(place: Pressing, pose: FloatArray) -> Iterator[PartGrasp]:
    normal = pose[:3, :3] @ place.normal
    position = pose[:3, :3] @ place.position + pose[:3, 3]
    level = np.cross(normal, (0.0, 0.0, 1.0)) if abs(normal[2]) < 0.9 else np.array((0.0, 1.0, 0.0))
    level = level / np.linalg.norm(level)
    for angle, across in itertools.product(np.radians([0, 25, -25, 50, -50, 90, -90]), (False, True)):
        approach = quat_to_matrix(quat_from_axis_angle(level, float(angle))) @ -normal
        closing = np.cross(level, approach) if across else level
        hand, cost = _hand(position + _NEAR * normal, approach, closing), 0.2 * abs(angle)
        yield PartGrasp(world_T_tool=hand, width=0.0, round=False, cost=cost, into=-place.normal)


def _hand(position: FloatArray, approach: FloatArray, closing: FloatArray) -> FloatArray:
    """Build a tool frame (4, 4) with z along the approach and y along the closing direction."""
    hand = np.eye(4)
    hand[:3, 2] = approach / np.linalg.norm(approach)
    hand[:3, 0] = np.cross(closing / np.linalg.norm(closing), hand[:3, 2])
    hand[:3, 0] /= np.linalg.norm(hand[:3, 0])
    hand[:3, 1] = np.cross(hand[:3, 2], hand[:3, 0])
    hand[:3, 3] = position
    return hand


def _by_comfort(cell: SceneState, grips: list[PartGrasp]) -> list[PartGrasp]:
    base = np.array(cell.stage.robot_position)

    def cost(grip: PartGrasp) -> float:
        outward = grip.world_T_tool[:2, 3] - base[:2]
        # A grasp straight above the base has no outward direction; the floor avoids a division by zero.
        outward = outward / max(float(np.linalg.norm(outward)), 1e-6)
        best = np.array([*(_COMFORT[0] * outward), _COMFORT[2]])
        return grip.cost + 1.0 - float(grip.world_T_tool[:3, 2] @ best)

    return sorted(grips, key=cost)


class FurthestParts:
    """Largest fraction of its range that each part has reached so far.

    A final check alone would miss a pressed button, because a spring returns it.

    Args:
        cell: The scene.
    """

    def __init__(self, cell: SceneState) -> None:
        parts = [JointedPart(cell, item, part.name) for item in cell.objects for part in cell.model(item).parts]
        model = cell.simulation.model
        self._data, self._labels = cell.simulation.data, tuple(part.label for part in parts)
        self._address = np.array([model.joint(label).qposadr[0] for label in self._labels], dtype=int)
        ranges = np.array([part.model.joint.range for part in parts], dtype=float).reshape(-1, 2)
        self._low, self._size = ranges[:, 0], ranges[:, 1] - ranges[:, 0]
        self._furthest = self._fractions()

    def _fractions(self) -> FloatArray:
        return (self._data.qpos[self._address] - self._low) / self._size

    def observe(self) -> None:
        """Record the current fractions."""
        # Called with every observation of contacts, 240 times per second; most scenes have no parts.
        if self._labels:
            np.maximum(self._furthest, self._fractions(), out=self._furthest)

    @property
    def reached(self) -> FloatArray:
        """Largest fractions (P,) so far; setting them restores an earlier instant."""
        return self._furthest.copy()

    @reached.setter
    def reached(self, value: FloatArray) -> None:
        self._furthest = value.copy()

    def fraction(self, label: str) -> float:
        """Return the largest fraction of its range that a part has reached."""
        return float(self._furthest[self._labels.index(label)])
