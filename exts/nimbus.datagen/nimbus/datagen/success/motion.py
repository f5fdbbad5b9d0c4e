"""Conditions on the displacement of objects and fixtures since the start, and on their speed."""

from __future__ import annotations

import math

import numpy as np

from nimbus.datagen.execute.toolkit import MOVED, TURNED, measure_motion
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    Metres,
    ObjectReference,
    ObjectsReference,
    Outcome,
    Predicate,
    Radians,
    Reason,
    World,
    each,
    register,
)


@register("predicate", "moved_by")
class MovedBy(Predicate):
    """The objects are at least this far from their start, in any direction or within 30 degrees of one."""

    main = "object"
    states = ("moved(object)",)
    object: ObjectsReference = Field(description="The object that must have moved; a group means each of its objects.")
    distance: Metres = Field(0.05, gt=0, description="Least distance from the start.")
    along: tuple[float, float, float] | None = Field(None, description="Direction in the world frame, of any length.")
    tolerance: Radians = Field(math.radians(30), gt=0, le=math.pi, description="Largest angle to the direction.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first object that moved too little, or in another direction."""
        for name in each(self.object):
            way, _ = measure_motion(world, name)
            distance = float(np.linalg.norm(way))
            if distance < self.distance or not self._follows(way / distance):
                shown = ", ".join(f"{part * 100:.1f}" for part in way)
                detail = f"{name} moved {distance * 100:.1f} cm: by [{shown}] cm"
                return Outcome(success=False, reason=Reason.NOT_MOVED, detail=detail)
        return None

    def _follows(self, way: FloatArray) -> bool:
        if self.along is None:
            return True
        return float(way @ np.array(self.along)) >= float(np.linalg.norm(self.along)) * math.cos(self.tolerance)


@register("predicate", "not_moved")
class NotMoved(Predicate):
    """The objects are within 2 cm and 0.2 rad of their initial poses."""

    main = "object"
    states = ("untouched(object)",)
    object: ObjectsReference = Field(description="The object that must stay; a group means each of its objects.")
    tolerance: Metres = Field(MOVED, gt=0, description="Largest displacement.")
    turn: Radians = Field(TURNED, gt=0, description="Largest rotation about any axis.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first object that moved."""
        for name in each(self.object):
            way, turn = measure_motion(world, name)
            distance = float((way @ way) ** 0.5)
            if distance > self.tolerance or turn > self.turn:
                detail = f"{name} moved {distance * 100:.1f} cm and turned {turn:.2f} rad"
                return Outcome(success=False, reason=Reason.KNOCKED_OVER, detail=detail)
        return None


@register("predicate", "turned_by")
class TurnedBy(Predicate):
    """The angle between the object's orientation and its initial one is within 15 degrees of the requested angle.

    The axis does not matter: an object upside down is turned by 180 degrees, one on its side by 90.
    """

    main = "object"
    states = ("inverted(object, by=180 deg)",)
    object: ObjectReference = Field(description="The object that must be turned.")
    by: Radians = Field(math.pi, gt=0, le=math.pi, description="Angle of the rotation.")
    tolerance: Radians = Field(math.radians(15), gt=0, le=math.pi, description="Largest deviation from the angle.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if the angle differs."""
        _, turn = measure_motion(world, self.object)
        if abs(turn - self.by) <= self.tolerance:
            return None
        detail = f"{self.object} is turned by {math.degrees(turn):.0f} of {math.degrees(self.by):.0f} deg"
        return Outcome(success=False, reason=Reason.NOT_MOVED, detail=detail)


@register("predicate", "fixtures_unmoved")
class FixturesUnmoved(Predicate):
    """No fixture was displaced or tipped."""

    tolerance: Metres = Field(0.01, gt=0, description="Largest displacement of a fixture.")
    turn: Radians = Field(0.1, gt=0, description="Largest rotation of a fixture about any axis.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first fixture that moved."""
        for name in world.stage.fixtures:
            change = np.linalg.inv(world.start_poses[name]) @ world.pose(name)
            distance = float(np.linalg.norm(change[:3, 3]))
            tilt = float(np.arccos(np.clip((np.trace(change[:3, :3]) - 1) / 2, -1, 1)))
            if distance > self.tolerance or tilt > self.turn:
                detail = f"{name} moved {distance * 100:.1f} cm and turned {tilt:.2f} rad"
                return Outcome(success=False, reason=Reason.FIXTURE_MOVED, detail=detail)
        return None


@register("predicate", "at_rest")
class AtRest(Predicate):
    """The objects are slower than 2 cm/s and 0.5 rad/s; without a name, all objects."""

    main = "object"
    object: ObjectsReference | None = Field(
        None, description="The object that must be at rest; by default every object."
    )

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first object in motion."""
        for name in world.objects if self.object is None else each(self.object):
            if not world.is_at_rest(name):
                linear, angular = world.simulation.body_speed(name)
                detail = f"{name} moves at {linear:.3f} m/s and {angular:.2f} rad/s"
                return Outcome(success=False, reason=Reason.NOT_AT_REST, detail=detail)
        return None


@register("predicate", "nothing_on_floor")
class NothingOnFloor(Predicate):
    """No object fell off the table."""

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first object that lies lower than at the start."""
        for name in world.objects:
            if world.has_fallen(name):
                return Outcome(success=False, reason=Reason.ON_FLOOR, detail=f"{name} fell")
        return None
