"""Control of one gripper in physics: opening, closing, and detection of lost objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.execute.workcell import SimulatedWorkcell

_SLIP_LIMIT = 0.03
"""Displacement of a held object in the hand that counts as slipping away [m]."""
_STANDING = 2e-3
"""Finger speed below which a closing gripper has stopped [m/s]."""


class GripperControl:
    """Moves the fingers of one arm and records the held object in its contact meter.

    Args:
        cell: View of the arm; its commands advance time.
    """

    def __init__(self, cell: SimulatedWorkcell) -> None:
        self._cell = cell

    def open(self, *, room: float | None, steps: int) -> None:
        """Open the fingers by ``room`` [m] each, or fully, over ``steps`` record periods; releases the held object."""
        cell, meter, gripper = self._cell, self._cell.meter, self._cell.robot.gripper
        target = gripper.open
        if room is not None:
            # The sign of the travel is the direction of opening: some joints open toward smaller positions.
            way = np.sign(gripper.travel_per_metre)
            widest = float((way * cell.finger_positions()).max())
            target = float(way * min(way * target, widest + room * abs(gripper.travel_per_metre)))
        if cell.held in cell.objects:
            cell.released.add(cell.held)
        meter.held, meter.carried, meter.closing_on = None, False, None
        self._move_fingers(target, steps=steps)

    def close_on(self, name: str, *, steps: int, patience: int) -> bool:
        """Close the fingers on an object and wait for them to stop; return True if all fingers touch it."""
        cell = self._cell
        cell.meter.closing_on = name
        self._move_fingers(cell.robot.gripper.closed, steps=steps)
        for _ in range(patience):
            if cell.finger_speed() < _STANDING * abs(cell.robot.gripper.travel_per_metre):
                break
            cell.command()
        # Slanted sides push the hand away: later plans start at the actual posture, not at the commanded one.
        cell.accept_posture()
        if not cell.is_gripping(name):
            return False
        cell.meter.held = name
        return True

    def _move_fingers(self, target: float, *, steps: int) -> None:
        for value in np.linspace(self._cell.opening, target, steps + 1)[1:]:
            self._cell.command(opening=float(value))

    def carry(self) -> None:
        """Require from now on that the held object does not move in the hand."""
        self._cell.meter.carried = True
        self._carried_at = self._cell.tool_T_held()

    def check_slip(self) -> None:
        """Check that an object in transport stays at its position in the hand.

        Raises:
            SkillFailure: The object has slipped.
        """
        if self._cell.meter.carried:
            slip = float(np.linalg.norm((self._cell.tool_T_held() - self._carried_at)[:3, 3]))
            if slip > _SLIP_LIMIT:
                raise SkillFailure(Reason.SLIPPED_IN_TRANSIT, f"{self._cell.held} slid {slip * 100:.0f} cm in the hand")

    def check_grip(self) -> None:
        """Update the grip after a failure.

        An object that the fingers no longer touch is released; otherwise its current pose in the hand is the new
        reference for slip.
        """
        cell, meter = self._cell, self._cell.meter
        if cell.held is not None and not cell.is_gripping(cell.held):
            meter.held = meter.closing_on = None
            meter.carried = False
        elif meter.carried:
            self.carry()
