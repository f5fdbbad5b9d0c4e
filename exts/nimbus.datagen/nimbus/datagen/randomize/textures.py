"""Textures: what things, or whole surfaces, are covered with; procedural ones, or pictures from a folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.quantities import Ratio
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register

_ROOM = ("table", "floor", "backdrop")
_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"})


@register("randomizer", "textures")
class TexturesRandomization(LayoutRandomization):
    """Covers things and surfaces with other textures; the tint of ``materials`` stays over them.

    A thing whose name tells its colour, such as a red cube, no longer looks as it is called: leave ``objects`` out.
    """

    part = "visual"
    on: tuple[Literal["objects", "fixtures", "table", "floor", "backdrop"], ...] = Field(
        ("objects", "fixtures"), min_length=1, description="what may be covered"
    )
    share: Annotated[Ratio, Field(ge=0, le=1)] = Field(0.5, description="how much of it is")
    folder: str = Field("", description="folder of pictures, seen from the task's; left out: procedural textures")

    def seen_from(self, folder: Path) -> Self:
        """The same with its folder seen from the working directory."""
        return self.model_copy(
            update={"folder": resolve_from(folder, f"{self.folder.rstrip('/')}/")} if self.folder else {}
        )

    def complaint(self, regions: Collection[str], libraries: Mapping[str, Any]) -> tuple[str, str, str] | None:
        """A folder that is not there or empty, or the first picture that cannot be read."""
        if not self.folder:
            return None
        try:
            if not _pictures(self.folder):
                return "folder", f"no picture in '{self.folder}'", f"known: {', '.join(sorted(_SUFFIXES))}"
        except InputError as error:
            what = f"{error.where}: {error.what}" if error.where else error.what
            return "folder", what, error.instead or "mend the file or take it away"
        return None

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw for each thing whether it is covered, and with what."""
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
    """Absolute path and hash of each picture of a folder, by name; every one is read once.

    Raises:
        InputError: No such folder, or a picture that cannot be read.
    """
    from nimbus.datagen.textures.procedural import picture_hash, read_picture

    try:
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in _SUFFIXES)
    except OSError as error:
        instead = "name a folder of pictures that is there, seen from the task's"
        raise InputError((error.strerror or str(error)).lower(), where=folder, instead=instead) from None
    found = tuple((str(path.absolute()), picture_hash(path)) for path in paths)
    for path, content in found:
        read_picture(Path(path), content)
    return found
