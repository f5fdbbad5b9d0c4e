"""Gains: how stiff and how damped the arms' controllers are."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Range, Ratio
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register

_Factor = Annotated[Ratio, Field(ge=0.2, le=5)]


@register("randomizer", "gains")
class GainRandomization(LayoutRandomization):
    """Multiplies the arms' position and velocity gains; what the controller takes them for stays."""

    part = "physical"
    stiffness: Range[_Factor] = Field((0.9, 1.1), description="range of the factor of the position gains")
    damping: Range[_Factor] = Field((0.9, 1.1), description="range of the factor of the velocity gains")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw both factors."""
        drawn = {name: float(streams(name).uniform(*getattr(self, name))) for name in ("stiffness", "damping")}
        draft.robot = dataclasses.replace(draft.robot, **drawn)
        return drawn
