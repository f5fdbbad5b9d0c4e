"""Robot base: where the robot was bolted down."""

from __future__ import annotations

import dataclasses
import math

from pydantic import Field

from nimbus.datagen.files.quantities import Metres, Radians
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "robot_base")
class RobotBaseRandomization(LayoutRandomization):
    """Stands the robot a little elsewhere, higher or lower than the table, and turned."""

    part = "physical"
    position: Metres = Field(0.01, ge=0, le=0.3, description="largest shift along x and y, either way")
    height: Metres = Field(
        0.01, ge=0, le=0.3, description="largest rise, or lowering of the table; never sinks into it"
    )
    yaw: Radians = Field(math.radians(1), ge=0, le=math.pi, description="largest turn about the vertical, either way")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a shift, a rise and a turn."""
        x, y = (float(value) for value in self.position * streams("position").uniform(-1, 1, 2))
        z, yaw = float(streams("height").uniform(0, self.height)), float(streams("yaw").uniform(-self.yaw, self.yaw))
        draft.robot = dataclasses.replace(draft.robot, offset=(x, y, z), yaw=yaw)
        return {"x": x, "y": y, "height": z, "yaw": yaw}
