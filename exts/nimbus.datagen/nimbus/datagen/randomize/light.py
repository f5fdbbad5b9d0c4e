"""Light: direction, intensity, colour temperature and how much of it comes from everywhere."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Kelvin, Radians, Range, Ratio
from nimbus.datagen.lighting import make_light
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register

_Brightness = Annotated[Ratio, Field(ge=0, le=10)]
_Elevation = Annotated[Radians, Field(gt=0, le=math.pi / 2)]
_Temperature = Annotated[Kelvin, Field(ge=1667, le=25000)]


@register("randomizer", "light")
class LightRandomization(LayoutRandomization):
    """Direction, intensity, colour temperature and ambient share of the light."""

    part = "visual"
    azimuth: Range[Radians] = Field((-math.pi, math.pi), description="where the light stands, about the vertical")
    elevation: Range[_Elevation] = Field((0.7, 1.4), description="how high it stands")
    intensity: Range[_Brightness] = Field((0.6, 1.2), description="brightness of the direct light")
    temperature: Range[_Temperature] = Field((3200.0, 8000.0), description="colour temperature")
    ambient: Range[_Brightness] = Field((0.3, 0.6), description="light that comes from everywhere")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw each property from its own range."""
        names = ("azimuth", "elevation", "intensity", "temperature", "ambient")
        drawn = {name: float(streams(name).uniform(*getattr(self, name))) for name in names}
        draft.light = make_light(**drawn)
        return drawn
