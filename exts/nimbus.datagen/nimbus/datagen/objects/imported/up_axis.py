"""Up axis of an imported mesh, chosen by a vote because many formats state none or a wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.objects.imported.rooms import find_rooms
from nimbus.datagen.objects.imported.settings import Axis
from nimbus.datagen.objects.imported.settle import RestingWay, settle
from nimbus.datagen.objects.imported.surface import up_matrix
from nimbus.datagen.objects.imported.symmetry import turned_shares
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.shapes.contact import limited_hull

AXES: tuple[Axis, ...] = ("z", "-z", "y", "-y", "x", "-x")
_WEIGHTS = {"room": 2.0, "rests": 1.0, "round": 0.6, "base": 0.6, "shape": 1.0}
"""Weights of the votes: a cavity that opens upward, the fraction of simulated drops that end this way up, rotational
symmetry, a base that is larger and flatter than the top, and the usual shape of the category."""
_FORMAT, _USUAL = 1.5, 0.8
"""Votes for the axis that a format defines, and for z if it defines none."""
_FLAT = 0.02
"""Fraction of the height within which faces count as base or top."""
_ROOM = 0.15
"""Fraction of the bounding box's volume at which a cavity gets its full vote."""
_ANGLES = np.deg2rad([67.0, 90.0, 180.0])
TALL, FLAT = "tall", "flat"
"""Shapes of categories: ``tall`` bottles stand on their small end, ``flat`` books lie on their large face."""


@dataclass(frozen=True, kw_only=True)
class UpVote:
    """Result of the vote."""

    axis: Axis
    runner_up: Axis
    scores: Mapping[str, float]
    reasons: Mapping[str, float]
    """Votes for the chosen axis, by source."""


def vote_up(
    points: FloatArray, faces: IndexArray, *, usual: Axis = "z", is_said: bool = False, shape: str = ""
) -> UpVote:
    """Choose the up axis of a file.

    Args:
        points: (n, 3) of a closed surface, axes of the file [m].
        faces: (m, 3) counter-clockwise from outside.
        usual: Up axis of the format.
        is_said: True if the format defines an up axis.
        shape: Shape of the category: ``tall``, ``flat`` or none.
    """
    ways = _ways(points, faces)
    votes: dict[Axis, dict[str, float]] = {}
    for axis in AXES:
        turn = up_matrix(axis)
        turned = points @ turn.T
        votes[axis] = {
            "room": _room(turned, faces),
            "rests": sum(way.share for way in ways if (turn @ way.down)[2] < -0.94),
            "base": _base(turned, faces),
            "shape": _shape(np.ptp(turned, axis=0), shape),
        }
    for line, axis in enumerate(("x", "y", "z")):
        share = float(np.mean(turned_shares(points, faces, line, _ANGLES))) if not shape == FLAT else 0.0
        for one in (axis, f"-{axis}"):
            votes[one]["round"] = max(2 * share - 1, 0.0)  # pyright: ignore[reportArgumentType] (both are axes)
    scored = {axis: {name: _WEIGHTS[name] * vote for name, vote in given.items()} for axis, given in votes.items()}
    scored[usual]["format"] = _FORMAT if is_said else _USUAL
    scores = {axis: sum(given.values()) for axis, given in scored.items()}
    order = sorted(AXES, key=lambda axis: -round(scores[axis], 6))
    return UpVote(axis=order[0], runner_up=order[1], scores=scores, reasons=scored[order[0]])


def _ways(points: FloatArray, faces: IndexArray) -> tuple[RestingWay, ...]:
    center, inertia = mass_properties(points, faces, mass=0.2, in_surface=False)
    return settle([limited_hull(points)], center, inertia, 0.2)


def _room(points: FloatArray, faces: IndexArray) -> float:
    """Return the vote of cavities that open upward, 0 to 1."""
    volume = sum(room.volume for room in find_rooms(points, faces))
    return min(volume / (_ROOM * float(np.ptp(points, axis=0).prod())), 1.0)


def _base(points: FloatArray, faces: IndexArray) -> float:
    """Return the level area at the bottom minus the level area at the top, as a fraction of the bounding rectangle."""
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    corners = points[faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    height = (corners[..., 2].mean(axis=1) - low[2]) / extent[2]
    bottom = -cross[(height < _FLAT) & (cross[:, 2] < 0), 2].sum() / 2
    top = cross[(height > 1 - _FLAT) & (cross[:, 2] > 0), 2].sum() / 2
    return float(np.clip((bottom - top) / (extent[0] * extent[1]), -1, 1))


def _shape(extent: FloatArray, shape: str) -> float:
    """Return the agreement of the height with the category's usual shape."""
    if shape not in (TALL, FLAT):
        return 0.0
    ratio = extent[2] / np.sqrt(extent[0] * extent[1])
    return float(np.clip(np.log(ratio if shape == TALL else 1 / ratio), -1, 1))
