"""Randomizers of navigation: height and tilt of cameras on a body, and the lamps of rooms."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

from nimbus.datagen.plugin import (
    Field,
    Kelvin,
    Metres,
    Radians,
    Range,
    Ratio,
    Streams,
    quat_from_axis_angle,
    quat_multiply,
    register,
)
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization, make_lamp, make_light

_SOURCES = 4
"""Number of groups of lamps that vary independently."""


@register("randomizer", "rig")
class RigRandomization(LayoutRandomization):
    """Height and tilt of every camera on a body or in the world."""

    part = "visual"
    height: Range[Annotated[Metres, Field(gt=0, le=2.4)]] = Field(
        (0.6, 1.4), description="height of the cameras above the floor"
    )
    tilt: Range[Annotated[Radians, Field(ge=-1.5, le=1.5)]] = Field(
        (-0.1, 0.35), description="tilt downward, in addition to the tilt in the task"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a height and a tilt for each of these cameras."""
        drawn: Draws = {}
        for place, camera in enumerate(draft.cameras):
            if camera.mount not in ("", "base"):
                continue
            rng = streams(camera.name)
            height, tilt = float(rng.uniform(*self.height)), float(rng.uniform(*self.tilt))
            turn = quat_from_axis_angle((1.0, 0.0, 0.0), -tilt)
            x, y, _ = camera.position
            draft.cameras[place] = dataclasses.replace(
                camera, position=(x, y, height), wxyz=quat_multiply(camera.wxyz, turn)
            )
            drawn[camera.name] = {"height": height, "tilt": tilt}
        return drawn


@register("randomizer", "lamps")
class LampsRandomization(LayoutRandomization):
    """Brightness and color of a scene's lamps by group, and of the daylight outside its windows."""

    part = "visual"
    brightness: Range[Annotated[Ratio, Field(ge=0, le=10)]] = Field(
        (0.5, 1.2), description="factor on the brightness of each group of lamps"
    )
    temperature: Range[Annotated[Kelvin, Field(ge=1667, le=25000)]] = Field(
        (2700.0, 6500.0), description="color temperature of each group"
    )
    day: Range[Annotated[Ratio, Field(ge=0, le=10)]] = Field(
        (0.1, 0.8), description="factor on the daylight through windows"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw brightness and temperature of each group, and the brightness of the day."""
        drawn: Draws = {"day": float(streams("day").uniform(*self.day))}
        draft.light = make_light(
            azimuth=0.0, elevation=math.pi / 2, intensity=1.0, temperature=6500.0, ambient=drawn["day"]
        )
        lamps = []
        for group in range(_SOURCES):
            rng = streams(str(group))
            values = {name: float(rng.uniform(*getattr(self, name))) for name in ("brightness", "temperature")}
            lamps.append(
                make_lamp(
                    azimuth=0.0,
                    elevation=math.pi / 2,
                    intensity=values["brightness"],
                    temperature=values["temperature"],
                )
            )
            drawn[f"lamps_{group}"] = values
        draft.light = dataclasses.replace(draft.light, lamps=tuple(lamps))
        return drawn
