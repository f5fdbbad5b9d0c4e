"""Assets as recognized in a source: their parts, and what files and folders state about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.codec import from_plain

IDENTITY = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class FoundPart:
    """Mesh file or primitive solid, with its pose in the asset."""

    mesh: str = ""
    """Path below the source; empty for a solid."""
    solid: str = ""
    """``box``, ``sphere``, ``cylinder`` or ``capsule``."""
    size: tuple[float, ...] = ()
    """Size of a solid [m]: full sides of a box, radius of a sphere, radius and length of a cylinder or capsule."""
    place: tuple[float, ...] = IDENTITY
    """Upper rows (3, 4) of asset_T_mesh as a list; they include the scale of the mesh."""
    texture: str = ""
    """Path, below the source, of the texture that replaces the mesh's own."""
    color: tuple[float, float, float] | None = None
    """sRGB from 0 to 1 for a mesh without a texture."""
    link: str = ""
    """Name of the moving part to which it belongs; empty for the base."""
    is_touched: bool = False
    """True for convex geometry that is used only for contact; other geometry is visual."""
    name: str = ""
    """Name in the source, for example ``handle``."""

    def matrix(self) -> FloatArray:
        """Return asset_T_mesh (4, 4)."""
        return np.vstack([np.array(self.place).reshape(3, 4), [0, 0, 0, 1]])


@dataclass(frozen=True, kw_only=True)
class FoundJoint:
    """Joint as stated by a source, in the frame and unit of the asset, at joint position 0."""

    link: str
    """Name of the part that moves."""
    on: str = ""
    """Name of the part that carries the moving part; empty for the base."""
    kind: Literal["hinge", "slide"]
    axis: tuple[float, float, float]
    """Unit vector."""
    origin: tuple[float, float, float]
    lower: float
    """Lower limit [rad or the file's unit]."""
    upper: float
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    words: tuple[str, ...] = ()
    """Names of the joint, its link and their semantics."""
    holds: tuple[tuple[float, float, float], ...] = ()
    """Points that the source marks as handles."""
    flaw: str = ""
    """Reason why the joint is fixed; empty if it moves."""


@dataclass(frozen=True, kw_only=True)
class FoundAsset:
    """Asset found in a source."""

    name: str
    """Preferred name of its kind."""
    path: str
    """Path of the main file below the source."""
    layout: str
    parts: tuple[FoundPart, ...] = ()
    joints: tuple[FoundJoint, ...] = ()
    words: tuple[str, ...] = ()
    """Names that may state the category, the most likely first."""
    metres: float | None = None
    """Length of one unit [m], if the layout states it; 0 if the layout has no unit."""
    is_unit_certain: bool = False
    """True if the format fixes the unit, as URDF and MJCF do."""
    up: str = ""
    """Up axis, if the layout states it."""
    mass: float | None = None
    """Mass claimed by the source [kg]."""
    refused: str = ""
    """Reason why the asset is refused, such as too many moving parts; empty if it is imported."""
    notes: tuple[str, ...] = ()
    claims: tuple[str, ...] = field(default=(), repr=False)
    """Mesh files that belong to the asset, visible or not; they are not imported separately."""


def found_from_plain(value: Any) -> FoundAsset:
    """Build an asset from the message of a child process."""
    return from_plain(FoundAsset, value, strict=False)
