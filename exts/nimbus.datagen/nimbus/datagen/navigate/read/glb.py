"""Reader of scans and models in glTF: HM3D, Matterport, Gibson, Habitat.

Classes and rooms are read from ``NAME.semantic.glb`` and ``NAME.semantic.txt`` beside the scene, as in HM3D. The color
of a face in the former identifies a line ``number,RRGGBB,"class",region`` in the latter.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from nimbus.datagen.arrays import AnyArray, FloatArray, IntArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_all_below
from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart
from nimbus.datagen.navigate.read.assemble import (
    bounding_rooms,
    choose_up,
    class_name,
    make_part,
    make_scene,
    read_rows,
    unique_names,
)
from nimbus.datagen.objects.imported.gltf_sizes import gltf_files, has_pictures
from nimbus.datagen.objects.imported.read import read_nodes
from nimbus.datagen.objects.imported.surface import ImportedSurface

SUFFIXES = (".glb", ".gltf")
_REACH = 0.05
"""Largest distance of a face from the labeled mesh [m]; faces beyond it have no class."""


def read_glb(path: Path, up: str = "auto") -> NavigationScene:
    """Read a glTF scene; textures and colors of vertices are assumed to include the lighting, as in scans.

    Args:
        path: Path of the file; if there are ``NAME.glb`` and ``NAME.basis.glb``, the path of the former.
        up: Up axis; ``auto`` means y, unless clearly more area is level with z up, as in HM3D.

    Raises:
        InputError: The file cannot be read, its up axis is not clear, or ``make_scene`` refuses the scene.
    """
    nodes = sorted(read_nodes(path), key=lambda node: node[0])
    if not nodes:
        raise InputError("contains no triangles", where=str(path), instead="export meshes, not points or curves")
    turn = choose_up(np.concatenate([s.corners for _, s in nodes]), up, usual="y", where=str(path))
    if others := _label_files(path):
        parts, regions = _labelled(nodes, *others)
    else:
        kinds = [class_name(_without_number(name)) for name, _ in nodes]
        named = zip(unique_names(kinds), kinds, nodes, strict=True)
        parts = [make_part(name, kind, surface) for name, kind, (_, surface) in named]
        regions = []
    parts = [_turned(part, turn) for part in parts]
    return make_scene(path, parts, rooms=bounding_rooms(parts, regions), is_lit=has_pictures(path), others=others)


def glb_files(path: Path) -> list[Path]:
    """Return the files that :func:`read_glb` reads besides the scene."""
    labels = _label_files(path)
    return [*gltf_files(path)[1:], *(gltf_files(labels[0]) + [labels[1]] if labels else [])]


def _label_files(path: Path) -> tuple[Path, Path] | tuple[()]:
    """Return the labeled mesh and the table of its colors; empty if one of them is missing."""
    labels = path.with_name(path.name.split(".")[0] + ".semantic.glb")
    names = labels.with_suffix(".txt")
    if labels == path or not labels.exists() or not names.exists():
        return ()
    check_all_below([labels, names], path.parent)
    return labels, names


def _without_number(name: str) -> str:
    return name.split(".")[0].rstrip("0123456789_- ") or name


def _turned(part: ScenePart, turn: FloatArray) -> ScenePart:
    soup = part.triangles
    vertices, normals = ((rows @ turn.T).astype(np.float32) for rows in (soup.vertices, soup.normals))
    return replace(part, triangles=replace(soup, vertices=vertices, normals=normals))


def _labelled(nodes: list[tuple[str, ImportedSurface]], labels: Path, names: Path) -> tuple[list[ScenePart], list[str]]:
    """Split surfaces into objects by the nearest face of the labeled mesh; return parts and names of rooms."""
    table = {row[1].strip().upper(): row for row in read_rows(names)[1:] if len(row) >= 4}
    marked = read_nodes(labels)
    middles = np.concatenate([surface.corners.mean(axis=1) for _, surface in marked])
    colors = np.concatenate([_face_colors(surface) for _, surface in marked])
    codes = [f"{r:02X}{g:02X}{b:02X}" for r, g, b in colors.tolist()]
    tree = KDTree(middles)
    kinds = {code: class_name(row[2]) for code, row in table.items()}
    unique = dict(zip(kinds, unique_names(list(kinds.values())), strict=True))
    rooms = {code: f"region_{row[3].strip()}" for code, row in table.items()}
    parts: list[ScenePart] = []
    for _, surface in nodes:
        distance, nearest = (np.asarray(values) for values in tree.query(surface.corners.mean(axis=1)))
        found = np.where(distance < _REACH, np.array(codes)[nearest], "")
        for code in np.unique(found):
            piece = _rows(surface, np.flatnonzero(found == code))
            known = code in kinds
            name, kind = (unique[code], kinds[code]) if known else ("other", "other")
            parts.append(make_part(name, kind, piece, room=rooms[code] if known else ""))
    return parts, sorted({part.room for part in parts if part.room})


def _rows(surface: ImportedSurface, rows: IntArray) -> ImportedSurface:
    return ImportedSurface(corners=surface.corners[rows], uvs=surface.uvs[rows], texture=surface.texture)


def _face_colors(surface: ImportedSurface) -> AnyArray:
    """Return the color (F, 3) of the texture at the center of each face."""
    uv = surface.uvs.mean(axis=1) % 1.0
    height, width = surface.texture.shape[:2]
    columns = np.minimum((uv[:, 0] * width).astype(int), width - 1)
    return surface.texture[np.minimum(((1.0 - uv[:, 1]) * height).astype(int), height - 1), columns]
