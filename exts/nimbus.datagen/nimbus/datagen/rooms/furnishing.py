"""Kinds of furnishings, and furnishings placed in a room."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.rooms.modeling import Modeler, Patch, bounds

Size: TypeAlias = tuple[float, float, float]
"""Width, depth, height [m]."""
Build: TypeAlias = Callable[[Modeler, Size, np.random.Generator], None]
"""Function that adds the solids of a furnishing of a given size to a modeler."""


@dataclass(frozen=True)
class FurnishingKind:
    """Kind of furniture, fixture or small object, with its range of sizes."""

    name: str
    """Name of the kind, which is also the semantic class."""
    low: Size
    high: Size
    build: Build
    is_flat: bool = False
    """True for flat objects on a wall, the ceiling or the floor; they cast no shadow."""

    def draw_size(self, rng: np.random.Generator) -> Size:
        """Draw a size from the range [m]."""
        width, depth, height = (float(value) for value in rng.uniform(self.low, self.high))
        return width, depth, height


@dataclass(frozen=True)
class Furnishing:
    """Furnishing of a room."""

    name: str
    """Unique name in the room, such as ``chair_1``."""
    kind: str
    patches: tuple[Patch, ...]
    """Patches in the frame of the room."""
    casts_shadow: bool = True

    @cached_property
    def bounds(self) -> FloatArray:
        """Lower and upper corner (2, 3) of the bounds [m]."""
        return bounds(self.patches)

    @property
    def triangle_count(self) -> int:
        """Return the number of triangles."""
        return sum(len(patch.faces) for patch in self.patches)


FurnishingGroup: TypeAlias = Literal["building", "kitchen", "office", "storage", "workshop", "shop", "small"]


def by_name(kinds: Iterable[FurnishingKind]) -> dict[str, FurnishingKind]:
    """Return kinds by name."""
    return {kind.name: kind for kind in kinds}
