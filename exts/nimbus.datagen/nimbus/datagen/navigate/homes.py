"""Conversion of generated homes to navigation scenes: furnishings become textured parts, and doors become passages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from nimbus.datagen.arrays import AnyArray, FloatArray
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.navigate.home_things import THING_KINDS, hash_libraries, place_things
from nimbus.datagen.navigate.navigation_scene import NavigationScene, Passage, ScenePart, SceneRoom
from nimbus.datagen.random_streams import generator
from nimbus.datagen.rooms.home import HOME_KINDS, HOME_VERSION, make_home
from nimbus.datagen.rooms.home_model import HomePlan, HomeRoom
from nimbus.datagen.rooms.look import RoomLook, TextureSlot
from nimbus.datagen.rooms.modeling import Color, Patch
from nimbus.datagen.rooms.outdoors import paint_outdoors
from nimbus.datagen.rooms.stairs import STAIRS
from nimbus.datagen.textures.procedural import procedural_texture

_FACES = np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int32)
_JOINED = {"skirting": "skirting", "ceiling": "ceiling", "socket": "socket"}
"""Kinds whose parts form a single object in the whole home, because a mask distinguishes only 255 objects."""
_PERIODS = {"floor": 2.4, "wall": 3.1}
"""Period with which the texture of a surface repeats [m]."""
_NEW_CLASSES = tuple(kind for kind in THING_KINDS if kind not in HOME_KINDS)
"""Classes that only occur in the object libraries, not among the furnishings."""
_PLAIN: Color = (0.6, 0.58, 0.55)
"""Default color of parts without a look."""


def home_scene(seed: int, rooms: tuple[int, int], storeys: tuple[int, int] = (1, 1)) -> NavigationScene:
    """Generate a home as a navigation scene.

    Args:
        seed: Number of the home; equal numbers give equal homes.
        rooms: Smallest and largest number of rooms of a storey.
        storeys: Smallest and largest number of storeys.
    """
    count = int(generator(seed, "home", "storeys").integers(storeys[0], storeys[1] + 1)) if storeys != (1, 1) else 1
    home = make_home(seed, rooms, storeys=count)
    parts = [part for room in home.rooms for part in _room_parts(room)] + place_things(home)
    text = f"home {HOME_VERSION} {seed} {rooms[0]} {rooms[1]}" + (f" storeys {count}" if count > 1 else "")
    text += f" {hash_libraries()}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return NavigationScene(
        name=f"home_{seed}",
        content_hash=digest,
        parts=tuple(parts),
        rooms=tuple(_scene_room(room) for room in home.rooms),
        passages=_passages(home),
        lamps=np.array([lamp for room in home.rooms for lamp in room.lamps]).reshape(-1, 3),
        lamp_rooms=tuple(room.name for room in home.rooms for _ in room.lamps),
        classes=("floor", "wall", *sorted(HOME_KINDS), *((STAIRS,) if storeys[1] > 1 else ()), *_NEW_CLASSES),
    )


def _passages(home: HomePlan) -> tuple[Passage, ...]:
    return tuple(
        Passage(name=door.name, kind="door", rooms=door.rooms, position=door.position, width=door.width)
        for door in home.doors
    )


def _scene_room(room: HomeRoom) -> SceneRoom:
    (x0, x1), (y0, y1) = room.rectangle.x, room.rectangle.y
    return SceneRoom(
        name=room.name,
        kind=room.kind,
        outline=((x0, y0), (x1, y0), (x1, y1), (x0, y1)),
        floor=room.floor,
        height=room.height,
    )


def _room_parts(room: HomeRoom) -> Iterable[ScenePart]:
    """Yield the parts of a room: for each object, one part per texture and one for its plain colors."""
    floor = room.ground or room.rectangle
    (x0, x1), (y0, y1), z = floor.x, floor.y, room.floor
    ground = np.array([(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)])
    yield from _surface("floor", [ground], room, "floor")
    yield from _surface("wall", list(room.walls), room, "backdrop")
    for one in room.furnishings:
        name = _JOINED.get(one.kind, one.name)
        yield from _patches(name, one.kind, room.name, one.patches, room.look)


def _surface(name: str, quads: list[FloatArray], room: HomeRoom, role: str) -> Iterable[ScenePart]:
    """Yield the part of a room's floor or walls, with the texture of the room's look."""
    worn = room.look.surfaces[role]
    slot = TextureSlot(worn.texture, worn.texture_seed, _PERIODS[name])
    patches = [_panel(corners) for corners in quads]
    yield _part(name, name, room.name, patches, slot)


def _panel(corners: FloatArray) -> Patch:
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    return Patch("wall", corners, np.tile(normal / np.linalg.norm(normal), (4, 1)), _FACES)


def _patches(name: str, kind: str, room: str, patches: tuple[Patch, ...], look: RoomLook) -> Iterable[ScenePart]:
    """Yield the parts of one furnishing."""
    plain: list[tuple[Patch, Color]] = []
    textured: dict[str, list[Patch]] = {}
    for patch in patches:
        if isinstance(patch.material, str) and patch.material in look.textures:
            textured.setdefault(patch.material, []).append(patch)
        else:
            plain.append((patch, _color(patch, look.colors)))
    for slot, group in textured.items():
        yield _part(name, kind, room, group, look.textures[slot])
    if plain:
        yield _plain(name, kind, room, plain)


def _color(patch: Patch, colors: Mapping[str, Color]) -> Color:
    return colors.get(patch.material, _PLAIN) if isinstance(patch.material, str) else patch.material


def _part(name: str, kind: str, room: str, patches: list[Patch], slot: TextureSlot) -> ScenePart:
    """Return a part with a projected texture; the view through a window is a single image instead."""
    pieces = []
    for patch in patches:
        piece = _triangles(patch, (1.0, 1.0, 1.0))
        uvs = _outdoors(patch) if slot.name == "outdoors" else piece.projected(slot.period).uvs
        pieces.append(_with_uvs(piece, uvs))
    is_open = slot.name == "outdoors"
    paint = partial(paint_outdoors, slot.seed) if is_open else partial(procedural_texture, slot.name, slot.seed)
    triangles = Triangles.concatenate(pieces)
    return ScenePart(name=name, object_class=kind, room=room, triangles=triangles, picture=paint, is_open=is_open)


def _plain(name: str, kind: str, room: str, patches: list[tuple[Patch, Color]]) -> ScenePart:
    triangles, image = Triangles.concatenate([_triangles(*entry) for entry in patches]).with_palette()
    return ScenePart(name=name, object_class=kind, room=room, triangles=triangles, picture=image)


def _triangles(patch: Patch, color: Color) -> Triangles:
    count = len(patch.vertices)
    made = Triangles(
        vertices=patch.vertices.astype(np.float32),
        faces=np.asarray(patch.faces, dtype=np.int32),
        normals=patch.normals.astype(np.float32),
        uvs=np.zeros((count, 2), dtype=np.float32),
        colors=np.ones((count, 3), dtype=np.float32),
    )
    return made.painted(color)


def _with_uvs(piece: Triangles, uvs: AnyArray) -> Triangles:
    return replace(piece, uvs=np.asarray(uvs, dtype=np.float32))


def _outdoors(patch: Patch) -> FloatArray:
    """Return texture coordinates (n, 2) that fit one image into an upright rectangle."""
    axis = int(np.argmin(np.ptp(patch.vertices, axis=0)))
    across, along = (1, 0, 0)[axis], (2, 2, 1)[axis]
    flat = patch.vertices[:, [across, along]]
    return (flat - flat.min(axis=0)) / np.maximum(np.ptp(flat, axis=0), 1e-9)
