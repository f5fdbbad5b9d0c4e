"""Whether two arms that move at the same time come near each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import quat_from_matrix

if TYPE_CHECKING:
    from nimbus.datagen.execute.workcell import SimulatedWorkcell


_BETWEEN_ARMS = 0.02
"""[m] Two arms that move at the same time keep this distance, looked at so many times a period:"""
_LOOKS = 4


def paths_conflict(one: SimulatedWorkcell, positions: FloatArray, other: SimulatedWorkcell) -> bool:
    """Whether a plan that one arm begins now comes near the rest of the plan that another one follows."""
    scene, qpos = one.look(), one.simulation.data.qpos.copy()
    theirs, count = other.upcoming, max(len(positions), len(other.upcoming))
    at = one.simulation.qpos_index[other.arm_joints]
    held = other.held
    carried = other.scene.tool_pose(other.arm_command) if held else np.eye(4)
    tool_T_held = np.linalg.inv(carried) @ other.pose(held) if held else carried
    try:
        with scene.nearer(_BETWEEN_ARMS):
            already = set(scene.contacts(positions[0]))
            for moment in np.arange(0, count, 1 / _LOOKS):
                qpos[at] = _row(theirs, moment)
                if held:
                    _put(other, qpos, held, other.scene.tool_pose(qpos[at]) @ tool_T_held)
                scene.set_world(qpos)
                if not already.issuperset(scene.contacts(_row(positions, moment))):
                    return True
    finally:
        one.look()
        other.look()
    return False


def _put(cell: SimulatedWorkcell, qpos: FloatArray, name: str, world_T_object: FloatArray) -> None:
    """Write where a free body is into a position vector."""
    address = cell.position_address(name)
    qpos[address : address + 3] = world_T_object[:3, 3]
    qpos[address + 3 : address + 7] = quat_from_matrix(world_T_object[:3, :3])


def _row(positions: FloatArray, moment: float) -> FloatArray:
    """A plan between its rows; it stays at its end."""
    last = len(positions) - 1
    row = min(int(moment), last)
    return (
        positions[row] + (moment - row) * (positions[min(row + 1, last)] - positions[row])
        if row < last
        else positions[last]
    )
