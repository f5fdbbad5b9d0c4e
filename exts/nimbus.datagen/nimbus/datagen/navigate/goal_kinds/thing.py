"""Goal kinds ``object`` and ``instruction``: a position near an object."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nimbus.datagen.navigate.goal_kind import GoalKind, GoalTarget
from nimbus.datagen.navigate.scene_map import SceneMap
from nimbus.datagen.registry import register

_REACHED = 1.0
"""Horizontal distance to the object's bounds at which the goal is reached, as in Habitat [m]."""
_SMALLEST, _HIGHEST = 0.25, 1.8
"""Limits of goal objects: the longest side has at least the first length, and the lower end is at most the second
height above the floor [m]."""
NO_GOALS = frozenset({"window", "doorway", "door", "rug", "socket", "radiator", "picture", "poster", "tiled_splash"})
"""Classes that are of no use as goals, or that have several similar objects in one room."""


@register("goal", "object")
class ObjectGoal(GoalKind):
    """Object of a given class; the path ends near the object, and the body then faces it."""

    nearest = True

    def targets(self, place: SceneMap, kinds: Collection[str]) -> list[GoalTarget]:
        """Return the objects that the body can approach in the same room."""
        by_room, found = place.nodes_by_room, []
        for thing in place.scene.goals:
            if (kinds and thing.object_class not in kinds) or thing.object_class in NO_GOALS:
                continue
            nodes = by_room.get(thing.room, place.space.main_nodes) if thing.room else place.space.main_nodes
            size, low = np.ptp(thing.bounds, axis=0), thing.bounds[0, 2]
            if not len(nodes) or size.max() < _SMALLEST:
                continue
            feet = place.space.positions[nodes]
            nearest = np.clip(feet[:, :2], thing.bounds[0, :2], thing.bounds[1, :2])
            near = np.linalg.norm(feet[:, :2] - nearest, axis=1) < _REACHED
            near &= (low < feet[:, 2] + _HIGHEST) & (thing.bounds[1, 2] > feet[:, 2])
            if near.any():
                target = GoalTarget(
                    name=thing.name,
                    object_class=thing.object_class,
                    room=thing.room,
                    nodes=nodes[near],
                    facing=thing.middle,
                )
                found.append(target)
        return found


@register("goal", "instruction")
class InstructedGoal(ObjectGoal):
    """Object to which a step-by-step instruction leads."""
