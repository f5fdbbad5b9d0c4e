"""Goal kind ``point``: a position on the floor."""

from __future__ import annotations

from collections.abc import Collection

from nimbus.datagen.navigate.goal_kind import GoalKind, GoalTarget
from nimbus.datagen.navigate.scene_map import SceneMap
from nimbus.datagen.registry import register


@register("goal", "point")
class PointGoal(GoalKind):
    """Any position of the free space; the positions of a room form one target."""

    def targets(self, place: SceneMap, kinds: Collection[str]) -> list[GoalTarget]:
        """Return one target per room, with all nodes in the room."""
        return [
            GoalTarget(name="", object_class="", room=room, nodes=nodes) for room, nodes in place.nodes_by_room.items()
        ]
