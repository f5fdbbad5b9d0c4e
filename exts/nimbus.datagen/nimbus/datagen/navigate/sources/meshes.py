"""Mesh files as a source of scenes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read.limited import open_limited
from nimbus.datagen.navigate.scene_source import SceneSource
from nimbus.datagen.navigate.sources.files import file_hashes, find_files, further_hashes, seen_from
from nimbus.datagen.registry import register

UpAxis = Literal["auto", "x", "y", "z", "-x", "-y", "-z"]
"""Up axis of a file; ``auto`` to detect it."""


@register("scene", "meshes")
class MeshSource(SceneSource):
    """Third-party scenes in files: GLB, PLY, USD, HSSD scene instances, 3D-FRONT JSON."""

    file_kind = "mesh"
    meshes: str | Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Files or patterns such as scans/*.glb, relative to the task file."
    )
    light: Literal["auto", "textures", "baked"] = Field(
        "auto",
        description="Light of the images: that of the textures, as in scans, or baked; by default chosen by format.",
    )
    up: UpAxis = Field("auto", description="Up axis of the files; by default chosen by the format and the level area.")

    @property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the files."""
        return find_files((self.meshes,) if isinstance(self.meshes, str) else self.meshes)

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self.paths)

    def open(self, number: int) -> NavigationScene:
        """Read the scene with the given number."""
        scene = open_limited(self.paths[number], self.up)
        return scene if self.light == "auto" else replace(scene, is_lit=self.light == "textures")

    def fingerprint(self) -> dict[str, str]:
        """Return the hash of each file, and of the other files that its scene consists of."""
        return file_hashes(self.file_kind, self.paths) | further_hashes(self.paths)

    def seen_from(self, folder: Path) -> Self:
        """Return a copy whose paths are relative to the working directory."""
        patterns = (self.meshes,) if isinstance(self.meshes, str) else self.meshes
        return self.model_copy(update={"meshes": tuple(seen_from(folder, pattern) for pattern in patterns)})
