"""Interface of the sources whose scenes have splats; renderers draw the splats instead of the proxy geometry."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.scene_source import SceneSource
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.rasterizer import SplatRasterizer
from nimbus.datagen.splats.sample import SurfaceSamples

_Kept = TypeVar("_Kept")
_KEPT = 2
"""Number of scenes that a process keeps in memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacedSplats:
    """Splats of a scene with their transform to the world."""

    scene: NavigationScene
    """Proxy geometry of the splats."""
    cloud: SplatCloud
    """Splats in their own frame."""
    world_T_cloud: FloatArray
    """(4, 4) transform from the frame of the splats to the world: rotation, scale and offset [m]."""
    has_mesh: bool
    """True if the proxy is a mesh of the scene; False if it is derived from the splats and therefore coarser."""
    samples: SurfaceSamples | None = None
    """Points on the scene's faces, one per splat, for splats that are lit later; None for captured splats."""


class SplatSource(SceneSource):
    """Base class of the settings of sources with splats."""

    @abstractmethod
    def read(self, number: int) -> PlacedSplats:
        """Read or generate the splats of a scene.

        Raises:
            InputError: A file cannot be used.
        """

    def placed(self, number: int) -> PlacedSplats:
        """Return the splats of a scene; the most recently used scenes are cached.

        Raises:
            InputError: A file cannot be used.
        """
        return _kept(_splats, (self.model_dump_json(), number), lambda: self.read(number))

    def open(self, number: int) -> NavigationScene:
        """Return the proxy geometry of a scene.

        Raises:
            InputError: A file cannot be used.
        """
        return self.placed(number).scene

    def outline(self, number: int) -> SplatRasterizer:
        """Return a rasterizer for the silhouette of a scene's splats; before lighting, its colors have no meaning."""

        def make() -> SplatRasterizer:
            placed = self.placed(number)
            return SplatRasterizer(placed.cloud, world_T_cloud=placed.world_T_cloud)

        return _kept(_outlines, (self.model_dump_json(), number), make)


_splats: OrderedDict[tuple[str, int], PlacedSplats] = OrderedDict()
_outlines: OrderedDict[tuple[str, int], SplatRasterizer] = OrderedDict()


def _kept(kept: OrderedDict[tuple[str, int], _Kept], key: tuple[str, int], make: Callable[[], _Kept]) -> _Kept:
    if key not in kept:
        kept[key] = make()
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]


def upright() -> FloatArray:
    """Return the transform of splats that are already in the world frame: the identity (4, 4)."""
    return np.eye(4)
