"""Conditions on the position of objects relative to other things, regions and the world."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from nimbus.datagen.execute.toolkit import (
    BESIDE,
    LEAN,
    NEAR,
    WORLD,
    contains,
    find_frame,
    find_supports,
    is_on_side,
    measure_gap,
    measure_lean,
)
from nimbus.datagen.plugin import (
    ContainerReference,
    Field,
    FloatArray,
    Metres,
    ObjectReference,
    ObjectsReference,
    Outcome,
    PoseReference,
    Predicate,
    PydanticCustomError,
    Radians,
    Ratio,
    Reason,
    SupportReference,
    World,
    each,
    model_validator,
    register,
)

_SIDES = {"left": "left_of", "right": "right_of", "front": "in_front_of", "behind": "behind"}
_HEIGHT = 0.005
"""Largest distance of an object's lowest point from the surface of a region [m]."""


@register("predicate", "inside")
class Inside(Predicate):
    """The objects' centers of mass are within the container's walls and below its rim."""

    main = "object"
    version: ClassVar[int] = 2
    states = ("in(object, container)",)
    object: ObjectsReference = Field(description="The object that must be inside; a group means each of its objects.")
    container: ContainerReference = Field(description="The fixture or object that must contain it.")
    cavity: str | None = Field(None, description="Name of a part or cavity, such as drawer_0; by default any.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first object outside, and where it is instead."""
        outside = (name for name in each(self.object) if not contains(world, self.container, name, cavity=self.cavity))
        return next((self._why(world, name) for name in outside), None)

    def _why(self, world: World, name: str) -> Outcome:
        for fixture in world.stage.fixtures:
            if fixture != self.container and contains(world, fixture, name):
                detail = f"{name} is in {fixture}, not in {self.container}"
                return Outcome(success=False, reason=Reason.WRONG_BIN, detail=detail)
        if world.has_fallen(name):
            return Outcome(success=False, reason=Reason.ON_FLOOR, detail=f"{name} fell")
        return Outcome(success=False, reason=Reason.NOT_IN_BIN, detail=f"{name} is not in {self.container}")


@register("predicate", "on")
class On(Predicate):
    """The objects touch the support from above; if it is a region, their centers are also within its edges."""

    main = "object"
    states = ("on(object, support)", "at(object, support)")
    object: ObjectsReference = Field(
        description="The object that must rest on the support; a group means each of its objects."
    )
    support: SupportReference = Field(description="The object, fixture or region that it must rest on.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first object that is not on the support."""
        for name in each(self.object):
            why = self._off_region(world, name) if self.support in world.regions else self._off_thing(world, name)
            if why:
                reason = Reason.ON_FLOOR if world.has_fallen(name) else Reason.NOT_ON
                return Outcome(success=False, reason=reason, detail=why)
        return None

    def _off_thing(self, world: World, name: str) -> str:
        supports = find_supports(world, name)
        return "" if self.support in supports else f"{name} rests on {_listed(supports)}, not on {self.support}"

    def ways(self, world: World, *, inside: float = 0.0) -> Iterator[tuple[str, FloatArray]]:
        """Yield each object with its horizontal way (2,) into the region [m]; 0 for an object above it.

        Args:
            world: The world.
            inside: Distance from the edges, up to the middle of the region, at which the way ends [m].
        """
        if (region := world.regions.get(self.support)) is None:
            return
        for name in each(self.object):
            low, high = world.bounds(name)
            away, half = (low + high)[:2] / 2 - region.center, np.array(region.size) / 2
            half = np.maximum(half - inside, 0.0)
            yield name, np.clip(away, -half, half) - away

    def _off_region(self, world: World, name: str) -> str:
        region = world.regions[self.support]
        low, high = world.bounds(name)
        off = np.abs((low + high)[:2] / 2 - region.center) - np.array(region.size) / 2
        height = low[2] - world.stage.surfaces[region.on].upper[2]
        if off.max() > 0 or abs(height) > _HEIGHT:
            return (
                f"{name} is {max(0.0, float(off.max())) * 100:.1f} cm off {self.support}, {height * 100:.1f} cm above"
            )
        supports = find_supports(world, name)
        return "" if WORLD in supports else f"{name} rests on {_listed(supports)}, not on {region.on}"


def _listed(supports: set[str]) -> str:
    return ", ".join(sorted(supports)) or "nothing"


@register("predicate", "stacked")
class Stacked(Predicate):
    """Every object but the first rests on the one before it, touching it from above."""

    main = "objects"
    states = ("stacked(objects)",)
    objects: ObjectsReference = Field(description="A group, or a list from the lowest to the highest.")
    order: Literal["given", "any"] = Field("given", description="Order of the stack: given, that of the list, or any.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first object that does not rest on its predecessor."""
        names = each(self.objects)
        if self.order == "any":
            names = sorted(names, key=world.lowest_point)
        for below, above in pairwise(names):
            if below not in (supports := find_supports(world, above)):
                detail = f"{above} rests on {', '.join(sorted(supports)) or 'nothing'}, not on {below}"
                return Outcome(success=False, reason=Reason.NOT_ON, detail=detail)
        return None


@register("predicate", "beside")
class Beside(Predicate):
    """The object is within 8 cm of the other one, neither rests on the other, and it is on the named side.

    Sides are as seen by the robot; front is nearer to the robot. The object is on a side if the direction to it from
    the other one's center is within 45 degrees of that side's direction.
    """

    main = "object"
    states = (
        "beside(object, of)",
        "left_of(object, of, side=left)",
        "right_of(object, of, side=right)",
        "in_front_of(object, of, side=front)",
        "behind(object, of, side=behind)",
    )
    object: ObjectReference = Field(description="The object that must stand beside the other.")
    of: ContainerReference = Field(description="The object or fixture that it must stand next to.")
    within: Metres = Field(BESIDE, gt=0, le=1, description="Largest distance between the two surfaces.")
    side: Literal["left", "right", "front", "behind"] | None = Field(
        None, description="Side of the other thing; by default any."
    )

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if the object is too far away, on top, or on another side."""
        if why := self._why(world):
            return Outcome(success=False, reason=Reason.OFF_TARGET, detail=f"{self.object} {why} {self.of}")
        return None

    def _why(self, world: World) -> str:
        # Distances are measured up to twice the limit, which is enough for the message and much cheaper than the exact
        # gap.
        distance = measure_gap(world, self.object, self.of, most=2 * self.within)
        if distance > self.within:
            return f"is {distance * 100:.1f} cm or more from"
        if self.of in find_supports(world, self.object) or self.object in find_supports(world, self.of):
            return "is not beside, but on or below"
        if self.side is None:
            return ""
        is_there = is_on_side(world, self.object, self.of, _SIDES[self.side])
        return "" if is_there else f"is not on the {self.side} side of"


@register("predicate", "near")
class Near(Predicate):
    """The surfaces of the objects are within 5 cm of the other thing's surface, in any direction."""

    main = "object"
    states = ("hung(object, to, within=5 mm)",)
    object: ObjectsReference = Field(description="The object that must be near; a group means each of its objects.")
    to: ContainerReference = Field(description="The object or fixture that it must be near to.")
    within: Metres = Field(NEAR, gt=0, le=2, description="Largest distance between the two surfaces.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first object that is too far away."""
        for name in each(self.object):
            distance = measure_gap(world, name, self.to, most=2 * self.within)
            if distance > self.within:
                more = "more than " if distance >= 2 * self.within else ""
                detail = f"{name} is {more}{distance * 100:.1f} cm from {self.to}"
                return Outcome(success=False, reason=Reason.OFF_TARGET, detail=detail)
        return None


@register("predicate", "inserted")
class Inserted(Predicate):
    """The peg's frame ``tip`` is inside the hole, at or below a given fraction of the hole's depth."""

    main = "object"
    states = ("inserted(object, into)",)
    object: ObjectReference = Field(description="The peg.")
    into: ObjectReference = Field(description="The object with the hole.")
    hole: str = Field("hole", description="Name of the hole.")
    depth: Ratio = Field(0.6, gt=0, le=1, description="Smallest fraction of the hole's depth.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if the tip is beside the hole, or not deep enough."""
        low, high = world.model(self.into).cavities[self.hole]
        tip = world.pose(self.object) @ find_frame(world, self.object, "tip")[:, 3]
        place = (np.linalg.inv(world.pose(self.into)) @ tip)[:3]
        depth = float((high[2] - place[2]) / (high[2] - low[2]))
        if np.all(place[:2] > low[:2]) and np.all(place[:2] < high[:2]) and depth >= self.depth:
            return None
        detail = f"the tip of {self.object} is {depth:.0%} deep in {self.hole} of {self.into}"
        return Outcome(success=False, reason=Reason.NOT_INSERTED, detail=detail)


@register("predicate", "at_pose")
class AtPose(Predicate):
    """The center of the object's bounds, or the robot's tool, is within 2 cm of a point."""

    main = "at"
    object: ObjectReference | None = Field(
        None, description="The object that must be there; by default the robot's tool."
    )
    at: PoseReference = Field(description="The point: [x, y, z] in the world frame [m], or in words: start.center.")
    within: Metres = Field(0.02, gt=0, description="Largest distance.")
    axes: Literal["xyz", "xy", "z"] = Field(
        "xyz", description="Axes of the world along which the distance is measured."
    )

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if the object or the tool is elsewhere."""
        here = world.tool_pose()[:3, 3] if self.object is None else np.add(*world.bounds(self.object)) / 2
        away = (here - np.asarray(self.at, dtype=float))[["xyz".index(axis) for axis in self.axes]]
        distance = float(np.linalg.norm(away))
        if distance <= self.within:
            return None
        detail = f"{self.object or 'the tool'} is {distance * 100:.1f} cm away"
        return Outcome(success=False, reason=Reason.OFF_TARGET, detail=detail)


@register("predicate", "aligned")
class Aligned(Predicate):
    """The object's heading, or one of its axes, is within 10 degrees of another thing's or the world's.

    Without ``axis``, headings are compared. ``every`` then gives the smallest rotation after which the object looks the
    same: 90 deg for a block, 180 deg for a book. With ``axis``, that axis of both things is compared, regardless of its
    sign.
    """

    main = "object"
    object: ObjectReference = Field(description="The object that must be aligned.")
    to: ContainerReference | None = Field(
        None, description="The thing to align with; by default the axes of the world."
    )
    yaw: Radians = Field(0.0, description="Heading of the object relative to the other thing.")
    every: Radians = Field(
        2 * math.pi, gt=0, le=2 * math.pi, description="Smallest rotation after which the object looks the same."
    )
    axis: Literal["x", "y", "z"] | None = Field(None, description="Axis that is compared in place of the heading.")
    tolerance: Radians = Field(math.radians(10), gt=0, le=math.pi / 2, description="Largest deviation.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Aligned:
        if self.axis is not None and self.yaw != 0.0:
            raise PydanticCustomError("aligned", "yaw and axis cannot both be given", {"instead": "give one of them"})
        return self

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if the object is misaligned."""
        turn = world.pose(self.object)[:3, :3]
        other = np.eye(3) if self.to is None else world.pose(self.to)[:3, :3]
        off = self._between_axes(turn, other) if self.axis else self._between_headings(turn, other)
        if off <= self.tolerance:
            return None
        detail = f"{self.object} is turned by {math.degrees(off):.0f} deg from {self.to or 'the world'}"
        return Outcome(success=False, reason=Reason.NOT_ALIGNED, detail=detail)

    def _between_axes(self, turn: np.ndarray, other: np.ndarray) -> float:
        column = "xyz".index(self.axis or "x")
        # The axis has no sign, so the angle is at most 90 degrees; rounding may bring the product above 1.
        return math.acos(min(1.0, abs(float(turn[:, column] @ other[:, column]))))

    def _between_headings(self, turn: np.ndarray, other: np.ndarray) -> float:
        off = _heading(turn) - _heading(other) - self.yaw
        # The difference is wrapped into [-every/2, every/2), so that rotations of the object's symmetry do not count.
        return abs((off + self.every / 2) % self.every - self.every / 2)


def _heading(turn: np.ndarray) -> float:
    return math.atan2(turn[1, 0], turn[0, 0])


@register("predicate", "upright")
class Upright(Predicate):
    """The objects' own vertical axes are within 15 degrees of the world's."""

    main = "object"
    object: ObjectsReference = Field(description="The object that must be upright; a group means each of its objects.")
    tolerance: Radians = Field(LEAN, gt=0, le=math.pi / 2, description="Largest angle between the two axes.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first tilted object."""
        for name in each(self.object):
            lean = measure_lean(world, name)
            if lean > self.tolerance:
                detail = f"{name} leans by {math.degrees(lean):.0f} deg"
                return Outcome(success=False, reason=Reason.TOPPLED, detail=detail)
        return None
