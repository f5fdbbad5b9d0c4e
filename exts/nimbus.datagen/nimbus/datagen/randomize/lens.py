"""Lens: how far the cameras' pictures are bent."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

from pydantic import Field

from nimbus.datagen.files.quantities import Range
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register

_Bend = Annotated[float, Field(ge=-0.12, le=0.3)]


@register("randomizer", "lens")
class LensRandomization(LayoutRandomization):
    """Bends every camera's picture and labels: a barrel below 0, a cushion above."""

    part = "visual"
    bend: Range[_Bend] = Field((-0.06, 0.02), description="shift of the picture's corners, a share of their distance")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a bend for each camera; k1 follows from where its corners are."""
        drawn: Draws = {}
        for place, camera in enumerate(draft.cameras):
            bend = float(streams(camera.name).uniform(*self.bend))
            tangent = math.tan(0.5 * camera.vertical_fov)
            corner = tangent * math.hypot(1.0, camera.width / camera.height)
            draft.cameras[place] = dataclasses.replace(camera, distortion=(bend / corner**2, 0.0))
            drawn[camera.name] = {"bend": bend}
        return drawn
