"""Detection of a disturbance's effects while skills still follow plans made before it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import DISTURBED
from nimbus.datagen.execute.step_labels import StepLabel

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.episode.layout import Disturbance
    from nimbus.datagen.execute.workcell import SimulatedWorkcell

PUSHED, UNNOTICED = "pushed", "unnoticed"
"""Phases of rows: while the push lasts, and while the skill continues without having noticed it."""
_SHIFTED, _TURNED = 0.005, 0.1
"""Displacement [m] and rotation [rad], in the world or in the hand, up to which an object counts as unmoved."""
_OFF = 0.02
"""Deviation of an arm from its command up to which it counts as following its plan [rad]."""


class Disturbed(Exception):
    """Raised when a push has invalidated existing plans."""


class DisturbanceWatch:
    """Follows one disturbance through the rows of an attempt.

    Args:
        arms: Views of the arms by name; they may be added later.
        disturbance: The disturbance, or None.
        rate: Rate of rows [Hz].
    """

    def __init__(self, arms: Mapping[str, SimulatedWorkcell], disturbance: Disturbance | None, *, rate: float) -> None:
        self._arms, self._disturbance = arms, disturbance
        ends = np.zeros(3)
        if disturbance:
            ends[0], ends[1] = disturbance.time, disturbance.time + disturbance.duration
            ends[2] = ends[1] + disturbance.unnoticed
        # Rounded outward: the first row contains the start of the push, and the last row ends after it.
        self._first, self._calm, self._stop = int(ends[0] * rate), math.ceil(ends[1] * rate), math.ceil(ends[2] * rate)
        self.is_active = False
        """True from the start of the push until new plans are made."""
        self._before: dict[str, FloatArray] = {}
        self._carrying: list[str] = []
        self._lag = 0.0

    @property
    def body(self) -> str:
        """Name of the pushed body."""
        return self._disturbance.body if self._disturbance else ""

    def __bool__(self) -> bool:
        """Return True if this episode has a disturbance."""
        return self._disturbance is not None

    def label(self, row: int) -> StepLabel | None:
        """Return the label of a row while the disturbance is active."""
        if not self.is_active:
            return None
        return StepLabel(DISTURBED, self.body, PUSHED if row < self._calm else UNNOTICED)

    def begin_row(self, row: int) -> None:
        """Record positions when the disturbance begins with this row."""
        if not self or row != self._first:
            return
        self.is_active = True
        self._before = self._places()
        self._carrying = [name for name, arm in self._arms.items() if arm.meter.carried]
        for name in self._carrying:
            self._arms[name].meter.carried = False  # a slip during the push is not a fault of the grasp

    def end_row(self, row: int) -> None:
        """Check for displacement in the last row in which the skill still ignores the push.

        Raises:
            Disturbed: An object or arm is not at its planned position.
        """
        if not self.is_active:
            return
        self._lag = max(self._lag, *(arm.lag() for arm in self._arms.values()))
        if row + 1 < self._stop:
            return
        if self._has_moved():
            raise Disturbed(f"{self.body} was pushed")
        self.is_active = False
        for name in self._carrying:
            if self._arms[name].held:
                self._arms[name].carry()

    def _places(self) -> dict[str, FloatArray]:
        """Return the pushed object's pose (4, 4) by frame: the arm that holds it, or an empty name for the world."""
        first = next(iter(self._arms.values()))
        if self.body not in first.objects:
            return {}
        holding = next((arm for arm in self._arms.values() if arm.held == self.body), None)
        return {holding.name: holding.tool_T_held()} if holding else {"": first.pose(self.body)}

    def _has_moved(self) -> bool:
        if self._lag > _OFF:
            return True
        now = self._places()
        if now.keys() != self._before.keys():
            return True  # grasped or released in the meantime
        moves = (np.linalg.inv(self._before[where]) @ now[where] for where in now)
        return any(
            # The (4, 4) pose adds 1 to the trace of its rotation: cos(angle) = (trace - 2) / 2.
            np.linalg.norm(move[:3, 3]) > _SHIFTED or math.acos(np.clip((np.trace(move) - 2) / 2, -1, 1)) > _TURNED
            for move in moves
        )
