"""Motion relative to an object of constant velocity, as on a conveyor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.tasks.workcell_interface import Workcell


_JUMP = 0.25
"""Largest joint displacement per record period that an arm can follow [rad]."""
_AHEAD = 2
"""Record periods from a command to its execution."""


def velocity(cell: Workcell, name: str, *, periods: int = 4) -> FloatArray:
    """Measure the mean velocity (3,) of an object over some record periods, with the arm at rest [m/s]."""
    before = cell.pose(name)[:3, 3]
    cell.wait(periods)
    return (cell.pose(name)[:3, 3] - before) * cell.simulation.rate / periods


def track_object(cell: Workcell, name: str, speed: FloatArray, object_T_tool: FloatArray, *, periods: int = 45) -> None:
    """Move freely to a pose relative to a moving object, at the object's predicted position on arrival.

    Args:
        cell: The scene.
        name: The object.
        speed: (3,) its velocity [m/s].
        object_T_tool: (4, 4) target pose of the tool in the object's frame.
        periods: Initial estimate of the record periods until arrival.

    Raises:
        SkillFailure: There is no such motion, or it takes too long.
    """
    # The duration of a motion is known only after planning it; it changes little with the meeting point.
    for _ in range(5):
        meet = cell.pose(name)
        meet[:3, 3] += speed * periods / cell.simulation.rate
        plan = cell.planner.plan_pose(cell.look(), cell.arm_command, [meet @ object_T_tool], rng=cell.rng())
        if not plan:
            raise SkillFailure.of_plan(plan)
        needed = len(plan.positions) - 1
        if needed <= periods:
            cell.wait(periods - needed)
            cell.follow(plan)
            return
        # The motion takes too long: plan again for an arrival after its duration and a margin of two periods.
        periods = needed + 2
    raise SkillFailure(Reason.NO_PATH, f"{name} is too fast")


class Tracker:
    """Keeps the tool at a pose in the frame of a moving object, record period by record period.

    Args:
        cell: The scene.
        name: The object, which hardly rotates.
        speed: (3,) its velocity [m/s].
    """

    def __init__(self, cell: Workcell, name: str, speed: FloatArray) -> None:
        self._cell, self._name, self._speed = cell, name, speed

    def step(self, object_T_tool: FloatArray, *, opening: float | None = None) -> None:
        """Move for one record period toward the target pose of the tool at the end of the period.

        Args:
            object_T_tool: (4, 4) target pose of the tool in the frame of the object [m].
            opening: Gripper position [m or rad]; unchanged when None.

        Raises:
            SkillFailure: The arm cannot follow.
        """
        cell = self._cell
        there = cell.pose(self._name)
        there[:3, 3] += self._speed * _AHEAD / cell.simulation.rate
        q = cell.scene.arm.solve(there @ object_T_tool, cell.arm_command, iterations=12)
        if q is None or np.abs(q - cell.arm_command).max() > _JUMP:
            raise SkillFailure(Reason.NO_IK, f"{self._name} moves out of reach")
        cell.command(q, opening=opening)
