"""Randomizer of the scene: a generated room around the bench for every episode."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.plugin import AfterValidator, Field, PydanticCustomError, Streams, register
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization
from nimbus.datagen.rooms.room import ROOM_VERSION
from nimbus.datagen.rooms.settings import FAMILIES, Family


def _distinct(families: tuple[Family, ...]) -> tuple[Family, ...]:
    if len({*families}) < len(families):
        raise PydanticCustomError("twice", "a family is listed twice", {"instead": "list each family once"})
    return families


@register("randomizer", "scene")
class SceneRandomization(LayoutRandomization):
    """Generated room around the bench with everything on it; robot, fixtures and regions stay.

    Rooms and looks come from pools, so that each is built once and then read from the cache.
    """

    version = ROOM_VERSION
    part = "physical"
    families: Annotated[tuple[Family, ...], AfterValidator(_distinct)] = Field(
        FAMILIES, min_length=1, description="families to choose from"
    )
    rooms: int = Field(20, ge=1, le=100_000, description="number of rooms of each family")
    looks: int = Field(5, ge=1, le=100_000, description="number of looks of each room")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw family, seed and look of the room; renderer and simulator open the room from the layout."""
        family = self.families[int(streams("family").integers(len(self.families)))]
        seed, look = int(streams("seed").integers(self.rooms)), int(streams("look").integers(self.looks))
        return {"family": family, "seed": seed, "look": look}
