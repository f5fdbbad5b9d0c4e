"""Friction of objects, about what their material makes likely."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Range, Ratio
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "friction")
class FrictionRandomization(LayoutRandomization):
    """Multiplies the sliding friction of each object."""

    part = "physical"
    factor: Range[Annotated[Ratio, Field(ge=0.01, le=10)]] = Field((0.85, 1.2), description="range of the factor")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a factor for each object."""
        factors = {item.name: float(streams(item.name).uniform(*self.factor)) for item in draft.objects}
        draft.objects = [
            dataclasses.replace(item, friction=item.friction * factors[item.name]) for item in draft.objects
        ]
        return {name: {"factor": factor} for name, factor in factors.items()}
