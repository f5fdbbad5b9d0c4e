"""Cooperative scheduling of several arms: their skills take turns, and physics advances when all have a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.coroutine import Coroutine
from nimbus.datagen.geometry.transforms import quat_from_matrix

if TYPE_CHECKING:
    from nimbus.datagen.execute.workcell import SimulatedWorkcell

_BETWEEN_ARMS = 0.02
"""Clearance between two arms in motion [m]."""
_LOOKS = 4
"""Number of checks per record period along two plans."""

_PATIENCE = 300
"""Longest wait of an arm for another one in its way [record periods]."""


def wait_for_way(cell: SimulatedWorkcell, positions: FloatArray) -> None:
    """Hold an arm still until its next plan (T, J) stays clear of the plans that the other arms execute."""
    for _ in range(_PATIENCE):
        if not any(paths_conflict(cell, positions, arm) for arm in cell.arms.values() if len(arm.upcoming)):
            return
        cell.command()


def paths_conflict(one: SimulatedWorkcell, positions: FloatArray, other: SimulatedWorkcell) -> bool:
    """Return True if a plan that begins now would come near another arm, which follows the rest of its own plan."""
    scene, qpos = one.look(), one.simulation.data.qpos.copy()
    # Up to the end of the longer plan: an arm that has finished stays where it is.
    theirs, count = other.upcoming, max(len(positions), len(other.upcoming))
    at = one.simulation.qpos_index[other.arm_joints]
    held = other.held
    carried = other.scene.tool_pose(other.arm_command) if held else np.eye(4)
    tool_T_held = np.linalg.inv(carried) @ other.pose(held) if held else carried
    try:
        with scene.nearer(_BETWEEN_ARMS):
            # Pairs that are near at the start, as in a handover, do not count, because waiting does not separate them.
            already = set(scene.contacts(positions[0]))
            for moment in np.arange(0, count, 1 / _LOOKS):
                qpos[at] = _row(theirs, moment)
                if held:
                    _put(other, qpos, held, other.scene.tool_pose(qpos[at]) @ tool_T_held)
                scene.set_world(qpos)
                if not already.issuperset(scene.contacts(_row(positions, moment))):
                    return True
    finally:
        # The check has moved the arms in their planning scenes; this restores the current state.
        one.look()
        other.look()
    return False


def _put(cell: SimulatedWorkcell, qpos: FloatArray, name: str, world_T_object: FloatArray) -> None:
    """Write the pose of a free body into a position vector."""
    address = cell.position_address(name)
    qpos[address : address + 3] = world_T_object[:3, 3]
    qpos[address + 3 : address + 7] = quat_from_matrix(world_T_object[:3, :3])


def _row(positions: FloatArray, moment: float) -> FloatArray:
    """Interpolate between the rows of a plan; after its end, return the last row."""
    last = len(positions) - 1
    row = min(int(moment), last)
    return (
        positions[row] + (moment - row) * (positions[min(row + 1, last)] - positions[row])
        if row < last
        else positions[last]
    )


class ArmScheduler:
    """Runs functions in fixed turns, so that results never depend on thread timing.

    Args:
        works: Functions by name, in the order of their turns.
        advance: Called whenever all running functions have paused; advances one period of time.
    """

    def __init__(self, works: Mapping[str, Callable[[], None]], advance: Callable[[], None]) -> None:
        self._works, self._advance = works, advance
        self._turns: dict[str, Coroutine] = {}

    def run(self) -> None:
        """Run until all have ended; the first error ends the others and is raised."""
        self._turns = {name: Coroutine(work) for name, work in self._works.items()}
        try:
            while True:
                for turn in self._turns.values():
                    if not turn.done:
                        turn.resume()
                    if turn.error is not None:
                        raise turn.error
                if all(turn.done for turn in self._turns.values()):
                    return
                self._advance()
        finally:
            for turn in self._turns.values():
                turn.stop()

    def others_work(self, name: str) -> bool:
        """Return True while any other function still runs."""
        return any(not turn.done for other, turn in self._turns.items() if other != name)

    def pause(self, name: str) -> None:
        """End the turn of a function, by its name; the others run, and time advances."""
        self._turns[name].pause()
