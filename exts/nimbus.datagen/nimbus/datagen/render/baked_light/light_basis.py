"""Light at samples of a scene from each of its sources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.render.baked_light.face_grids import FaceGrid

PLACES = 4
"""Lamps of a scene, one to each side of the workplace."""
GROUPS = 5
"""Groups of surfaces that reflect alike."""
SKY_BINS = 6
"""Parts of the surroundings: four quarters about the vertical up to 60 degrees, the zenith, and all below."""
ZENITH = 0.866
"""Sine of the elevation from which on the sky is the zenith."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LightBasis:
    """Light at S samples from K sources of strength 1: PLACES lamps, then SKY_BINS parts of the sky.

    A lamp of strength 1 lights the workplace like light 1 from above; a part of the sky of radiance 1 is as bright as
    white under light 1. The last six samples float over the workplace and look along +x, -x, +y, -y, +z, -z. The one
    before them shines itself.
    """

    steps: NDArray[np.int32]
    start: NDArray[np.int32]
    samples: NDArray[np.int32]
    """A :class:`FaceGrid` of all faces."""
    direct: NDArray[np.float16]
    """(S, K) without reflections."""
    bounce: NDArray[np.float16]
    """(S, K, GROUPS) reflected once by each group, as if it were white."""
    share: NDArray[np.float16]
    """(S, GROUPS) of the surroundings that a group fills."""
    weight: NDArray[np.float32]
    """(S,) times that a sample was seen."""
    group: NDArray[np.uint8]
    """(S,) of each sample; GROUPS for those that are no surface."""
    lamps: NDArray[np.float64]
    """(PLACES, 3) middles [m]"""
    workplace: NDArray[np.float64]
    """(3,) [m]"""

    @property
    def grid(self) -> FaceGrid:
        """Grids of all faces."""
        return FaceGrid(steps=self.steps, start=self.start, samples=self.samples)
