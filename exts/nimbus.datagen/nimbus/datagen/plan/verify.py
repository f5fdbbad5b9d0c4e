"""The last word on a plan, whoever made it: what would it touch in the simulator's own geometry?"""

from __future__ import annotations

import numpy as np

from nimbus.datagen.plan.line import free_along
from nimbus.datagen.plan.path import Float, path_is_free
from nimbus.datagen.plan.scene import BodyPair, PlanningScene


def first_collision(scene: PlanningScene, positions: Float, *, step: float = 0.02) -> BodyPair | None:
    """Check what is commanded, straight from row to row, without any margin.

    What touches at the first or the last posture, such as an object between the fingers, may touch no deeper between.

    Args:
        scene: With everything where it is, and what is held in the hand.
        positions: (N, J) commands.
        step: Largest distance between two checks [rad].

    Returns:
        The pair of bodies that would collide, or ``None`` when nothing would.
    """
    with scene.nearer(0.0):
        is_free = free_along(scene, positions)
        if is_free is not None and path_is_free(positions, is_free, step=step):
            return None
        pairs = (scene.first_contact(q) for q in np.asarray(positions))
        return next((pair for pair in pairs if pair), ("robot", "scene"))
