"""Latency: how old a picture is when it is taken for the present one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Range, Seconds
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "latency")
class LatencyRandomization(LayoutRandomization):
    """Lets all cameras show what was a moment ago, as exposure, transfer and decoding do."""

    part = "visual"
    cameras: Range[Annotated[Seconds, Field(ge=0, le=0.5)]] = Field((0.0, 0.05), description="age of every picture")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw the age of the episode's pictures."""
        draft.latency = float(streams("cameras").uniform(*self.cameras))
        return {"cameras": draft.latency}
