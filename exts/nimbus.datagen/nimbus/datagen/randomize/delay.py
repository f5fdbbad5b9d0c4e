"""Delay: how late the motors hear of a command."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Range, Seconds
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "delay")
class DelayRandomization(LayoutRandomization):
    """Lets some time pass between a command and its effect."""

    part = "physical"
    action: Range[Annotated[Seconds, Field(ge=0, le=0.5)]] = Field((0.0, 0.02), description="from command to motor")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw the delay of the episode."""
        delay = float(streams("action").uniform(*self.action))
        draft.robot = dataclasses.replace(draft.robot, delay=delay)
        return {"action": delay}
