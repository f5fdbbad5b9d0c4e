"""Light at the samples of a scene from each of its sources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.render.baked_light.face_grids import FaceGrid

PLACES = 4
"""Number of lamps, one on each side of the workplace."""
GROUPS = 5
"""Number of groups of surfaces that share a reflectance."""
SKY_BINS = 6
"""Number of parts of the surroundings: four quarters up to 60 degrees, the zenith, and all below the horizon."""
ZENITH = 0.866
"""Sine of the elevation at which the zenith begins."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LightBasis:
    """Light at S samples from K sources of strength 1: PLACES lamps, then SKY_BINS parts of the sky.

    Light is measured in units of a directional light of color 1 that shines from above. A lamp of strength 1 gives
    light 1 at the workplace. A part of the sky of radiance 1 looks as bright as a white surface under light 1. The last
    six samples are at a point above the workplace and face +x, -x, +y, -y, +z, -z. The sample before them is emissive.
    """

    steps: NDArray[np.int32]
    start: NDArray[np.int32]
    samples: NDArray[np.int32]
    """Samples of a :class:`FaceGrid` of all faces."""
    direct: NDArray[np.float16]
    """(S, K) direct light, without reflections."""
    bounce: NDArray[np.float16]
    """(S, K, GROUPS) light reflected once by each group at albedo 1."""
    share: NDArray[np.float16]
    """(S, GROUPS) fraction of the surroundings that a group fills."""
    weight: NDArray[np.float32]
    """(S,) number of rays that hit a sample."""
    group: NDArray[np.uint8]
    """(S,) group of each sample; GROUPS for samples off any surface."""
    lamps: NDArray[np.float64]
    """(PLACES, 3) centers of the lamps [m]."""
    workplace: NDArray[np.float64]
    """(3,) center of the work surface [m]."""

    @property
    def grid(self) -> FaceGrid:
        """Grids of all faces."""
        return FaceGrid(steps=self.steps, start=self.start, samples=self.samples)
