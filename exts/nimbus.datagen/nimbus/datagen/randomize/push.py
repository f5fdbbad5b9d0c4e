"""Randomizer of disturbances: a push on an object or an arm while the robot works."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from nimbus.datagen.episode.layout import Disturbance, PlacedObject
from nimbus.datagen.plugin import Field, Range, Ratio, Seconds, Streams, register
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization
from nimbus.datagen.randomize.distractors import GROUP


@register("randomizer", "push")
class PushRandomization(LayoutRandomization):
    """One push per episode: on an object, possibly out of the hand that holds it, or on the hand of an arm."""

    part = "physical"
    share: Ratio = Field(1.0, ge=0, le=1, description="fraction of the episodes that have a push")
    of: Annotated[tuple[Literal["object", "arm"], ...], Field(min_length=1)] = Field(
        ("object", "arm"), description="targets to choose from"
    )
    time: Range[Annotated[Seconds, Field(ge=0, le=600)]] = Field((0.5, 3.0), description="time of the push")
    duration: Range[Annotated[Seconds, Field(ge=0.01, le=1)]] = Field((0.1, 0.2), description="duration of the push")
    speed: Range[Annotated[float, Field(ge=0, le=5)]] = Field((0.2, 0.6), description="speed given to an object [m/s]")
    force: Range[Annotated[float, Field(ge=0, le=500)]] = Field((70.0, 110.0), description="force on an arm's hand [N]")
    unnoticed: Range[Annotated[Seconds, Field(ge=0, le=10)]] = Field(
        (0.1, 0.7), description="time from the push until the demonstrator observes again"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw whether there is a push, and its target, time, direction and strength."""
        if streams("share").random() >= self.share:
            return {"of": "nothing"}
        free = [item for item in draft.objects if not item.anchored and item.group != GROUP]
        kinds = [kind for kind in self.of if kind == "arm" or free] or ["arm"]
        kind = str(streams("of").choice(kinds))
        azimuth = float(streams("azimuth").uniform(-math.pi, math.pi))
        moments = {
            name: float(streams(name).uniform(*getattr(self, name))) for name in ("time", "duration", "unnoticed")
        }
        if kind == "object":
            item: PlacedObject = free[int(streams("object").integers(len(free)))]
            strength = {"speed": float(streams("speed").uniform(*self.speed))}
            # A constant force m v / t gives an object the drawn speed, independent of its mass.
            body, size = item.name, item.mass * strength["speed"] / moments["duration"]
        else:
            strength = {"force": float(streams("force").uniform(*self.force))}
            body, size = str(streams("arm").choice(draft.hands)), strength["force"]
        draft.disturbance = Disturbance(
            body=body,
            force=(size * math.cos(azimuth), size * math.sin(azimuth), 0.0),
            is_slippery=kind == "object",
            **moments,
        )
        return {"of": body, "azimuth": azimuth} | moments | strength
