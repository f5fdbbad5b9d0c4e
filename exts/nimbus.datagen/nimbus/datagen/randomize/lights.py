"""Lights: how many there are beside the one of ``light``, and where each stands."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Kelvin, Radians, Range, Ratio
from nimbus.datagen.lighting import make_lamp
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register

_PROPERTIES = ("azimuth", "elevation", "intensity", "temperature")


@register("randomizer", "lights")
class LightsRandomization(LayoutRandomization):
    """Adds lights: lamps and windows from other sides, which fill the shadows of the first one."""

    part = "visual"
    count: Range[Annotated[int, Field(ge=0, le=8)]] = Field((0, 2), description="how many are added")
    azimuth: Range[Radians] = Field((-math.pi, math.pi), description="where each stands, about the vertical")
    elevation: Range[Annotated[Radians, Field(gt=0, le=math.pi / 2)]] = Field(
        (0.4, 1.3), description="how high each stands"
    )
    intensity: Range[Annotated[Ratio, Field(ge=0, le=10)]] = Field((0.1, 0.5), description="brightness of each")
    temperature: Range[Annotated[Kelvin, Field(ge=1667, le=25000)]] = Field(
        (2700.0, 9000.0), description="colour temperature of each"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw how many, and each property of each from its own range."""
        low, high = self.count
        count = int(streams("count").integers(low, high + 1))
        lamps = {
            f"lamp_{place}": {
                name: float(streams(str(place), name).uniform(*getattr(self, name))) for name in _PROPERTIES
            }
            for place in range(count)
        }
        made = tuple(make_lamp(**values) for values in lamps.values())
        draft.light = dataclasses.replace(draft.light, lamps=made)
        return {"count": count, **lamps}
