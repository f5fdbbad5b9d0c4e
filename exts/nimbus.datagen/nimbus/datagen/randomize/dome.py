"""Dome: the sky from a picture of one's own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field

from nimbus.datagen.episode.layout import Dome, Vector
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.quantities import Radians, Range, Ratio
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register
from nimbus.datagen.textures.environment_map import hemispheres, read_radiance

_Brightness = Annotated[Ratio, Field(ge=0, le=10)]


@register("randomizer", "dome")
class DomeRandomization(LayoutRandomization):
    """Lights the scene with a picture of a sky or a room; the default renderer takes its mean colours.

    The direct light is that of ``light``, as without a dome.
    """

    part = "visual"
    textures: tuple[str, ...] = Field(min_length=1, description="pictures (.hdr), by paths from the task's folder")
    intensity: Range[_Brightness] = Field((1.0, 1.0), description="brightness of the picture")
    turn: Range[Radians] = Field((-math.pi, math.pi), description="about the vertical")

    def seen_from(self, folder: Path) -> Self:
        """The same with the pictures' paths seen from the working directory."""
        return self.model_copy(update={"textures": tuple(resolve_from(folder, name) for name in self.textures)})

    def complaint(self, regions: Collection[str], libraries: Mapping[str, Any]) -> tuple[str, str, str] | None:
        """A picture that cannot be read."""
        for texture in self.textures:
            try:
                _picture(texture)
            except InputError as error:
                return "textures", f"{texture}: {error.what}", error.instead or "name a picture that is there"
        return None

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a picture, how bright it is and how it is turned."""
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
    """Hash of a picture's file, and its mean light from above and from below."""
    above, below = hemispheres(read_radiance(Path(texture)))
    digest = hashlib.sha256(Path(texture).read_bytes()).hexdigest()[:16]
    return digest, _times(above, 1.0), _times(below, 1.0)


def _times(color: Any, factor: float) -> Vector:
    x, y, z = (float(value) for value in np.asarray(color) * factor)
    return x, y, z
