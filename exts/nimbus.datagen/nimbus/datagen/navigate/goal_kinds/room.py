"""Goal kind ``room``: a position inside a room."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nimbus.datagen.navigate.goal_kind import GoalKind, GoalTarget
from nimbus.datagen.navigate.scene_map import SceneMap
from nimbus.datagen.registry import register

_INSIDE = 0.6
"""Smallest distance between a goal and the doors of the scene [m]; a body nearer to a door has hardly entered the
room."""


@register("goal", "room")
class RoomGoal(GoalKind):
    """Room of a given kind; the path ends well inside the room."""

    def targets(self, place: SceneMap, kinds: Collection[str]) -> list[GoalTarget]:
        """Return the rooms that the body can enter."""
        doors = np.array([passage.position for passage in place.scene.passages]).reshape(-1, 3)
        rooms = {room.name: room for room in place.scene.rooms}
        found = []
        for name, nodes in place.nodes_by_room.items():
            if name not in rooms or (kinds and rooms[name].kind not in kinds):
                continue
            off = place.space.positions[nodes][:, None, :2] - doors[None, :, :2]
            inside = nodes[np.all(np.linalg.norm(off, axis=-1) > _INSIDE, axis=1)]
            if len(inside):
                found.append(GoalTarget(name=name, object_class=rooms[name].kind, room=name, nodes=inside))
        return found
