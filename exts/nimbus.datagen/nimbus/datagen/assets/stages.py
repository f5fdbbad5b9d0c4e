"""Stages of the import: appearance, solid, cavities, symmetry and rest poses of a surface, one function each."""

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
"""Default for the largest number of convex pieces."""
_TALL = "bottle can cup mug jar vase pitcher carton ketchup shampoo bleach chips soup_can salt_shaker beaker bucket"
_FLAT = "plate book tray bowl pan lid keyboard cutting_board laptop coaster card ruler"
_SHAPES = {str(name): TALL for name in _TALL.split()} | {str(name): FLAT for name in _FLAT.split()}
"""Typical shapes of categories, used in the choice of the up axis."""


@dataclass(frozen=True, kw_only=True)
class Solid:
    """Closed surface with z up [m]."""

    points: FloatArray
    """(n, 3) points [m]."""
    faces: IndexArray
    volume: float
    """Volume [m³]."""


def decide_up(
    surface: ImportedSurface, asset: FoundAsset, given: dict[str, Value], *, scale: float, category: str, path: Path
) -> Decision:
    """Choose the up axis: the given one, or by a vote of shape, layout and format.

    Args:
        surface: Surface as read.
        asset: Asset, with the up axis of its layout.
        given: Values of the user.
        scale: Length of one unit [m].
        category: Name of the category.
        path: File of the mesh, for messages.
    """
    if "up" in given:
        return Decision(value=str(given["up"]), why="given")
    usual = cast("Axis", asset.up or surface.up)
    why = f"from the layout {asset.layout}" if asset.up else "from the format"
    try:
        points, faces = close_mesh(*surface.scaled(scale).points(), path)
        is_said = bool(asset.up) or surface.unit_is_known
        vote = vote_up(points, faces, usual=usual, is_said=is_said, shape=_SHAPES.get(category, ""))
    except (InputError, QhullError):
        return Decision(
            value=usual, why=why, others=tuple((other, "not evaluated") for other in "zyx" if other != usual)
        )
    reasons = ", ".join(f"{name} {votes:.1f}" for name, votes in vote.reasons.items() if votes > 0.05)
    others = ((vote.runner_up, f"{vote.scores[vote.runner_up]:.1f} votes"),)
    return Decision(value=vote.axis, why=f"{vote.scores[vote.axis]:.1f} votes: {reasons}", others=others)


def close_surface(surface: ImportedSurface, path: Path) -> tuple[Solid, tuple[str, ...]]:
    """Close a surface, and add a note if its number of triangles changes.

    Raises:
        InputError: The surface stays open, has too large holes, or encloses no volume.
    """
    points, faces = surface.points()
    before = len(faces)
    points, closed = close_mesh(points, faces, path)
    notes = (f"{before} triangles, {len(closed)} after closing",) if len(closed) != before else ()
    a, b, c = (points[closed[:, corner]] for corner in range(3))
    return Solid(points=points, faces=closed, volume=float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6), notes


def make_looks(surface: ImportedSurface, solid: Solid) -> FittedLook:
    """Simplify the visual mesh and bake its texture."""
    return fit_look(surface, solid.points, solid.faces)


def cut_pieces(solid: Solid, most: int, path: Path) -> ContactSolid:
    """Decompose the solid into convex pieces that leave its cavities open."""
    rooms = rooms_of(solid.points, solid.faces)
    try:
        return cut_contact(solid.points, solid.faces, most=most, rooms=rooms, path=path, said_in="asset.yaml")
    except QhullError:
        raise InputError("is flat: it has no convex hull", where=str(path), instead="give it a thickness") from None


def find_rooms(solid: Solid) -> dict[str, FloatArray]:
    """Return the boxes (2, 3) of the cavities, by name."""
    rooms = rooms_of(solid.points, solid.faces)
    return name_rooms(np.array([(room.lower, room.upper) for room in rooms]).reshape(-1, 2, 3))


def find_mouths(rooms: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return a frame (4, 4) at the opening of each cavity."""
    return {name: frame_at((*room.mean(axis=0)[:2], room[1, 2])) for name, room in rooms.items()}


def decide_symmetry(solid: Solid) -> Decision:
    """Determine the symmetry of a solid by rotating it."""
    return Decision(value=find_symmetry(solid.points, solid.faces), why="measured by rotating it")


def find_rest_poses(pieces: tuple[Piece, ...], center_of_mass: FloatArray, inertia: FloatArray) -> tuple[RestPose, ...]:
    """Find the stable rest poses by dropping the object; the inertia is for a mass of 1 kg."""
    names = ("upright", "lying", "on_side", "inverted")
    return name_rest_poses(settle(pieces, center_of_mass, inertia, 1.0), names)


def describe_supports(solid: Solid) -> str:
    """List the level faces on which other objects can stand."""
    found = find_supports(solid.points, solid.faces)
    return ", ".join(f"{1e4 * one.area:.0f} cm² at {100 * one.height:.1f} cm" for one in found[:4]) or "none"


def hull_share(solid: Solid) -> float:
    """Return the ratio of a solid's volume to its convex hull's volume."""
    return solid.volume / ConvexHull(solid.points).volume
