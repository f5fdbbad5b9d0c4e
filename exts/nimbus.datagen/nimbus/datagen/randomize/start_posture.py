"""Start posture: where the arms are when an episode begins."""

from __future__ import annotations

import dataclasses
import math

from pydantic import Field

from nimbus.datagen.files.quantities import Radians
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "start_posture")
class StartPostureRandomization(LayoutRandomization):
    """Starts every arm a little away from its home posture."""

    part = "physical"
    joints: Radians = Field(math.radians(5), ge=0, le=1, description="largest distance of each joint, either way")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a distance for each joint of the arms."""
        start = {name: float(streams(name).uniform(-self.joints, self.joints)) for name in draft.joints}
        draft.robot = dataclasses.replace(draft.robot, start=start)
        return dict(start)
