"""Materials: what the table, floor and backdrop are made of, and the tint of things."""

from __future__ import annotations

import colorsys
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.errors import suggest
from nimbus.datagen.files.quantities import Ratio
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register

TABLE = ("wood", "laminate", "concrete", "fabric", "marble", "paint")
FLOOR = ("tiles", "wood", "concrete", "paint")
BACKDROP = ("paint", "plaster", "concrete", "tiles")


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    from nimbus.datagen.textures.procedural import texture_names

    for name in names:
        if name not in texture_names():
            context = {"name": name, "instead": suggest(name, texture_names())}
            raise PydanticCustomError("texture", "unknown texture '{name}'", context)
    return names


Textures = Annotated[tuple[str, ...], AfterValidator(_known)]


@register("randomizer", "materials")
class MaterialRandomization(LayoutRandomization):
    """Procedural textures for table, floor and backdrop, and a tint for objects and fixtures."""

    part = "visual"
    table: Textures = Field(TABLE, min_length=1, description="procedural textures to choose from")
    floor: Textures = Field(FLOOR, min_length=1, description="procedural textures to choose from")
    backdrop: Textures = Field(BACKDROP, min_length=1, description="procedural textures to choose from")
    tint: Ratio = Field(0.25, ge=0, le=1, description="how far objects' and fixtures' colours stray, 0 to 1")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a texture and a tint for each surface, a tint for each thing."""
        for name in draft.surfaces:
            rng = streams(name)
            choices = getattr(self, name, None)
            texture = str(rng.choice(choices)) if choices else ""
            seed = int(rng.integers(2**31 - 1)) if choices else 0
            draft.surfaces[name] = SurfaceLook(color=_tint(rng, self.tint), texture=texture, texture_seed=seed)
        return {
            name: {"color": list(surface.color), "texture": surface.texture, "texture_seed": surface.texture_seed}
            for name, surface in draft.surfaces.items()
        }


def _tint(rng: np.random.Generator, strength: float) -> tuple[float, float, float]:
    hue, saturation, darkening = rng.uniform(size=3)
    return colorsys.hsv_to_rgb(hue, strength * saturation, 1.0 - 0.5 * strength * darkening)
