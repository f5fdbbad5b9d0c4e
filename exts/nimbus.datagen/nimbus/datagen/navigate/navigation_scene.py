"""Model of a navigation scene: visible parts, objects with names and classes, rooms and passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array, FloatArray, IndexArray
from nimbus.datagen.episode.credits import AssetCredit
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.progress import allow

STRUCTURE = frozenset({"wall", "floor", "ceiling", "backdrop", "stairs", "skirting", "other"})
"""Classes of the building itself; its parts are never goals or landmarks."""
_SLOW = 60.0
"""Time limit for painting a texture [s]; it is long enough for busy machines."""
_TOUCH = 1e-6
"""Margin around a room within which its outline is tested [m]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScenePart:
    """Triangles of an object that share one texture; an object with several textures has several parts."""

    name: str
    """Name of the object, unique in the scene, such as ``chair_1``."""
    object_class: str
    """Class of the object, for example ``chair``."""
    room: str
    """Name of the room that contains the object; empty if unknown."""
    triangles: Triangles
    """Triangles in the world, z up [m]; vertex colors are used only if ``picture`` is None."""
    picture: NDArray[np.uint8] | Callable[[], NDArray[np.uint8]] | None = None
    """(H, W, 3) sRGB texture with the bottom row at v = 0, or a function that makes it; None to use vertex colors."""
    is_open: bool = False
    """True if the part emits light, as the view through a window does."""

    @cached_property
    def image(self) -> NDArray[np.uint8] | None:
        """(H, W, 3) sRGB texture; None for vertex colors. It is made at its first use, because paths need none."""
        if not callable(self.picture):
            return self.picture
        with allow(_SLOW):
            return self.picture()


@dataclass(frozen=True, kw_only=True)
class SceneRoom:
    """Room with its outline and kind."""

    name: str
    """Unique name in the scene, such as ``bedroom_0``."""
    kind: str
    """Kind of the room, for example ``bedroom``."""
    outline: tuple[tuple[float, float], ...]
    """Corners (x, y) of the floor, counter-clockwise [m]."""
    floor: float
    """Height of the floor [m]."""
    height: float
    """Height of the ceiling above the floor [m]."""

    def contains(self, points: FloatArray) -> NDArray[np.bool_]:
        """Test points (n, 3) [m]; the result (n,) is True inside the outline, between floor and ceiling.

        A point counts as inside down to 0.3 m below the floor.
        """
        x, y, z = np.asarray(points, dtype=float).reshape(-1, 3).T
        corners = np.array(self.outline)
        inside = np.zeros(len(x), dtype=bool)
        for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            crosses = (y0 > y) != (y1 > y)
            inside ^= crosses & (x < (x1 - x0) * (y - y0) / ((y1 - y0) or 1.0) + x0)
        return inside & (z > self.floor - 0.3) & (z < self.floor + self.height)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """Door, opening or flight of stairs between two rooms."""

    name: str
    kind: str
    """``door``, ``opening`` or ``stairs``."""
    rooms: tuple[str, str]
    """Names of both rooms."""
    position: tuple[float, float, float]
    """Center of the passage, on the floor [m]."""
    width: float
    """Width of the passage [m]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SceneThing:
    """Object of a scene, made of one or several parts."""

    name: str
    object_class: str
    room: str
    bounds: FloatArray
    """(2, 3) lower and upper corner of the bounding box [m]."""

    @property
    def middle(self) -> FloatArray:
        """(3,) center of the bounds [m]."""
        return self.bounds.mean(axis=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class NavigationScene:
    """Complete static scene; z points up, and lengths are in meters."""

    name: str
    """Name of the scene, usable as a file name."""
    content_hash: str
    """Hash of everything that determines paths and images."""
    parts: tuple[ScenePart, ...]
    rooms: tuple[SceneRoom, ...] = ()
    """Rooms; empty if unknown, and instructions then mention only objects."""
    passages: tuple[Passage, ...] = ()
    lamps: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    """(L, 3) centers of ceiling lamps [m]."""
    lamp_rooms: tuple[str, ...] = ()
    """Room of each lamp."""
    is_lit: bool = False
    """True if textures and colors already contain the lighting, as in scans; then no lighting is baked."""
    classes: tuple[str, ...] = ()
    """All classes that scenes of the same source may contain, so that class numbers agree; empty if there are no others
    than those of this scene."""
    credits: Mapping[str, AssetCredit] = field(default_factory=dict)
    """Source and license of third-party content, by name."""

    @cached_property
    def corners(self) -> Float32Array:
        """(F, 3, 3) corners of all faces, counter-clockwise seen from outside [m]; this is the collision geometry."""
        found = [part.triangles.vertices[part.triangles.faces] for part in self.parts]
        return np.concatenate(found) if found else np.zeros((0, 3, 3), dtype=np.float32)

    @cached_property
    def things(self) -> tuple[SceneThing, ...]:
        """All objects, including those of the building, in the order of their first parts."""
        by_name: dict[str, list[ScenePart]] = {}
        for part in self.parts:
            by_name.setdefault(part.name, []).append(part)
        made = []
        for name, parts in by_name.items():
            points = np.concatenate([part.triangles.vertices for part in parts])
            bounds = np.stack([points.min(axis=0), points.max(axis=0)]).astype(float)
            first = parts[0]
            made.append(SceneThing(name=name, object_class=first.object_class, room=first.room, bounds=bounds))
        return tuple(made)

    @cached_property
    def goals(self) -> tuple[SceneThing, ...]:
        """Objects to which a path may lead: all except those of the building."""
        return tuple(thing for thing in self.things if thing.object_class not in STRUCTURE)

    def room_of(self, points: FloatArray) -> list[str]:
        """Return the name of the room of each point (n, 3) [m]; empty for points outside all rooms."""
        names = np.array([*(room.name for room in self.rooms), ""])
        found: list[str] = names[self.room_numbers(points)].tolist()
        return found

    def room_numbers(self, points: FloatArray) -> IndexArray:
        """Return the number of the first room that contains each point (n, 3) [m]; -1 for points outside all rooms."""
        points = np.asarray(points, dtype=float).reshape(-1, 3)
        found = np.full(len(points), -1, dtype=np.int32)
        order = np.argsort(points[:, 0], kind="stable")
        sorted_x = points[order, 0]
        for number, room in enumerate(self.rooms):
            x = [corner[0] for corner in room.outline]
            start, stop = np.searchsorted(sorted_x, (min(x) - _TOUCH, max(x) + _TOUCH))
            rows = order[start:stop]
            rows = rows[found[rows] < 0]
            found[rows[room.contains(points[rows])]] = number
        return found
