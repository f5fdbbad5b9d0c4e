"""Arrangements for floor plans: rows along walls, objects scattered over the floor, and two rows of lamps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nimbus.datagen.rooms.furnishing import Furnishing
    from nimbus.datagen.rooms.plan import RoomPlan
    from nimbus.datagen.rooms.walls import Side

CORNER = 0.64
"""Length at the end of a wall that the row along the adjacent wall occupies [m]."""


def shuffled(plan: RoomPlan, names: Sequence[str], count: int) -> list[str]:
    """Draw kinds one by one, with repetition."""
    return [names[int(plan.rng.integers(len(names)))] for _ in range(count)]


def pick_kinds(plan: RoomPlan, names: Sequence[str], count: int) -> list[str]:
    """Draw kinds one by one, without repetition."""
    return [names[int(place)] for place in plan.rng.permutation(len(names))[:count]]


def line_up(plan: RoomPlan, side: Side, kinds: Sequence[str], *, gap: float = 0.0) -> list[Furnishing]:
    """Place furnishings along the free parts of a wall, with random gaps of up to ``gap`` [m]."""
    length, found, at = plan.wall_of(side).length, [], CORNER * float(plan.rng.uniform(0.1, 1.0))
    for kind in kinds:
        for _ in range(6):
            made = plan.row(side, [kind], at, length - 0.05)
            at += float(np.ptp(made[0].bounds, axis=0)[0 if side in ("left", "right") else 1]) if made else 0.25
            if made:
                found += made
                at += float(plan.rng.uniform(0, gap)) if gap else 0.0
                break
    return found


def strew(plan: RoomPlan, kinds: Sequence[str], *, share: float = 1.0, yaw: float | None = None) -> list[Furnishing]:
    """Place objects on the free floor; each is placed with a probability ``share``."""
    x, y = (plan.x[0] + 0.35, plan.x[1] - 0.35), (plan.y[0] + 0.35, plan.y[1] - 0.35)
    made = [plan.stand(kind, x, y, yaw=yaw) for kind in kinds if plan.rng.uniform() < share]
    return [one for one in made if one]


def hang_lamps(plan: RoomPlan, kind: str) -> None:
    """Hang lamps in two rows."""
    for x in np.linspace(*plan.x, 4)[1:-1]:
        for y in np.linspace(*plan.y, 4)[1:-1]:
            plan.hang(kind, (float(x), float(y)))


def busy_sides(plan: RoomPlan) -> tuple[Side, Side]:
    """Draw which side of the room is the busier one; return it first."""
    return ("left", "right") if plan.rng.uniform() < 0.5 else ("right", "left")


def open_somewhere(plan: RoomPlan, side: Side, kind: str, *, low: float) -> bool:
    """Cut an opening into a wall at a drawn position; return False if no position is free."""
    length = plan.wall_of(side).length
    return any(plan.open(side, kind, float(plan.rng.uniform(0.25, 0.75)) * length, low=low) for _ in range(3))
