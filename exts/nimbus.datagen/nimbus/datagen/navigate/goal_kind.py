"""Interface of goal kinds, which define the nodes at which a path may end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nimbus.datagen.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from nimbus.datagen.navigate.scene_map import SceneMap


@dataclass(frozen=True, kw_only=True, eq=False)
class GoalTarget:
    """Possible goal of a path: a point, an object or a room."""

    name: str
    """Name of the object or room; empty for a point."""
    object_class: str
    """Class of the object or kind of the room; empty for a point."""
    room: str
    """Name of the room that contains the target; empty outside all rooms."""
    nodes: IntArray
    """Nodes of the free space at which a path may end; at least one."""
    facing: FloatArray | None = None
    """(3,) point that the body faces at the end [m]; None if it keeps the heading of arrival."""


class GoalKind(ABC):
    """Base class of goal kinds, which are registered as ``goal`` under their name."""

    nearest: bool = False
    """True if a path ends at the node of the target that is nearest to its start; otherwise at any of the nodes."""

    @abstractmethod
    def targets(self, place: SceneMap, kinds: Collection[str]) -> list[GoalTarget]:
        """Find the targets in a scene.

        Args:
            place: Scene with its free space.
            kinds: Classes of objects or kinds of rooms to choose from; empty for all.
        """

    def names(self, place: SceneMap) -> set[str]:
        """Return the classes or kinds that ``kinds`` may contain in a scene; empty if the goal kind has none."""
        return {target.object_class for target in self.targets(place, ()) if target.object_class}
