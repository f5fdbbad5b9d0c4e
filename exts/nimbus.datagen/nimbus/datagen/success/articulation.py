"""Conditions on the joints of doors, drawers, lids, knobs and buttons."""

from __future__ import annotations

from nimbus.datagen.execute.toolkit import OPEN, PRESSED, SHUT
from nimbus.datagen.plugin import Field, JointedReference, Outcome, Predicate, Ratio, Reason, World, register


@register("predicate", "open_by")
class OpenBy(Predicate):
    """A joint of the object is at 80 % of its range or beyond; 0 % is closed, 100 % is fully open."""

    main = "object"
    states = ("open(object)", "turned(object)")
    object: JointedReference = Field(description="The object that must be open.")
    joint: str | None = Field(
        None, description="Name of the joint, such as drawer_0; by default the object's only joint."
    )
    at_least: Ratio = Field(OPEN, gt=0, le=1, description="Smallest fraction of the joint's range.")
    at_most: Ratio = Field(1.0, gt=0, le=1, description="Largest fraction of the joint's range.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if it is not open far enough, or too far."""
        share = world.joint_fraction(self.object, self.joint or "")
        if self.at_least <= share and (share <= self.at_most or self.at_most == 1.0):
            return None
        name = f"{self.object}.{self.joint}" if self.joint else self.object
        return Outcome(success=False, reason=Reason.NOT_OPEN, detail=f"{name} is open by {share:.0%}")


@register("predicate", "closed")
class Closed(Predicate):
    """A joint of the object is within 5 % of its range from closed; without a name, every joint."""

    main = "object"
    states = ("closed(object)",)
    object: JointedReference = Field(description="The object that must be closed.")
    joint: str | None = Field(None, description="Name of the joint, such as drawer_0; by default all joints.")
    within: Ratio = Field(
        SHUT, gt=0, le=1, description="Largest distance from closed, as a fraction of the joint's range."
    )

    def failure(self, world: World) -> Outcome | None:
        """Return the reason for the first open joint."""
        for joint in [self.joint] if self.joint else [part.name for part in world.model(self.object).parts]:
            share = world.joint_fraction(self.object, joint)
            if share > self.within:
                detail = f"{self.object}.{joint} is open by {share:.0%}"
                return Outcome(success=False, reason=Reason.NOT_CLOSED, detail=detail)
        return None


@register("predicate", "pressed")
class Pressed(Predicate):
    """A joint of the object has been at 90 % of its range or beyond, at any instant of the attempt."""

    main = "object"
    states = ("pressed(object)",)
    object: JointedReference = Field(description="The object that must have been pressed.")
    joint: str | None = Field(None, description="Name of the joint, such as start; by default the first.")
    at_least: Ratio = Field(PRESSED, gt=0, le=1, description="Smallest fraction of the joint's range.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if the joint was never pressed far enough."""
        share = world.largest_fraction(self.object, self.joint or "")
        if share >= self.at_least:
            return None
        detail = f"{self.object} was pressed by {share:.0%} at most"
        return Outcome(success=False, reason=Reason.NOT_MOVED, detail=detail)
