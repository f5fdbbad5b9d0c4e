"""An asset as recognized in a source: its parts, and all that its files and folders state about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

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
    """Size of a solid: full sides; radius; radius and length [m]."""
    place: tuple[float, ...] = IDENTITY
    """Upper (3, 4) of asset_T_mesh, the scale of the mesh in it."""
    texture: str = ""
    """Path below the source, in place of the mesh's own texture."""
    color: tuple[float, float, float] | None = None
    """sRGB from 0 to 1, where the mesh has no texture."""
    link: str = ""
    """Moving part that it belongs to; empty of the base."""
    is_touched: bool = False
    """True for convex contact-only geometry; other geometry is visual."""
    name: str = ""
    """Name in the source, for example ``handle``."""

    def matrix(self) -> FloatArray:
        """Return asset_T_mesh, (4, 4)."""
        return np.vstack([np.array(self.place).reshape(3, 4), [0, 0, 0, 1]])


@dataclass(frozen=True, kw_only=True)
class FoundJoint:
    """A joint as a source states it; the asset's frame and unit, at joint position 0."""

    link: str
    """Name of the part that it moves."""
    on: str = ""
    """Part that carries it; empty: the base."""
    kind: Literal["hinge", "slide"]
    axis: tuple[float, float, float]
    """Unit."""
    origin: tuple[float, float, float]
    lower: float
    """[rad or the file's unit]"""
    upper: float
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    words: tuple[str, ...] = ()
    """Names of the joint, its link and their semantics."""
    holds: tuple[tuple[float, float, float], ...] = ()
    """Places that the source marks as a handle."""
    flaw: str = ""
    """Reason why it is held still."""


@dataclass(frozen=True, kw_only=True)
class FoundAsset:
    """Asset found in a source."""

    name: str
    """Name that its kind gets where it is free."""
    path: str
    """Main file below the source."""
    layout: str
    parts: tuple[FoundPart, ...] = ()
    joints: tuple[FoundJoint, ...] = ()
    words: tuple[str, ...] = ()
    """Names that may state its category, the likeliest first."""
    metres: float | None = None
    """Length of one unit, where the layout states it."""
    is_unit_certain: bool = False
    """The unit is of the format, as in URDF and MJCF."""
    up: str = ""
    """Axis that the layout states points up."""
    mass: float | None = None
    """Mass as the source claims [kg]."""
    refused: str = ""
    """Reason why it is not imported, for example moving parts."""
    notes: tuple[str, ...] = ()
    claims: tuple[str, ...] = field(default=(), repr=False)
    """Mesh files that belong to it, seen or not: no assets of their own."""


def found_from_plain(value: Any) -> FoundAsset:
    """Build an asset from a child process's message."""
    return from_plain(FoundAsset, value, strict=False)
