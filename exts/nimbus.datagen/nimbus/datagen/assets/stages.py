"""Stages of the import, a function each: looks, solid, rooms, symmetry and rest poses of a closed surface."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray
from nimbus.datagen.assets.decisions import Decision, Value
from nimbus.datagen.assets.found import FoundAsset
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported.mesh_repair import close_mesh
from nimbus.datagen.objects.imported.prepare import cut_solid, simplify_looks
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.model import RestPose
from nimbus.datagen.objects.rest_poses import rest_poses
from nimbus.datagen.objects.shapes.contact import Piece, piece_triangles

PIECES = 16
"""Convex pieces at most, where nothing else is given."""


@dataclass(frozen=True, kw_only=True)
class Solid:
    """A closed surface [m], z up."""

    points: FloatArray
    """(n, 3)"""
    faces: IndexArray
    volume: float
    """[m³]"""


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Triangles that are seen, with their texture."""

    vertices: FloatArray
    faces: IndexArray
    normals: FloatArray
    uvs: FloatArray
    texture: ImageArray


def decide_up(surface: ImportedSurface, asset: FoundAsset, given: dict[str, Value]) -> Decision:
    """Choose the axis that points up: given, the layout's, the format's."""
    if "up" in given:
        return Decision(value=str(given["up"]), why="given")
    up = asset.up or surface.up
    why = f"of the layout {asset.layout}" if asset.up else "of the format"
    return Decision(value=up, why=why, others=tuple((other, "not looked at") for other in "zyx" if other != up))


def close_surface(surface: ImportedSurface, path: Path) -> tuple[Solid, tuple[str, ...]]:
    """Close a surface; parts that stay open alone become their hulls where the others enclose something.

    Raises:
        InputError: It encloses nothing.
    """
    points, faces = surface.points()
    before = len(faces)
    points, closed = close_mesh(points, faces, path)
    notes = (f"{before} triangles, {len(closed)} after closing",) if len(closed) != before else ()
    a, b, c = (points[closed[:, corner]] for corner in range(3))
    return Solid(points=points, faces=closed, volume=float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6), notes


def make_looks(surface: ImportedSurface, solid: Solid) -> Looks:
    """Simplify what is seen, with its texture."""
    vertices, faces, normals, uvs = simplify_looks(surface, solid.points, solid.faces)
    return Looks(vertices=vertices, faces=faces, normals=normals, uvs=uvs, texture=surface.texture)


def cut_pieces(solid: Solid, most: int, path: Path) -> tuple[Piece, ...]:
    """Cut the solid into convex pieces."""
    try:
        return cut_solid(solid.points, solid.faces, most, path, "asset.yaml")
    except QhullError:
        raise InputError("flat: it has no hull", where=str(path), instead="give it a thickness") from None


def find_rooms(solid: Solid) -> dict[str, FloatArray]:
    """Find the boxes of room inside, (2, 3) by name."""
    del solid
    return {}


def find_symmetry(solid: Solid) -> Decision:
    """Find out what turns leave the solid as it is."""
    del solid
    return Decision(value="none", why="not looked for")


def find_rest_poses(pieces: tuple[Piece, ...], center_of_mass: FloatArray) -> tuple[RestPose, ...]:
    """Find the ways in which it lies still."""
    names = ("upright", "lying", "on_side", "inverted")
    return rest_poses(piece_triangles(pieces)[0], center_of_mass, names=names, lies_on="any")


def hull_share(solid: Solid) -> float:
    """Share of its hull that a solid fills."""
    return solid.volume / ConvexHull(solid.points).volume
