"""Stages of the import, a function each: looks, solid, rooms, symmetry and rest poses of a closed surface."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.assets.decisions import Decision, Value
from nimbus.datagen.assets.found import FoundAsset
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported.looks import FittedLook, fit_look
from nimbus.datagen.objects.imported.mesh_repair import close_mesh
from nimbus.datagen.objects.imported.rooms import find_rooms as rooms_of
from nimbus.datagen.objects.imported.rooms import name_rooms
from nimbus.datagen.objects.imported.settings import Axis
from nimbus.datagen.objects.imported.settle import name_rest_poses, settle
from nimbus.datagen.objects.imported.solid import ContactSolid, cut_contact
from nimbus.datagen.objects.imported.supports import find_supports
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.imported.symmetry import find_symmetry
from nimbus.datagen.objects.imported.up_axis import FLAT, TALL, vote_up
from nimbus.datagen.objects.model import RestPose
from nimbus.datagen.objects.shapes.contact import Piece
from nimbus.datagen.objects.shapes.shape import frame_at

PIECES = 16
"""Convex pieces at most, where nothing else is given."""
_TALL = "bottle can cup mug jar vase pitcher carton ketchup shampoo bleach chips soup_can salt_shaker beaker bucket"
_FLAT = "plate book tray bowl pan lid keyboard cutting_board laptop coaster card ruler"
_SHAPES = {str(name): TALL for name in _TALL.split()} | {str(name): FLAT for name in _FLAT.split()}
"""Shapes of categories, for the up axis."""


@dataclass(frozen=True, kw_only=True)
class Solid:
    """A closed surface [m], z up."""

    points: FloatArray
    """(n, 3)"""
    faces: IndexArray
    volume: float
    """[m³]"""


def decide_up(
    surface: ImportedSurface, asset: FoundAsset, given: dict[str, Value], *, scale: float, category: str, path: Path
) -> Decision:
    """Choose the axis that points up: given, else by vote, in which the layout and the format take part.

    Args:
        surface: As read.
        asset: With the axis of its layout.
        given: Values of the user.
        scale: Meters of one unit.
        category: Its name.
        path: The mesh.
    """
    if "up" in given:
        return Decision(value=str(given["up"]), why="given")
    usual = cast("Axis", asset.up or surface.up)
    why = f"of the layout {asset.layout}" if asset.up else "of the format"
    try:
        points, faces = close_mesh(*surface.scaled(scale).points(), path)
        is_said = bool(asset.up) or surface.unit_is_known
        vote = vote_up(points, faces, usual=usual, is_said=is_said, shape=_SHAPES.get(category, ""))
    except (InputError, QhullError):
        return Decision(
            value=usual, why=why, others=tuple((other, "not looked at") for other in "zyx" if other != usual)
        )
    reasons = ", ".join(f"{name} {votes:.1f}" for name, votes in vote.reasons.items() if votes > 0.05)
    others = ((vote.runner_up, f"{vote.scores[vote.runner_up]:.1f} votes"),)
    return Decision(value=vote.axis, why=f"{vote.scores[vote.axis]:.1f} votes: {reasons}", others=others)


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


def make_looks(surface: ImportedSurface, solid: Solid) -> FittedLook:
    """Simplify the visual mesh, and bake its texture."""
    return fit_look(surface, solid.points, solid.faces)


def cut_pieces(solid: Solid, most: int, path: Path) -> ContactSolid:
    """Cut the solid into convex pieces that leave its rooms free."""
    rooms = rooms_of(solid.points, solid.faces)
    try:
        return cut_contact(solid.points, solid.faces, most=most, rooms=rooms, path=path, said_in="asset.yaml")
    except QhullError:
        raise InputError("flat: it has no hull", where=str(path), instead="give it a thickness") from None


def find_rooms(solid: Solid) -> dict[str, FloatArray]:
    """Find the boxes of room inside, (2, 3) by name."""
    rooms = rooms_of(solid.points, solid.faces)
    return name_rooms(np.array([(room.lower, room.upper) for room in rooms]).reshape(-1, 2, 3))


def find_mouths(rooms: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Place a frame (4, 4) in the mouth of each room."""
    return {name: frame_at((*room.mean(axis=0)[:2], room[1, 2])) for name, room in rooms.items()}


def decide_symmetry(solid: Solid) -> Decision:
    """Determine the rotations that leave the solid unchanged."""
    return Decision(value=find_symmetry(solid.points, solid.faces), why="turned onto itself")


def find_rest_poses(pieces: tuple[Piece, ...], center_of_mass: FloatArray, inertia: FloatArray) -> tuple[RestPose, ...]:
    """Find the ways in which it lies still, by dropping it; inertia is that of 1 kg."""
    names = ("upright", "lying", "on_side", "inverted")
    return name_rest_poses(settle(pieces, center_of_mass, inertia, 1.0), names)


def describe_supports(solid: Solid) -> str:
    """List the level faces that things can stand on."""
    found = find_supports(solid.points, solid.faces)
    return ", ".join(f"{1e4 * one.area:.0f} cm² at {100 * one.height:.1f} cm" for one in found[:4]) or "none"


def hull_share(solid: Solid) -> float:
    """Return the fraction of its hull that a solid fills."""
    return solid.volume / ConvexHull(solid.points).volume
