"""Search for handles and pressing points in the contact geometry of a part, by names and by shape."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.articulated.joints import JointPlan, opening_way
from nimbus.datagen.geometry.coverage import sample_surface
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.objects.model import Handle, Pressing
from nimbus.datagen.objects.shapes.contact import Piece, piece_triangles
from nimbus.datagen.plan.grasp import GraspAxes, GripperShape, find_axes
from nimbus.datagen.random_streams import generator

NAMED = re.compile(r"handle|knob|grip|pull|lever|lock|latch|switch|button", re.IGNORECASE)
"""Words in the names of geometry that is meant to be held."""
_HAND = GripperShape(opening=0.07, pad_width=0.018, pad_height=0.018, finger_thickness=0.012, finger_depth=0.042)
"""Hand that must be able to grasp the handles; it opens slightly less than the hands of Nimbus's robots."""
_PALM = np.array([(-0.035, -0.1, -0.12), (0.035, 0.1, -0.047)])
"""Bounding box of the hand behind the fingers, in the tool frame [m]."""
_MARGIN = 0.002
"""Margin around geometry that is named as a handle [m]."""
_STANDS_OUT = 8.0
"""Score per meter by which a handle protrudes in the opening direction; at most 15 cm count."""
_HAND_REACH = 0.16
"""Half side of a box around a handle that contains the whole hand [m]."""
_NEAR_MARK = 0.04
"""Largest distance of a handle from a point that the source marks as a handle [m]."""
_AXES, _POINTS = 700, 6000
"""Number of rays in the search for opposite surfaces, and of points in the check of the hand's clearance."""
_STRAIGHT = 0.2
"""Largest angle between the closing direction and the surface normals [rad]."""
_KEPT = 8
"""Largest number of handles of a part."""
_APART = 0.02
"""Smallest distance between two handles of a part [m]."""
_TURNS = (0.35, 0.7, 1.05)
"""Rotations of the hand about a handle that are tested for clearance, in both directions [rad].

Handles that are not round use at most the first one.
"""
_ROUND = 0.035
"""Largest thickness of a bar with a nearly square section that may rotate between the fingers [m]."""
_PRESSINGS = 4
_FINGER_ROOM = (0.016, 0.1)
"""Radius and approach length of the closed fingers [m]."""


@dataclass(frozen=True, kw_only=True)
class PartSurface:
    """Closed part and the geometry around it, in the frame of the asset."""

    plan: JointPlan
    pieces: Sequence[Piece]
    """Convex pieces of the closed part [m]."""
    around: Sequence[Piece]
    """Convex pieces of the base and the other parts [m]."""
    named: FloatArray
    """(k, 2, 3) bounds of geometry named as a handle [m]."""


def find_handles(surface: PartSurface, *, place: FloatArray | None = None) -> tuple[Handle, ...]:
    """Find straight bars that two fingers can grasp, the best first.

    Args:
        surface: Part to search.
        place: (3,) point near which the user wants the handle [m].
    """
    plan = surface.plan
    points, faces = piece_triangles(tuple(surface.pieces))
    axes = find_axes(
        points,
        faces,
        _HAND,
        rng=generator(0, "assets", "handles"),
        count=_AXES,
        open_inside=True,
        friction_angle=_STRAIGHT,
    )
    own = _dense(surface.pieces)
    every = np.vstack([own, _dense(surface.around)])
    score = _score(surface, axes, place)
    kept: list[Handle] = []
    for index in np.argsort(-score, kind="stable"):
        if not np.isfinite(score[index]) or len(kept) == _KEPT:
            break
        middle, closing, width = axes.middles[index], axes.directions[index], float(axes.widths[index])
        if any(np.linalg.norm(middle - one.position) < _APART for one in kept):
            continue
        near = every[np.abs(every - middle).max(axis=1) < _HAND_REACH] - middle
        for approach in _approaches(plan, points, middle, closing):
            if _is_free(closing, approach, width, near):
                kept.append(_handle(middle, closing, approach, width, own, near))
                break
    return tuple(kept)


def find_pressings(surface: PartSurface) -> tuple[Pressing, ...]:
    """Find points where closed fingers can push a part shut or press a button, the best first."""
    plan, joint = surface.plan, surface.plan.joint
    points, faces = piece_triangles(tuple(surface.pieces))
    corners = points[faces]
    places, face = sample_surface(corners, 600)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[face]
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    ways = (
        joint.axis[None].repeat(len(places), 0)
        if joint.kind == "slide"
        else np.cross(joint.axis, places - joint.origin)
    )
    reach = np.linalg.norm(ways, axis=1)
    ways = ways / np.maximum(reach[:, None], 1e-9) * (1.0 if plan.role == "button" else -1.0)
    facing = -np.einsum("ij,ij->i", normals, ways)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    off = np.linalg.norm(np.cross(places - middle, ways), axis=1)
    score = facing + (reach / max(float(reach.max()), 1e-9) if joint.kind == "hinge" else -4 * off)
    score = np.where(facing > 0.9, score, -np.inf)
    every = np.vstack([_dense(surface.pieces), _dense(surface.around)])
    kept: list[Pressing] = []
    for index in np.argsort(-score, kind="stable"):
        if not np.isfinite(score[index]) or len(kept) == _PRESSINGS:
            break
        place, normal = places[index], normals[index]
        if any(np.linalg.norm(place - one.position) < _APART for one in kept):
            continue
        along = (every - place) @ normal
        aside = np.linalg.norm(every - place - along[:, None] * normal, axis=1)
        if not ((along > 0.004) & (along < _FINGER_ROOM[1]) & (aside < _FINGER_ROOM[0])).any():
            kept.append(Pressing(position=place, normal=normal))
    return tuple(kept)


def _score(surface: PartSurface, axes: GraspAxes, place: FloatArray | None) -> FloatArray:
    """Return the scores (N,) of grasp axes, by name, thickness, distance from the hinge and angle; -inf if unusable."""
    joint, middles = surface.plan.joint, axes.middles
    score = axes.alignments - 6 * axes.widths
    if place is not None:
        return score - 100 * np.linalg.norm(middles - place, axis=1)
    center = axes.vertices.mean(axis=0)
    out = (middles - center) @ opening_way(surface.plan, axes.vertices)
    score = score + _STANDS_OUT * np.clip(out, 0.0, 0.15)
    if joint.kind == "hinge":
        reach = np.linalg.norm(np.cross(middles - joint.origin, joint.axis), axis=1)
        far = np.linalg.norm(np.cross(axes.vertices - joint.origin, joint.axis), axis=1).max()
        score = score + 2 * reach / max(float(far), 1e-9)
    else:
        score = score - np.linalg.norm(np.cross(middles - center, joint.axis), axis=1)
    for low, high in surface.named:
        score = score + 2.0 * ((middles >= low - _MARGIN) & (middles <= high + _MARGIN)).all(axis=1)
    for mark in surface.plan.holds:
        score = score + 1.0 * (np.linalg.norm(middles - mark, axis=1) < _NEAR_MARK)
    return score


def _approaches(plan: JointPlan, points: FloatArray, middle: FloatArray, closing: FloatArray) -> list[FloatArray]:
    """Return approach directions (3,) perpendicular to the closing direction, the most likely first."""
    into = -opening_way(plan, points)
    from_hinge = middle - plan.joint.origin
    ways = [
        into,
        np.array((0.0, 0, -1)),
        np.array((1.0, 0, 0)),
        -from_hinge,
        into + (0, 0, -1),
        np.array((1.0, 0, -1)),
    ]
    found: list[FloatArray] = []
    for way in ways:
        across = way - (way @ closing) * closing
        length = float(np.linalg.norm(across))
        if length > 0.5 * np.linalg.norm(way) and length > 1e-9:
            found.append(across / length)
    return found


def _handle(
    middle: FloatArray, closing: FloatArray, approach: FloatArray, width: float, own: FloatArray, near: FloatArray
) -> Handle:
    """Build a handle.

    Args:
        middle: (3,) center of the handle [m].
        closing: (3,) closing direction of the fingers.
        approach: (3,) direction in which the hand approaches.
        width: Distance of the pads [m].
        own: (n, 3) points of the part [m].
        near: (m, 3) points of all geometry near the handle, relative to its center [m].
    """
    along = np.cross(approach, closing)
    ends = [0.0, 0.0]
    for side, sign in enumerate((-1, 1)):
        for angle in _TURNS:
            turned = quat_to_matrix(quat_from_axis_angle(along, sign * angle)) @ approach
            if not _is_free(np.cross(along, turned), turned, width, near):
                break
            ends[side] = sign * angle
    beside = own - middle
    slab = beside[(np.abs(beside @ along) < 0.01) & (np.abs(beside @ closing) < width / 2 + 0.004)] @ approach
    slab = slab[np.abs(slab) < 0.06]
    height = float(np.ptp(slab)) if len(slab) else 1.0
    is_round = width < _ROUND and 0.6 * width < height < 1.7 * width
    return Handle(
        position=middle,
        along=along,
        approach=approach,
        width=width,
        length=0.0,
        turns=(ends[0], ends[1]) if is_round else (max(ends[0], -_TURNS[0]), min(ends[1], _TURNS[0])),
        round=is_round,
    )


def _is_free(closing: FloatArray, approach: FloatArray, width: float, near: FloatArray) -> bool:
    """Return True if open fingers and palm contain none of the points (n, 3) around a handle's center [m]."""
    local = near @ np.column_stack([np.cross(closing, approach), closing, approach])
    pad, side = _HAND.pad_height / 2, np.abs(local[:, 1])
    inner, outer = width / 2 + 0.003, width / 2 + 0.004 + _HAND.finger_thickness
    finger = (np.abs(local[:, 0]) < _HAND.pad_width / 2) & (side > inner) & (side < outer)
    if (finger & (local[:, 2] > -_HAND.finger_depth) & (local[:, 2] < pad)).any():
        return False
    return not ((local > _PALM[0]) & (local < _PALM[1])).all(axis=1).any()


def _dense(pieces: Sequence[Piece]) -> FloatArray:
    """Return points (n, 3) sampled on the surface of convex pieces [m]."""
    if not pieces:
        return np.zeros((0, 3))
    points, faces = piece_triangles(tuple(pieces))
    return sample_surface(points[faces], _POINTS)[0]
