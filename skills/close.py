"""Close: push a drawer, a door or a lid shut."""

from __future__ import annotations

from nimbus.datagen.execute.toolkit import JointedPart, PartManipulator
from nimbus.datagen.plugin import Field, JointedReference, Metres, Reason, Skill, SkillFailure, Workcell, register

_SHUT = 0.03
"""Fraction of a part's range up to which it counts as shut."""


@register("skill", "close")
class Close(Skill):
    """Push a drawer, a door or a lid shut with closed fingers.

    Needs an empty gripper. Presses on the outside of the part and follows its joint. Uses the handle instead if no
    point on the outside can be reached, or if the part does not shut. Fails with ``no_grasp``, ``missed_grasp``,
    ``not_moved`` or ``not_closed``.
    """

    main = "object"
    needs = ("empty_hand", "has_lid(object)")
    gives = ("closed(object)",)
    object: JointedReference = Field(description="Object with the part to close.")
    joint: str | None = Field(None, description="Name of the joint, such as drawer_1, door or lid; default: the first.")
    approach: Metres = Field(0.06, gt=0, le=0.3, description="Length of the straight approach.")

    def run(self, arm: Workcell) -> None:
        """Reach, push and retreat, or use the handle."""
        part = JointedPart(arm, self.object, self.joint or "")
        handling = PartManipulator(arm, part, approach=self.approach)
        for _ in range(2):
            try:
                handling.by_pressing(0.0, phase="push")
            except SkillFailure as failure:
                if failure.reason is not Reason.NO_GRASP or not part.model.handles:
                    raise
                break
            if part.fraction <= _SHUT:
                return
        if part.model.handles:
            handling.by_handle(0.0, phase="push", tolerance=_SHUT)
        if part.fraction > _SHUT:
            raise SkillFailure(Reason.NOT_CLOSED, f"{part.label} is still open by {part.fraction:.0%}")
