"""Damping: how stiff doors, drawers, knobs and lids go."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Range, Ratio
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "damping")
class DampingRandomization(LayoutRandomization):
    """Scales damping and dry friction in the joints of every object that has moving parts."""

    part = "physical"
    factor: Range[Annotated[Ratio, Field(gt=0, le=20)]] = Field((0.7, 1.4), description="times the object's own")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a factor for each object."""
        drawn: Draws = {}
        for place, item in enumerate(draft.objects):
            factor = float(streams(item.name).uniform(*self.factor))
            draft.objects[place] = dataclasses.replace(item, damping=factor)
            drawn[item.name] = {"factor": factor}
        return drawn
