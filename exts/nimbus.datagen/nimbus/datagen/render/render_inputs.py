"""Inputs of a renderer for one episode, before anything moves: plain arrays, however they were made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import VisualLayout
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.render.baked_light.face_grids import FaceGrid
from nimbus.datagen.render.baked_light.weighing import WeighedLight

ROBOT = "robot"
"""Instance of all links of the robot."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RenderPart:
    """A textured mesh that moves with one body, or stands still."""

    instance: str
    """Label: an object or a moving part of one, a fixture, ``robot``, ``table``, ``floor``, ``backdrop``."""
    body: str
    """The trajectory body it moves with, or empty."""
    triangles: Triangles
    """In the frame of the body, or of the world."""
    image: NDArray[np.uint8]
    """(H, W, 3) sRGB: the asset's own texture, or a palette of its colours."""
    is_furnishing: bool = False
    """It stands still in the room: it is traced as a part of one mesh, also where it is made of rectangles."""
    casts_shadow: bool = True
    grid: FaceGrid | None = None
    """Places of baked light on its faces."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RenderInputs:
    """Parts, labels and looks of one episode; the poses of the bodies come later."""

    parts: tuple[RenderPart, ...]
    """All that can be seen."""
    labels: Labels
    """Names of what the masks show."""
    visual: VisualLayout
    """Light, cameras and looks of surfaces."""
    baked: WeighedLight | None = None
    """Light on the parts that have grids; the light of ``visual`` is that of the others."""
