"""Follow: stay above a moving object for some time."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.execute.toolkit import Tracker, align_hand, track_object, velocity
from nimbus.datagen.plugin import Field, Metres, ObjectReference, Seconds, Skill, Workcell, register


@register("skill", "follow")
class Follow(Skill):
    """Keep the tool, pointing down, above an object that moves at a constant velocity, as on a conveyor.

    Fails with ``no_ik`` or ``no_path`` when the object moves out of reach.
    """

    main = "object"
    hand = "keeps"
    object: ObjectReference = Field(description="Object to follow.")
    time: Seconds = Field(2.0, gt=0, le=60, description="Duration.")
    height: Metres = Field(0.1, gt=0, le=0.5, description="Height of the tool above the object's top.")

    def run(self, arm: Workcell) -> None:
        """Measure the object's velocity, approach it, and stay above it."""
        arm.begin("look")
        speed = velocity(arm, self.object)
        arm.begin("approach")
        offset = self._object_T_tool(arm)
        track_object(arm, self.object, speed, offset)
        arm.begin("follow")
        tracker = Tracker(arm, self.object, speed)
        for _ in range(round(self.time * arm.simulation.rate)):
            tracker.step(offset)

    def _object_T_tool(self, arm: Workcell) -> np.ndarray:
        lower, upper = arm.bounds(self.object)
        tool = np.eye(4)
        tool[:3, :3] = align_hand(np.array([1.0, 0.0]))
        tool[:3, 3] = *(lower + upper)[:2] / 2, upper[2] + self.height
        return np.linalg.inv(arm.pose(self.object)) @ tool
