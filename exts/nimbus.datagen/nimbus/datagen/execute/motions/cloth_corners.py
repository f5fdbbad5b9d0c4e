"""Corners of a flat cloth, and the poses of a hand that pinches them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.motions.pinching import pinch_height
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.tasks.workcell_interface import Workcell

CORNER_CLOSING = 12
"""Record periods in which the fingers close on a corner."""
CORNER_ROOM = 0.01
"""Travel of each finger at the release of a corner [m]; wider fingers push the corner away."""


@dataclass(frozen=True, kw_only=True)
class ClothCorner:
    """Corner of a flat cloth."""

    place: FloatArray
    """(2,) position in the world [m]."""
    opposite: FloatArray
    """(2,) position of the opposite corner in the world [m]."""

    @property
    def inward(self) -> FloatArray:
        """Unit vector (2,) toward the opposite corner."""
        return (self.opposite - self.place) / np.linalg.norm(self.opposite - self.place)

    def pinch_pose(self, arm: Workcell, surface: float, *, inset: float, across: bool = False) -> FloatArray:
        """Return the tool pose (4, 4) in which the fingers of a hand that points down close on the corner.

        Args:
            arm: The arm that pinches.
            surface: Height of the surface under the cloth [m].
            inset: Distance of the hand from the corner, along the diagonal [m].
            across: Close across the diagonal, from both sides of the corner, instead of along it.
        """
        level = (-self.inward[1], self.inward[0]) if across else self.inward
        closing = np.array([*level, 0.0])
        pose = np.eye(4)
        pose[:3, :3] = np.column_stack([np.cross(closing, (0.0, 0.0, -1.0)), closing, (0.0, 0.0, -1.0)])
        pose[:3, 3] = [*(self.place + inset * self.inward), pinch_height(arm, surface)]
        return pose


def find_corners(arm: Workcell, name: str) -> list[ClothCorner]:
    """Return the four corners of a cloth, the nearest to the robot's base first.

    Raises:
        SkillFailure: The object is not a cloth.
    """
    sheet = arm.model(name).sheet
    if sheet is None:
        raise SkillFailure(Reason.NO_GRASP, f"{name} is not a cloth")
    columns = sheet.cells[0] + 1
    points = arm.points(name)[:, :2]
    one, two, three, four = (points[row] for row in (0, columns - 1, -columns, -1))
    base = np.array(arm.stage.robot_position[:2])
    pairs = [(one, four), (two, three), (three, two), (four, one)]
    pairs.sort(key=lambda pair: float(np.linalg.norm(pair[0] - base)))
    return [ClothCorner(place=place, opposite=opposite) for place, opposite in pairs]
