"""Cable: a chain of stiff links of equal length, joined by ball joints with springs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray

SIDES = 8
"""Number of corners of a cable's cross-section."""
_RINGS = (0.1, 0.9)
"""Places of the two rings of each link, as fractions of its length; the surface between two links bends."""


def used_vertices(rings: int) -> NDArray[np.bool_]:
    """Return a mask of the vertices of all rings that a face uses: one vertex of each end has none."""
    used = np.ones(rings * (SIDES + 1), dtype=bool)
    used[[SIDES, -SIDES - 1]] = False
    return used


@dataclass(frozen=True, kw_only=True)
class CableChain:
    """Links of a cable in the plane of x and y, along an arc that is symmetric about the y axis."""

    links: int
    """Number of links."""
    length: float
    """Length along the cable [m]."""
    radius: float
    """[m]"""
    bend: float
    """Angle between the directions of the first and the last link at rest [rad]."""
    stiffness: float
    """Bending stiffness EI of the cable [N m²]; that of a joint is EI over the length of a link."""
    damping: float
    """Damping of each joint [N m s/rad]."""

    @property
    def link_length(self) -> float:
        """Length of a link [m]."""
        return self.length / self.links

    def joints(self) -> FloatArray:
        """Return the ends of the links at rest, (links + 1, 3) in the object's frame [m]."""
        angles = self._angles()
        steps = self.link_length * np.column_stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)])
        points = np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
        return points - (points.min(axis=0) + points.max(axis=0)) / 2

    def frames(self) -> FloatArray:
        """Return the frames of the links at rest, (links, 4, 4) in the object's frame: from the origin along x."""
        frames = np.tile(np.eye(4), (self.links, 1, 1))
        cosine, sine = np.cos(self._angles()), np.sin(self._angles())
        frames[:, :2, :2] = np.stack([np.stack([cosine, -sine], axis=-1), np.stack([sine, cosine], axis=-1)], axis=1)
        frames[:, :3, 3] = self.joints()[:-1]
        return frames

    def skin(self) -> tuple[list[int], FloatArray]:
        """Return the link (V,) of each vertex of the surface, and its position (V, 3) in the frame of the link [m].

        Each ring of the surface repeats its first vertex at its end, for the texture. The first and the last ring
        have no radius and close the ends.
        """
        around = np.linspace(0.0, 2.0 * np.pi, SIDES + 1)
        circle = self.radius * np.column_stack([np.zeros_like(around), np.cos(around), np.sin(around)])
        inner = [(link, share, 1.0) for link in range(self.links) for share in _RINGS]
        last = self.links - 1
        rings = [(0, 0.0, 0.0), (0, 0.0, 0.8), *inner, (last, 1.0, 0.8), (last, 1.0, 0.0)]
        rows = [circle * width + [share * self.link_length, 0.0, 0.0] for _, share, width in rings]
        used = used_vertices(len(rings))
        return np.repeat([link for link, _, _ in rings], SIDES + 1)[used].tolist(), np.vstack(rows)[used]

    def _angles(self) -> FloatArray:
        """Return the direction (links,) of each link in the plane [rad]."""
        return self.bend * np.linspace(-0.5, 0.5, self.links)
