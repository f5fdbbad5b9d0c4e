"""Scene prepared for path planning: collision mesh, free space of a body, and path searches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nimbus.datagen.arrays import IndexArray, IntArray
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.free_space import FreeSpace, find_free_space
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.search import PathSearch
from nimbus.datagen.navigate.sight import LineOfSight
from nimbus.datagen.navigate.triangle_tests import CollisionMesh


@dataclass(frozen=True, kw_only=True, eq=False)
class SceneMap:
    """Scene with derived data that all of its episodes share."""

    scene: NavigationScene
    mesh: CollisionMesh
    space: FreeSpace

    @cached_property
    def search(self) -> PathSearch:
        """Path search in the free space."""
        return PathSearch(self.space)

    @cached_property
    def sight(self) -> LineOfSight:
        """Tests of straight walks in the free space."""
        return LineOfSight(self.space)

    @cached_property
    def main_rooms(self) -> tuple[str, ...]:
        """Name of the room of each node of component 0; empty outside all rooms."""
        return tuple(np.array([*(room.name for room in self.scene.rooms), ""])[self.main_room_numbers].tolist())

    @cached_property
    def main_room_numbers(self) -> IndexArray:
        """(M,) number of the room of each node of component 0; -1 outside all rooms."""
        return self.scene.room_numbers(self.space.positions[self.space.main_nodes])

    @cached_property
    def nodes_by_room(self) -> dict[str, IntArray]:
        """Nodes of component 0 by room, sorted by its name; nodes outside all rooms are under the empty name."""
        order = np.argsort(self.main_room_numbers, kind="stable")
        numbers, starts = np.unique(self.main_room_numbers[order], return_index=True)
        groups = np.split(self.space.main_nodes[order], starts[1:])
        names = [self.scene.rooms[number].name if number >= 0 else "" for number in numbers]
        found: dict[str, IntArray] = {}
        for name, nodes in sorted(zip(names, groups, strict=True), key=lambda pair: pair[0]):
            found[name] = np.sort(np.append(found[name], nodes)) if name in found else nodes
        return found

    def geodesic(self, start: int, goal: int) -> float:
        """Return the length of the shortest path between two nodes [m]; infinite if there is none."""
        path = self.search.path(start, goal)
        return float("inf") if path is None else self.taut_length(path)

    def taut_length(self, path: IndexArray) -> float:
        """Return the length of the shortest path between the ends of a shortest path of cells (n,) [m].

        Paths on both sides of an obstacle may have equal lengths in cells. The search from the goal decides such ties
        the other way, so both paths are shortened.
        """
        back = self.search.path(int(path[-1]), int(path[0]))
        paths = [path] if back is None else [path, back[::-1]]
        return self.sight.length(self.sight.taut(*paths))


def map_scene(scene: NavigationScene, body: BodyShape) -> SceneMap:
    """Compute the free space of a body in a scene; return both.

    Raises:
        InputError: The scene has no floor, has too little free area, or is too large.
    """
    mesh = CollisionMesh(scene.corners)
    return SceneMap(scene=scene, mesh=mesh, space=find_free_space(mesh, body, where=scene.name))
