"""Randomizers of light: the sun, additional lamps, and an environment map as the sky."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np

from nimbus.datagen.episode.layout import Dome, Vector
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.plugin import Field, InputError, Kelvin, Radians, Range, Ratio, Streams, register
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization, make_lamp, make_light
from nimbus.datagen.textures.environment_map import hash_map, hemispheres, read_radiance

_Brightness = Annotated[Ratio, Field(ge=0, le=10)]
_Elevation = Annotated[Radians, Field(gt=0, le=math.pi / 2)]
_Temperature = Annotated[Kelvin, Field(ge=1667, le=25000)]
_PROPERTIES = ("azimuth", "elevation", "intensity", "temperature")


@register("randomizer", "light")
class LightRandomization(LayoutRandomization):
    """Direction, intensity, color temperature and ambient fraction of the light."""

    part = "visual"
    azimuth: Range[Radians] = Field((-math.pi, math.pi), description="direction of the light, about the vertical")
    elevation: Range[_Elevation] = Field((0.7, 1.4), description="height of the light above the horizon")
    intensity: Range[_Brightness] = Field((0.6, 1.2), description="brightness of the direct light")
    temperature: Range[_Temperature] = Field((3200.0, 8000.0), description="color temperature")
    ambient: Range[_Brightness] = Field((0.3, 0.6), description="fraction of the light that comes from all directions")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw each property from its own range."""
        names = ("azimuth", "elevation", "intensity", "temperature", "ambient")
        drawn = {name: float(streams(name).uniform(*getattr(self, name))) for name in names}
        draft.light = make_light(**drawn)
        return drawn


@register("randomizer", "lights")
class LightsRandomization(LayoutRandomization):
    """Additional lamps and windows in other directions, which fill the shadows of the first light."""

    part = "visual"
    count: Range[Annotated[int, Field(ge=0, le=8)]] = Field((0, 2), description="number of added lights")
    azimuth: Range[Radians] = Field((-math.pi, math.pi), description="direction of each light, about the vertical")
    elevation: Range[Annotated[Radians, Field(gt=0, le=math.pi / 2)]] = Field(
        (0.4, 1.3), description="height of each light above the horizon"
    )
    intensity: Range[Annotated[Ratio, Field(ge=0, le=10)]] = Field((0.1, 0.5), description="brightness of each light")
    temperature: Range[Annotated[Kelvin, Field(ge=1667, le=25000)]] = Field(
        (2700.0, 9000.0), description="color temperature of each light"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a number of lights, and each property of each light from its own range."""
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


@register("randomizer", "dome")
class DomeRandomization(LayoutRandomization):
    """Environment map that lights the scene; the default renderer uses its mean colors.

    The direct light is that of ``light``, as without an environment map.
    """

    part = "visual"
    textures: tuple[str, ...] = Field(min_length=1, description="images (.hdr), relative to the task's folder")
    intensity: Range[_Brightness] = Field((1.0, 1.0), description="factor on the image's brightness")
    turn: Range[Radians] = Field((-math.pi, math.pi), description="rotation about the vertical")

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with the images' paths relative to the working directory."""
        return self.model_copy(update={"textures": tuple(str(folder / name) for name in self.textures)})

    def complaint(
        self, regions: Collection[str], libraries: Mapping[str, ObjectLibrary]
    ) -> tuple[str, str, str] | None:
        """Report an image that cannot be read."""
        for texture in self.textures:
            try:
                _picture(texture)
            except InputError as error:
                return "textures", f"{texture}: {error.what}", error.instead or "give an existing image"
        return None

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw an image, its brightness and its rotation."""
        texture = str(streams("texture").choice(self.textures))
        intensity, turn = (float(streams(name).uniform(*getattr(self, name))) for name in ("intensity", "turn"))
        digest, above, below = _picture(texture)
        draft.dome = Dome(
            texture=str(Path(texture).absolute()),
            content=digest,
            intensity=intensity,
            turn=turn,
            sky=_times(above, intensity),
            ground=_times(below, intensity),
        )
        return {"texture": texture, "content": digest, "intensity": intensity, "turn": turn}


@lru_cache(maxsize=64)
def _picture(texture: str) -> tuple[str, Vector, Vector]:
    """Return the hash of an image file, and its mean light from above and from below."""
    above, below = hemispheres(read_radiance(Path(texture)))
    digest = hash_map(Path(texture).read_bytes())
    return digest, _times(above, 1.0), _times(below, 1.0)


def _times(color: Any, factor: float) -> Vector:
    x, y, z = (float(value) for value in np.asarray(color) * factor)
    return x, y, z
