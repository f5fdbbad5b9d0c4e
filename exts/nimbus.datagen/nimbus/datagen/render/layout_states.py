"""States of layouts: poses of bodies at consecutive steps of one episode each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.cameras import BodyRows


@dataclass(frozen=True, kw_only=True, eq=False)
class LayoutStates:
    """K consecutive states of one layout with B bodies."""

    names: Sequence[str]
    """Names of the bodies, including every body of the layout's scene."""
    positions: FloatArray
    """(K, B, 3) [m], world frame"""
    wxyz: FloatArray
    """(K, B, 4) unit quaternions"""
    layout: int = 0
    """Number of the layout among the loaded ones."""
    first_step: int = 0
    """Index of the first state in its episode, for sensor noise."""
    following: tuple[FloatArray, FloatArray] | None = None
    """Poses one step later, for optical flow; fewer where the episode ends."""

    @cached_property
    def rows(self) -> BodyRows:
        """Row of each body."""
        return BodyRows(self.names)

    def __len__(self) -> int:
        return len(self.positions)


def side_by_side(states: Sequence[LayoutStates]) -> tuple[FloatArray, FloatArray]:
    """Return the poses (K, B, 3) and (K, B, 4) of all states, one after the other; B is the largest number of bodies.

    Rows beyond a layout's bodies are zero.
    """
    if len(states) == 1:
        return states[0].positions, states[0].wxyz
    bodies = max(len(item.names) for item in states)
    count = sum(map(len, states))
    positions, wxyz = np.zeros((count, bodies, 3)), np.zeros((count, bodies, 4))
    start = 0
    for item in states:
        rows = slice(start, start + len(item))
        positions[rows, : len(item.names)], wxyz[rows, : len(item.names)] = item.positions, item.wxyz
        start += len(item)
    return positions, wxyz
