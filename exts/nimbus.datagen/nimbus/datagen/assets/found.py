"""An asset as recognized in a source: its parts, and all that its files and folders state about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.codec import from_plain

IDENTITY = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class FoundPart:
    """A mesh file, or a solid of a few numbers, at its place in the asset."""

    mesh: str = ""
    """Path below the source; empty of a solid."""
    solid: str = ""
    """``box``, ``sphere``, ``cylinder`` or ``capsule``."""
    size: tuple[float, ...] = ()
    """[m] Of a solid: full sides; radius; radius and length."""
    place: tuple[float, ...] = IDENTITY
    """Upper (3, 4) of asset_T_mesh, the scale of the mesh in it."""
    texture: str = ""
    """Path below the source, in place of what the mesh names."""
    color: tuple[float, float, float] | None = None
    """sRGB from 0 to 1, where the mesh has no texture."""

    def matrix(self) -> FloatArray:
        """Return asset_T_mesh, (4, 4)."""
        return np.vstack([np.array(self.place).reshape(3, 4), [0, 0, 0, 1]])


@dataclass(frozen=True, kw_only=True)
class FoundAsset:
    """One thing of a source."""

    name: str
    """Name that its kind gets where it is free."""
    path: str
    """Main file below the source."""
    layout: str
    parts: tuple[FoundPart, ...] = ()
    words: tuple[str, ...] = ()
    """Names that may state its category, the likeliest first."""
    metres: float | None = None
    """Length of one unit, where the layout states it."""
    is_unit_certain: bool = False
    """The unit is of the format, as in URDF and MJCF."""
    up: str = ""
    """Axis that the layout states points up."""
    mass: float | None = None
    """[kg] As the source claims."""
    refused: str = ""
    """Reason why it is not imported, for example moving parts."""
    notes: tuple[str, ...] = ()
    claims: tuple[str, ...] = field(default=(), repr=False)
    """Mesh files that belong to it, seen or not: no assets of their own."""


def found_from_plain(value: Any) -> FoundAsset:
    """Make an asset of what a child process sent."""
    return from_plain(FoundAsset, value, strict=False)
