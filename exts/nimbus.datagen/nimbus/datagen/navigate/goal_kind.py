"""Kinds of goals: what in a scene a path may lead to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from nimbus.datagen.navigate.scene_map import SceneMap


@dataclass(frozen=True, kw_only=True, eq=False)
class GoalTarget:
    """One place or thing that a path may lead to."""

    name: str
    """Name of the thing or room; empty for a bare point."""
    object_class: str
    """Class of the thing or kind of the room; empty for a bare point."""
    room: str
    nodes: IntArray
    """Nodes of the free space where a path may end, at least one"""
    facing: FloatArray | None = None
    """(3,) point that the body looks at in the end [m]; None: it looks where it arrives"""


class GoalKind(ABC):
    """A kind of goal, registered as ``goal`` under its name."""

    nearest: bool = False
    """A path ends at the target's node that is nearest to its start; otherwise at any of them."""

    @abstractmethod
    def targets(self, place: SceneMap, kinds: Collection[str]) -> list[GoalTarget]:
        """Find the targets in a scene.

        Args:
            place: The scene with its free space.
            kinds: Classes of things or kinds of rooms to choose from; empty: all.
        """

    def names(self, place: SceneMap) -> set[str]:
        """Classes or kinds that ``kinds`` may name in a scene; empty where it has no use for them."""
        return {target.object_class for target in self.targets(place, ()) if target.object_class}


def nodes_by_room(place: SceneMap) -> dict[str, IntArray]:
    """Nodes of the largest component by the name of their room; empty names are outside of all rooms."""
    rooms = np.array(place.main_rooms)
    return {str(name): place.space.main_nodes[rooms == name] for name in np.unique(rooms)}
