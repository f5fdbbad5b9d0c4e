"""Inputs of a renderer for one episode, before any motion: plain arrays, independent of their source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import VisualLayout
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.render.baked_light.face_grids import FaceGrid
from nimbus.datagen.render.baked_light.weighing import WeighedLight

ROBOT = "robot"
"""Instance of all robot links."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RenderPart:
    """Textured mesh that moves with one body or is static."""

    instance: str
    """Label: an object or its moving part, a fixture, ``robot``, ``table``, ``floor``, ``backdrop``."""
    body: str
    """Body of the trajectory that the part moves with; empty for a static part."""
    triangles: Triangles
    """Triangles in the frame of the body, or of the world."""
    image: NDArray[np.uint8]
    """(H, W, 3) sRGB: the asset's own texture, or a palette of its colors."""
    is_furnishing: bool = False
    """True for static furnishings, which are traced as part of one mesh even if they consist of rectangles."""
    casts_shadow: bool = True
    grid: FaceGrid | None = None
    """Grid of baked light on its faces."""
    vertex_bodies: tuple[str, ...] = ()
    """Body of the trajectory that each vertex of a cloth or a cable moves with; empty for a rigid part."""
    vertex_offsets: FloatArray | None = None
    """(V, 3) positions of the vertices in the frames of these bodies [m]; None if all are at the origins."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RenderInputs:
    """Parts, labels and looks of one episode; body poses are given when rendering."""

    parts: tuple[RenderPart, ...]
    """All visible parts."""
    labels: Labels
    """Names of the indices in masks."""
    visual: VisualLayout
    """Light, cameras and looks of surfaces."""
    baked: WeighedLight | None = None
    """Light on parts with grids; the light of ``visual`` applies to the others."""
