"""Candidates for repeating a demonstration in a new scene, those closest to it first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.demonstrations.demonstration_file import DemonstrationFile, Size, Take, matrix_of
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle

ANGLE_LENGTH = 0.15
"""Length equivalent to a rotation of one radian in the change of a motion [m]."""
_OTHER_KIND, _OTHER_SIZE = 0.02, 20.0
"""Penalty of a take for an object of another kind [m], and penalty per meter of difference between the extents.

They favor a take for an object of the same shape: fingers that fit around a cube push a brick away."""
_EQUAL_SIDES = 0.02
"""Largest relative difference of two sides of a box that count as equal."""
_ROUND_TURNS = 12
"""Number of rotations tried for an object of revolution."""
_HALF_TURN = np.diag([-1.0, -1.0, 1.0, 1.0])
"""Half turn of the hand about its approach; it maps the grasp of two pads to itself."""


@dataclass(frozen=True, kw_only=True)
class HeldNow:
    """Object in a hand in the new scene."""

    kind: str
    symmetry: str
    """``none``, ``revolution`` or ``box``, see ``ObjectModel``."""
    tool_T_held: FloatArray
    """(4, 4) pose of the object in the hand [m]."""
    size: Size | None = None
    """Extents of the object along its own axes [m]."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Take transformed to the new scene."""

    take: Take
    paths: Mapping[str, FloatArray]
    """``world_T_tool`` of each row (N, 4, 4) by arm [m]."""
    change: float
    """Size of the change from the demonstration: displacement plus rotation of the first arm's tool [m]."""


def find_turns(symmetry: str, size: Size | None = None) -> list[FloatArray]:
    """Return the rotations (4, 4) of an object about itself that leave its shape unchanged.

    Args:
        symmetry: ``none``, ``revolution`` about z, or ``box`` with half turns about its axes.
        size: Extents of the object [m]; a box with equal sides has quarter turns as well.
    """
    if symmetry == "revolution":
        angles = np.arange(_ROUND_TURNS) * 2 * np.pi / _ROUND_TURNS
        return [make_transform((0, 0, 0), quat_from_axis_angle((0, 0, 1), angle)) for angle in angles]
    if symmetry != "box":
        return [np.eye(4)]
    # Permutations and signs of the axes with determinant 1 are the 24 rotations of a cube. A rotation that exchanges
    # unequal sides changes the shape; without a size, all sides count as unequal.
    sides = np.array(size or (1.0, 2.0, 3.0))
    turns: list[FloatArray] = []
    for order in permutations(range(3)):
        if np.abs(sides[list(order)] - sides).max() > _EQUAL_SIDES * sides.max():
            continue
        for signs in product((1.0, -1.0), repeat=3):
            rotation = np.eye(3)[list(order)] * signs
            if np.linalg.det(rotation) > 0:
                turns.append(np.eye(4))
                turns[-1][:3, :3] = rotation
    return turns


def list_candidates(
    demonstration: DemonstrationFile,
    *,
    world_T_frame: FloatArray,
    base: FloatArray,
    kind: str,
    symmetry: str,
    held: Mapping[str, HeldNow],
    size: Size | None = None,
) -> list[Candidate]:
    """List the candidates for repeating a demonstration, those with the smallest change of the motion first.

    A hand that holds an object repeats the object's path instead of the hand's path; this compensates for a grasp that
    differs from the demonstrated one. Rotations of a symmetric object and half turns of an empty hand give further
    candidates.

    Args:
        demonstration: The takes.
        world_T_frame: (4, 4) pose of the object whose frame the takes use [m].
        base: (3,) position of the first arm's base [m].
        kind: Kind of the object.
        symmetry: Symmetry of the object, see :func:`find_turns`.
        held: Objects in the hands by arm.
        size: Extents of the object along its own axes [m].
    """
    found: list[Candidate] = []
    turns = find_turns(symmetry, size)
    held_turns = {arm: find_turns(one.symmetry, one.size) for arm, one in held.items()}
    for take in demonstration.takes:
        penalty = _difference(take.kind, kind, take.size, size)
        for arm, track in take.tracks.items():
            if arm in held:
                penalty += _difference(track.held, held[arm].kind, track.held_size, held[arm].size)
        for frame_turn in turns:
            placed = world_T_frame @ frame_turn
            for paths in _paths(take, placed, held, held_turns):
                found.append(Candidate(take=take, paths=paths, change=penalty + _change(take, paths, base)))
    return sorted(found, key=lambda candidate: candidate.change)


def _difference(then: str, now: str, then_size: Size | None, now_size: Size | None) -> float:
    """Return the penalty of a take for an object of another kind and size [m]."""
    penalty = _OTHER_KIND if then and then != now else 0.0
    if then_size is None or now_size is None:
        return penalty
    return penalty + _OTHER_SIZE * float(np.linalg.norm(np.subtract(then_size, now_size)))


def _paths(
    take: Take, placed: FloatArray, held: Mapping[str, HeldNow], held_turns: Mapping[str, list[FloatArray]]
) -> Iterator[dict[str, FloatArray]]:
    """Yield the paths of all arms for each symmetric rotation of a held object, or half turn of an empty hand."""
    name, other = next(iter(take.tracks)), list(take.tracks)[1:]
    rest = {arm: placed @ _corrected(take, arm, held.get(arm)) for arm in other}
    track = take.tracks[name]
    if track.tool_T_held is None:
        plain = placed @ track.matrices()
        # A half turn does not change the grasp. It is tried with one arm only, because two arms could collide after it.
        yield from ({name: path} | rest for path in ((plain,) if other else (plain, plain @ _HALF_TURN)))
        return
    for turn in held_turns.get(name, [np.eye(4)]):
        yield {name: placed @ _corrected(take, name, held.get(name), turn)} | rest


def _corrected(take: Take, arm: str, held: HeldNow | None, turn: FloatArray | None = None) -> FloatArray:
    """Return ``frame_T_tool`` (N, 4, 4) that moves the held object as in the demonstration."""
    track = take.tracks[arm]
    path = track.matrices()
    if track.tool_T_held is None or held is None:
        return path
    return path @ matrix_of(track.tool_T_held) @ (np.eye(4) if turn is None else turn) @ np.linalg.inv(held.tool_T_held)


def _change(take: Take, paths: Mapping[str, FloatArray], base: FloatArray) -> float:
    """Return the change of the first tool pose relative to the base, displacement plus rotation [m]."""
    name = next(iter(take.tracks))
    then = matrix_of(take.base_T_frame) @ matrix_of(take.tracks[name].poses[0])
    now = paths[name][0]
    shift = np.linalg.norm(now[:3, 3] - base - then[:3, 3])
    cosine = (np.trace(then[:3, :3].T @ now[:3, :3]) - 1) / 2
    return float(shift + ANGLE_LENGTH * np.arccos(np.clip(cosine, -1.0, 1.0)))
