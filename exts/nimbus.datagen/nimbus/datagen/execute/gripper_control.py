"""The gripper of one arm in physics: open it, close it, and notice when it loses what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.execute.workcell import SimulatedWorkcell

_SLIP_LIMIT = 0.03
"""[m] A held object that moved further in the hand is being lost."""
_STANDING = 2e-3
"""[m/s] Fingers slower than this have closed as far as they go."""


class GripperControl:
    """Moves the fingers of one arm, and notes in its contact meter which object they hold.

    Args:
        cell: The view of the arm; its commands let time pass.
    """

    def __init__(self, cell: SimulatedWorkcell) -> None:
        self._cell = cell

    def open(self, *, room: float | None, steps: int) -> None:
        """Open the fingers by some room [m] each, or all the way, in some record periods; release the held object."""
        cell, meter, gripper = self._cell, self._cell.meter, self._cell.robot.gripper
        target = gripper.open
        if room is not None:
            way = np.sign(gripper.travel_per_metre)
            widest = float((way * cell.finger_positions()).max())
            target = float(way * min(way * target, widest + room * abs(gripper.travel_per_metre)))
        if cell.held in cell.objects:
            cell.released.add(cell.held)
        meter.held, meter.carried, meter.closing_on = None, False, None
        self._move_fingers(target, steps=steps)

    def close_on(self, name: str, *, steps: int, patience: int) -> bool:
        """Close the fingers on an object, and wait some record periods until they stand; True when all hold it."""
        cell = self._cell
        cell.meter.closing_on = name
        self._move_fingers(cell.robot.gripper.closed, steps=steps)
        for _ in range(patience):
            if cell.finger_speed() < _STANDING * abs(cell.robot.gripper.travel_per_metre):
                break
            cell.command()
        cell.accept_posture()
        if not cell.is_gripping(name):
            return False
        cell.meter.held = name
        return True

    def _move_fingers(self, target: float, *, steps: int) -> None:
        for value in np.linspace(self._cell.opening, target, steps + 1)[1:]:
            self._cell.command(opening=float(value))

    def carry(self) -> None:
        """From now on the held object should stay where it is in the hand."""
        self._cell.meter.carried = True
        self._carried_at = self._cell.tool_T_held()

    def check_slip(self) -> None:
        """Check that a carried object stays where it is in the hand.

        Raises:
            SkillFailure: It has slid.
        """
        if self._cell.meter.carried:
            slip = float(np.linalg.norm((self._cell.tool_T_held() - self._carried_at)[:3, 3]))
            if slip > _SLIP_LIMIT:
                raise SkillFailure(Reason.SLIPPED_IN_TRANSIT, f"{self._cell.held} slid {slip * 100:.0f} cm in the hand")

    def check_grip(self) -> None:
        """After a failure: an object that the fingers no longer touch is not held; another is carried as it is now."""
        cell, meter = self._cell, self._cell.meter
        if cell.held is not None and not cell.is_gripping(cell.held):
            meter.held = meter.closing_on = None
            meter.carried = False
        elif meter.carried:
            self.carry()
