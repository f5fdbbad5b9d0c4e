"""Mass of objects, about what their size and material make likely."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Range, Ratio
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "mass")
class MassRandomization(LayoutRandomization):
    """Multiplies each object's mass, and its inertia with it."""

    part = "physical"
    factor: Range[Annotated[Ratio, Field(ge=0.01, le=10)]] = Field((0.8, 1.25), description="range of the factor")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a factor for each object."""
        factors = {item.name: float(streams(item.name).uniform(*self.factor)) for item in draft.objects}
        draft.objects = [dataclasses.replace(item, mass=item.mass * factors[item.name]) for item in draft.objects]
        return {name: {"factor": factor} for name, factor in factors.items()}
