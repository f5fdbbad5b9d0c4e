"""Randomizers of appearance: materials, textures, and the height of the table in the room."""

from __future__ import annotations

import colorsys
import dataclasses
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.files.asset_folders import check_all_below
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.plugin import (
    AfterValidator,
    Field,
    InputError,
    Metres,
    PydanticCustomError,
    Ratio,
    Streams,
    register,
    suggest,
)
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization

TABLE = ("wood", "laminate", "concrete", "fabric", "marble", "paint")
FLOOR = ("tiles", "wood", "concrete", "paint")
BACKDROP = ("paint", "plaster", "concrete", "tiles")
_ROOM = ("table", "floor", "backdrop")
_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"})


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
    tint: Ratio = Field(0.25, ge=0, le=1, description="strength of the tint of objects and fixtures, 0 to 1")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a texture and a tint for each surface, and a tint for each object and fixture."""
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


@register("randomizer", "textures")
class TexturesRandomization(LayoutRandomization):
    """Other textures for objects and surfaces; the tint of ``materials`` is applied on top.

    An object with a color in its name, such as a red cube, would no longer match its name; leave out ``objects`` in
    that case.
    """

    part = "visual"
    on: tuple[Literal["objects", "fixtures", "table", "floor", "backdrop"], ...] = Field(
        ("objects", "fixtures"), min_length=1, description="parts that may be covered"
    )
    share: Annotated[Ratio, Field(ge=0, le=1)] = Field(0.5, description="fraction of the parts that are covered")
    folder: str = Field("", description="folder of images, relative to the task's; by default procedural")

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with the folder relative to the working directory."""
        return self.model_copy(
            update={"folder": resolve_from(folder, f"{self.folder.rstrip('/')}/")} if self.folder else {}
        )

    def complaint(
        self, regions: Collection[str], libraries: Mapping[str, ObjectLibrary]
    ) -> tuple[str, str, str] | None:
        """Report a folder that is missing or empty, or the first image that cannot be read."""
        if not self.folder:
            return None
        try:
            if not _pictures(self.folder):
                return "folder", f"there is no image in '{self.folder}'", f"known: {', '.join(sorted(_SUFFIXES))}"
        except InputError as error:
            what = f"{error.where}: {error.what}" if error.where else error.what
            return "folder", what, error.instead or "repair the file or remove it"
        return None

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a texture, or none, for each part."""
        objects = {item.name for item in draft.objects}
        drawn: Draws = {}
        for name, surface in draft.surfaces.items():
            sort = name if name in _ROOM else "objects" if name in objects else "fixtures"
            if sort not in self.on:
                continue
            rng = streams(name)
            covered = bool(rng.uniform() < self.share)
            chosen = self._choose(surface, rng)
            if covered:
                draft.surfaces[name] = chosen
            drawn[name] = {"texture": (Path(chosen.picture).name or chosen.texture) if covered else "own"}
        return drawn

    def _choose(self, surface: SurfaceLook, rng: np.random.Generator) -> SurfaceLook:
        from nimbus.datagen.textures.procedural import texture_names

        if not self.folder:
            name, seed = str(rng.choice(texture_names())), int(rng.integers(2**31 - 1))
            return dataclasses.replace(surface, texture=name, texture_seed=seed)
        pictures = _pictures(self.folder)
        path, content = pictures[int(rng.integers(len(pictures)))]
        return dataclasses.replace(surface, texture="", texture_seed=0, picture=path, picture_hash=content)


@lru_cache(maxsize=16)
def _pictures(folder: str) -> tuple[tuple[str, str], ...]:
    """Return the absolute path and the hash of each image in a folder, sorted by name; every image is read once.

    Raises:
        InputError: The folder is missing, or an image cannot be read.
    """
    from nimbus.datagen.textures.procedural import picture_hash, read_picture

    try:
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in _SUFFIXES)
    except OSError as error:
        instead = "name an existing folder of images, relative to the task file"
        raise InputError((error.strerror or str(error)).lower(), where=folder, instead=instead) from None
    check_all_below(paths, Path(folder))
    found = tuple((str(path.absolute()), picture_hash(path)) for path in paths)
    for path, content in found:
        read_picture(Path(path), content)
    return found


@register("randomizer", "table_height")
class TableHeightRandomization(LayoutRandomization):
    """Height of the table relative to the floor and the cameras of the room.

    The robot is bolted to the table; its height above the table top is ``height`` of ``robot_base``.
    """

    part = "visual"
    height: Metres = Field(0.03, ge=0, le=0.3, description="largest rise or lowering")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a rise of the table; the room is lowered by it relative to the table top."""
        rise = float(streams("height").uniform(-self.height, self.height))
        draft.table_rise = rise
        for place, camera in enumerate(draft.cameras):
            if not camera.mount:
                x, y, z = camera.position
                draft.cameras[place] = dataclasses.replace(camera, position=(x, y, z - rise))
        return {"height": rise}
