"""Sensor: exposure, blur and grain of the cameras' colour pictures."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Range, Ratio
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "sensor")
class SensorRandomization(LayoutRandomization):
    """Exposes, blurs and roughens every camera's colour pictures."""

    part = "visual"
    exposure: Range[Annotated[float, Field(ge=-4, le=4)]] = Field((-0.4, 0.4), description="stops")
    blur: Range[Annotated[float, Field(ge=0, le=10)]] = Field((0.0, 0.6), description="of a Gaussian [px]")
    grain: Range[Annotated[Ratio, Field(ge=0, le=0.5)]] = Field((0.0, 0.015), description="noise, share of full scale")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw each property for each camera."""
        drawn: Draws = {}
        for place, camera in enumerate(draft.cameras):
            rng = streams(camera.name)
            values = {name: float(rng.uniform(*getattr(self, name))) for name in ("exposure", "blur", "grain")}
            seed = int(rng.integers(2**31 - 1))
            draft.cameras[place] = dataclasses.replace(
                camera, sensor=dataclasses.replace(camera.sensor, seed=seed, **values)
            )
            drawn[camera.name] = values
        return drawn
