"""Hold: keep an object still while other arms work."""

from __future__ import annotations

from nimbus.datagen.plugin import Field, ObjectReference, Reason, Seconds, Skill, SkillFailure, Workcell, register


@register("skill", "hold")
class Hold(Skill):
    """Hold the object still for a given time, or until the other arms of a ``parallel`` statement have finished.

    Needs the object in the gripper. Fails with ``slipped_in_transit`` when the hand loses the object.
    """

    main = "object"
    needs = ("held(object)",)
    object: ObjectReference = Field(description="Object in the gripper.")
    time: Seconds | None = Field(None, gt=0, le=600, description="Duration; default: until the other arms finish.")

    def run(self, arm: Workcell) -> None:
        """Wait, and check that the object is still in the hand."""
        arm.begin("hold")
        periods = None if self.time is None else round(self.time * arm.simulation.rate)
        while periods is None or periods > 0:
            if periods is None and not arm.others_work:
                return
            arm.command()
            if not arm.is_gripping(self.object):
                raise SkillFailure(Reason.SLIPPED_IN_TRANSIT, f"{self.object} slipped out of the fingers")
            periods = None if periods is None else periods - 1
