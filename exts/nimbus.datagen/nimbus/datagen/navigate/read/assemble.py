"""Helpers shared by the scene readers: conversion of surfaces to parts, search for the up axis, checks of the scene."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import AnyArray, FloatArray, IntArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import RESTORE, check_regular, read_text
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart, SceneRoom
from nimbus.datagen.objects.imported.surface import ImportedSurface, up_matrix

MOST_FACES = 20_000_000
"""Largest number of triangles in a scene."""
_MOST_EXTENT = 300.0
"""Largest horizontal extent of a scene [m]; a larger one means that the unit of the file is not meters."""
_LEAST_EXTENT = 1.0
"""Smallest horizontal extent of a scene [m]."""
_LEVEL = 0.97
"""Cosine of the largest slope at which a face counts as level, 14 degrees."""
_LEAST_LEVEL = 0.08
"""Smallest fraction of a building's area that is level when the up axis is correct."""
_TRUST = 1.5
"""Factor in favor of the format's usual up axis. Candidate axes are compared by level area divided by extent, because
buildings are wider than they are high."""
Reader = Callable[[Path, str], NavigationScene]
"""Function that reads a scene from a file, given the file's up axis or ``auto``."""


def make_part(
    name: str, object_class: str, surface: ImportedSurface, *, room: str = "", world_T_part: FloatArray | None = None
) -> ScenePart:
    """Convert a surface to a part.

    Args:
        name: Name of the object.
        object_class: Class of the object.
        surface: Surface in the frame of the part [m].
        room: Name of the object's room; empty if unknown.
        world_T_part: (4, 4) transform, which may include a scale; the identity by default.
    """
    corners = np.asarray(surface.corners, dtype=float)
    if world_T_part is not None:
        corners = corners @ world_T_part[:3, :3].T + world_T_part[:3, 3]
        if np.linalg.det(world_T_part[:3, :3]) < 0:
            corners, surface = corners[:, ::-1], replace(surface, uvs=surface.uvs[:, ::-1])
    return ScenePart(
        name=name,
        object_class=object_class,
        room=room,
        triangles=triangles_of(corners, uvs=surface.uvs.reshape(-1, 2)),
        picture=surface.texture,
    )


def read_rows(path: Path) -> list[list[str]]:
    """Read the rows of a CSV file.

    Raises:
        InputError: The file is not a CSV file.
    """
    try:
        return list(csv.reader(read_text(path).splitlines()))
    except csv.Error as error:
        raise InputError(f"cannot be read as CSV: {error}", where=str(path), instead=RESTORE) from None


def triangles_of(corners: AnyArray, *, uvs: AnyArray | None = None, colors: AnyArray | None = None) -> Triangles:
    """Return triangles with face normals.

    Args:
        corners: (F, 3, 3) corners of the faces [m].
        uvs: (3 F, 2) texture coordinates of the corners; 0 by default.
        colors: (3 F, 3) sRGB colors of the corners, 0 to 1; gray by default.
    """
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12)
    count = 3 * len(corners)
    return Triangles(
        vertices=np.asarray(corners, dtype=np.float32).reshape(-1, 3),
        faces=np.arange(count, dtype=np.int32).reshape(-1, 3),
        normals=np.repeat(across, 3, axis=0).astype(np.float32),
        uvs=np.zeros((count, 2), np.float32) if uvs is None else np.asarray(uvs, dtype=np.float32),
        colors=np.full((count, 3), 0.7, np.float32) if colors is None else np.asarray(colors, dtype=np.float32),
    )


def choose_up(corners: AnyArray, up: str, *, usual: str, where: str) -> FloatArray:
    """Return the rotation (3, 3) from the axes of a file to axes in which z points up.

    Args:
        corners: (F, 3, 3) corners of all faces, in the axes of the file.
        up: Up axis given by the task, or ``auto``.
        usual: Usual up axis of the format; with ``auto``, another one is chosen only if clearly more area is level.
        where: Location for the error.

    Raises:
        InputError: Too little area is level for this up axis, or the scene consists of walls.
    """
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1)
    level = [float(area[np.abs(across[:, axis]) > _LEVEL * np.maximum(area, 1e-12)].sum()) for axis in range(3)]
    share = dict(zip("xyz", np.array(level) / max(float(area.sum()), 1e-12), strict=True))
    if up == "auto":
        extent = dict(zip("xyz", np.ptp(corners.reshape(-1, 3), axis=0), strict=True))
        up = max(
            "yz", key=lambda axis: share[axis] / max(float(extent[axis]), 1e-9) * (_TRUST if axis == usual else 1.0)
        )
        if up != usual and share[usual] < _LEAST_LEVEL <= share["x"]:
            # The scene consists only of walls. With a horizontal axis as the up axis, two walls would be taken for
            # floor and ceiling.
            what = f"the scene has walls but no floor: with {usual} up, {share[usual]:.0%} of the area is level"
            raise InputError(what, where=where, instead="add the floor, or set 'up:' to the up axis")
    if share[up.removeprefix("-")] < _LEAST_LEVEL:
        what = f"the up axis is not clear: with {up} up, {share[up.removeprefix('-')]:.0%} of the area is level"
        raise InputError(what, where=where, instead="set 'up:' to the up axis, or align the scene with its axes")
    return up_matrix(up)


def check_face_count(count: int, path: Path) -> None:
    """Refuse a scene with too many triangles; readers that repeat meshes call it before each copy.

    Raises:
        InputError: There are more than :data:`MOST_FACES`.
    """
    if count > MOST_FACES:
        what = f"the scene has {count} triangles; the limit is {MOST_FACES}"
        raise InputError(what, where=str(path), instead="simplify it, or split it into several scenes")


def make_scene(
    path: Path,
    parts: Sequence[ScenePart],
    *,
    rooms: Sequence[SceneRoom] = (),
    is_lit: bool,
    others: Sequence[Path] = (),
) -> NavigationScene:
    """Combine parts into a scene, after checks of its size.

    Args:
        path: File of the scene.
        parts: All parts, with z up [m].
        rooms: Rooms of the scene, if known.
        is_lit: True if its colors include the lighting.
        others: Other files that were read; the content hash covers them as well.

    Raises:
        InputError: The scene is empty, too large or too small, or has a corner that is not finite.
    """
    parts = tuple(part for part in parts if len(part.triangles.faces))
    count = sum(len(part.triangles.faces) for part in parts)
    if not count:
        raise InputError("contains no triangles", where=str(path), instead="export meshes, not points or curves")
    check_face_count(count, path)
    points = [part.triangles.vertices for part in parts]
    if bad := [part.name for part, places in zip(parts, points, strict=True) if not np.isfinite(places).all()]:
        raise InputError(
            f"'{bad[0]}' has corners that are not finite numbers", where=str(path), instead="export it again"
        )
    extent = np.max([p.max(axis=0) for p in points], axis=0) - np.min([p.min(axis=0) for p in points], axis=0)
    if not _LEAST_EXTENT < float(extent[:2].max()) < _MOST_EXTENT:
        size = f"{extent[0]:.3g} m by {extent[1]:.3g} m"
        what = f"the scene is {size}; its width must be {_LEAST_EXTENT:g} to {_MOST_EXTENT:g} m"
        raise InputError(what, where=str(path), instead="export one building or apartment per file, in meters")
    digest = hashlib.sha256()
    for file in (path, *others):
        check_regular(file)
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return NavigationScene(
        name=file_name(path), content_hash=digest.hexdigest(), parts=parts, rooms=tuple(rooms), is_lit=is_lit
    )


def file_name(path: Path) -> str:
    """Return the name of a scene: its file name up to the first dot, with other characters replaced by ``_``."""
    kept = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in path.name.split(".")[0])
    return kept.strip("_") or "scene"


def unique_names(classes: Sequence[str]) -> list[str]:
    """Return a unique name for each object, from its class and a number: ``chair_0``, ``chair_1``."""
    seen: dict[str, int] = {}
    names = []
    for kind in classes:
        names.append(f"{kind}_{seen.setdefault(kind, 0)}")
        seen[kind] += 1
    return names


def class_name(text: str) -> str:
    """Convert a label to a class name: lower case, words joined by ``_``; ``other`` for labels without meaning."""
    words = "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
    name = "_".join(words)
    return (
        "other" if name in ("", "unknown", "unlabeled", "unlabelled", "undefined", "misc", "object", "void") else name
    )


def split_by_thing(
    corners: AnyArray, things: IntArray, classes: dict[int, str], rooms: dict[int, str], colors: NDArray[np.uint8]
) -> list[ScenePart]:
    """Split a mesh with colored vertices into one part per object.

    Args:
        corners: (F, 3, 3) corners of the faces, with z up [m].
        things: (F,) number of each face's object.
        classes: Class by number of the object; ``other`` for numbers without one.
        rooms: Name of the room by number of the object, where it is known.
        colors: (F, 3, 3) sRGB colors of the corners [levels, 0 to 255].
    """
    numbers = np.unique(things)
    kinds = [classes.get(int(number), "other") for number in numbers]
    parts = []
    for number, kind, name in zip(numbers, kinds, unique_names(kinds), strict=True):
        chosen = things == number
        soup = triangles_of(corners[chosen], colors=colors[chosen].reshape(-1, 3) / 255.0)
        parts.append(ScenePart(name=name, object_class=kind, room=rooms.get(int(number), ""), triangles=soup))
    return parts


def bounding_rooms(parts: Sequence[ScenePart], names: Sequence[str], *, kind: str = "room") -> list[SceneRoom]:
    """Return rooms whose outlines are the bounding boxes of their objects, for files without outlines of rooms."""
    rooms = []
    for name in names:
        points = [part.triangles.vertices for part in parts if part.room == name]
        if points:
            low, high = (
                np.asarray(end, float)
                for end in (np.min([p.min(0) for p in points], 0), np.max([p.max(0) for p in points], 0))
            )
            outline = ((low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1]))
            corners = tuple((float(x), float(y)) for x, y in outline)
            height = float(high[2] - low[2])
            rooms.append(SceneRoom(name=name, kind=kind, outline=corners, floor=float(low[2]), height=height))
    return rooms
