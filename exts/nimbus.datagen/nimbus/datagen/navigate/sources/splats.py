"""Splat files as a source of scenes; the proxy of each is given as a mesh or derived from the splats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field

from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.navigate.read.limited import read_limited_splats
from nimbus.datagen.navigate.sources.files import file_hashes, further_hashes, seen_from
from nimbus.datagen.navigate.sources.meshes import UpAxis
from nimbus.datagen.navigate.splat_source import PlacedSplats, SplatSource
from nimbus.datagen.registry import register

PROXY_VERSION = 1
"""Version of derived proxies; raise it when equal splats give a different proxy."""


class SplatFileSettings(StrictModel):
    """Settings of one splat file."""

    splat: str = Field(description="PLY, compressed PLY or SPZ file, relative to the task file.")
    proxy: str | None = Field(
        None, description="Mesh of the same scene, aligned with the world; by default derived from the splats."
    )
    up: UpAxis = Field("auto", description="Up axis of the splats; by default y for SPZ and -y for PLY.")
    proxy_up: UpAxis = Field("auto", description="Up axis of the proxy.")
    scale: Annotated[float, Field(gt=0, le=1000)] = Field(1.0, description="Length of one unit of the splats [m].")


@register("scene", "splats")
class SplatFileSource(SplatSource):
    """Captured scenes in splat files."""

    file_kind = "splats"
    splats: Annotated[tuple[SplatFileSettings, ...], Field(min_length=1, max_length=1000)] = Field(
        description="Splat files with their settings."
    )

    @property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the splats and of their proxies."""
        return tuple(Path(name) for one in self.splats for name in (one.splat, one.proxy) if name)

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self.splats)

    def read(self, number: int) -> PlacedSplats:
        """Read the splats with the given number, and read or derive their proxy."""
        one = self.splats[number]
        proxy = Path(one.proxy) if one.proxy else None
        found = read_limited_splats(Path(one.splat), proxy=proxy, up=one.up, scale=one.scale, proxy_up=one.proxy_up)
        return PlacedSplats(
            scene=found.scene, cloud=found.cloud, world_T_cloud=found.world_T_cloud, has_mesh=proxy is not None
        )

    def fingerprint(self) -> dict[str, str]:
        """Return the hash of each file, also of those that a proxy consists of, and the version of derived proxies."""
        further = further_hashes([Path(one.proxy) for one in self.splats if one.proxy])
        return {"proxy": str(PROXY_VERSION)} | file_hashes(self.file_kind, self.paths) | further

    def seen_from(self, folder: Path) -> Self:
        """Return a copy whose paths are relative to the working directory."""
        moved = tuple(
            one.model_copy(
                update={
                    "splat": seen_from(folder, one.splat),
                    "proxy": seen_from(folder, one.proxy) if one.proxy else None,
                }
            )
            for one in self.splats
        )
        return self.model_copy(update={"splats": moved})
