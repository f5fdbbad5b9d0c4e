"""Final collision check of a plan from any planner, in the simulator's own geometry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.line import nearest_along, pairs_too_near
from nimbus.datagen.plan.scene import BodyPair, PlanningScene


@dataclass(frozen=True, kw_only=True)
class Collision:
    """First collision of a plan."""

    bodies: BodyPair
    depth: float
    """Penetration [m]."""
    row: float
    """Position in the plan, in rows from its start: 0 when it starts in collision."""

    def __str__(self) -> str:
        """Return a description for messages."""
        return f"{' touches '.join(self.bodies)} by {self.depth * 1e3:.1f} mm at row {self.row:.1f}"


def first_collision(scene: PlanningScene, positions: FloatArray, *, step: float = 0.02) -> Collision | None:
    """Check the straight lines between consecutive commands, without a margin.

    Bodies in contact at the start, such as an object and its table, may penetrate slightly deeper afterwards, within a
    limit; all other contacts are collisions.

    Args:
        scene: Scene in its current state, with the held object in the hand.
        positions: (N, J) commands [rad or m].
        step: Largest distance between two checks [rad].
    """
    with scene.nearer(0.0):
        # Allowed contacts are those at the ends, measured in the same geometry and state as the check.
        nearest = nearest_along(scene, positions)
        for row, q in _in_order(positions, step):
            if too_near := pairs_too_near(scene, q, nearest):
                bodies = min(too_near, key=too_near.__getitem__)
                return Collision(bodies=bodies, depth=-too_near[bodies], row=row)
    return None


def _in_order(positions: FloatArray, step: float) -> Iterator[tuple[float, FloatArray]]:
    """Yield postures along a plan in order, with their rows."""
    for row, (one, other) in enumerate(zip(positions[:-1], positions[1:], strict=True)):
        count = max(1, int(np.ceil(np.linalg.norm(other - one) / step)))
        for part in np.arange(count) / count:
            yield row + float(part), one + part * (other - one)
    yield float(len(positions) - 1), positions[-1]
