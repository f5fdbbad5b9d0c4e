"""Depth: noise and holes of the cameras' depth pictures."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Metres, Range, Ratio
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "depth")
class DepthRandomization(LayoutRandomization):
    """Adds noise to every camera's depth, and loses some of it."""

    part = "visual"
    noise: Range[Annotated[Metres, Field(ge=0, le=0.1)]] = Field((0.0, 0.003), description="at a depth of 1 m")
    holes: Range[Annotated[Ratio, Field(ge=0, le=0.5)]] = Field((0.0, 0.03), description="share without a depth")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw both for each camera."""
        drawn: Draws = {}
        for place, camera in enumerate(draft.cameras):
            rng = streams(camera.name)
            noise, holes = float(rng.uniform(*self.noise)), float(rng.uniform(*self.holes))
            seed = int(rng.integers(2**31 - 1))
            sensor = dataclasses.replace(camera.sensor, depth_noise=noise, depth_holes=holes, depth_seed=seed)
            draft.cameras[place] = dataclasses.replace(camera, sensor=sensor)
            drawn[camera.name] = {"noise": noise, "holes": holes}
        return drawn
