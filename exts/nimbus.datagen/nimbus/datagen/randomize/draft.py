"""A layout in the making: nominal values first, then each randomizer changes its own part."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from nimbus.datagen.layout import Camera, Light, PlacedObject, Surface
from nimbus.datagen.lighting import nominal_light
from nimbus.datagen.skill import Randomization
from nimbus.datagen.streams import Streams

Draws: TypeAlias = dict[str, Any]


@dataclass
class Draft:
    """What randomizers change; plain layout values."""

    objects: list[PlacedObject] = field(default_factory=list)
    light: Light = field(default_factory=nominal_light)
    cameras: list[Camera] = field(default_factory=list)
    surfaces: dict[str, Surface] = field(default_factory=dict)


class LayoutRandomization(Randomization):
    """A randomizer of one kind: registered as ``randomizer`` under the name that task files use."""

    part: ClassVar[Literal["physical", "visual"]]

    @abstractmethod
    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Change the draft and return every value drawn, as plain JSON values."""
