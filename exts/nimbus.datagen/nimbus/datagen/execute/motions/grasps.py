"""Grasps of objects: sampled axes of a variant, tilted hands, and grasps for a handover."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.plan.grasp import Grasp, GraspAxes, GripperShape, find_axes
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.random_streams import generator

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.episode.layout import PlacedObject
    from nimbus.datagen.objects.model import ObjectModel
    from nimbus.datagen.plan.grasp import GraspAxes
    from nimbus.datagen.tasks.workcell_interface import Workcell

_THINNEST_WALL = 0.002
"""Thinnest wall by which a container is held [m]."""
_TURNS = (0.6, -0.6, 0.9, -0.9, 1.2, -1.2, 1.4, -1.4, 1.57, -1.57)
"""Rotations of the hand from straight down that are tried [rad]."""
_CLEAR = 0.015
"""Clearance of the arm's links [m]; they are close to the table when the hand is level."""
_THICK = 0.018
"""Thickness below which a feature counts as a wall or a handle [m]."""
_ROUND_THE_AXIS = np.arange(24) * (2 * np.pi / 24)
"""Approach directions about an axis [rad]."""
_APART = 0.03
"""Smallest distance between the pad centers of the two hands [m]."""
_FAR = 0.07
"""Distance between the two hands beyond which the score does not improve further [m]."""
_LEAST_ANGLE = np.cos(np.radians(35))
"""Cosine of the smallest angle between the approaches of the two hands; at smaller angles the hands touch."""
_PUTS_DOWN = np.cos(np.radians(62))
"""Cosine of the largest tilt from straight down at which the object can be put down later."""
_ABOVE_TABLE = 0.003
"""Clearance of the finger tips above the support when the object is put down [m]."""
_MOST_TILT, _MOST_HELD = 1.1, 40
"""Limits on the grasps that are taken from the trial at import: tilt from straight down [rad], and number."""
_NEAR = 0.03
"""Distance to the tool's x-z plane within which geometry can touch the palm [m]."""


def grasp_axes(item: PlacedObject, gripper: GripperShape) -> GraspAxes:
    """Return antipodal axes in the object's own frame, sampled once per variant."""
    return model_axes(item.library, item.kind, item.variant, gripper, item.scale)


def model_axes(library: str, kind: str, variant: int, gripper: GripperShape, scale: float = 1.0) -> GraspAxes:
    """Return grasp axes of a variant of an open library."""
    return _library_axes(open_library(library), kind, variant, gripper, scale)


@lru_cache(maxsize=512)
def _library_axes(library: ObjectLibrary, kind: str, variant: int, gripper: GripperShape, scale: float) -> GraspAxes:
    # The key is the library itself, because another library may later have the same name.
    return find_model_axes(library.model(kind, variant, scale), gripper)


def find_model_axes(model: ObjectModel, gripper: GripperShape) -> GraspAxes:
    """Return grasp axes of a model."""
    # The stream belongs to the variant, not to the episode: axes are equal in all episodes and can be cached.
    rng = generator(0, "grasps", model.kind, model.variant)
    if not model.open_inside:
        return find_axes(model.vertices, model.faces, gripper, rng=rng, center_of_mass=model.center_of_mass)
    return find_axes(
        model.vertices,
        model.faces,
        gripper,
        rng=rng,
        center_of_mass=model.center_of_mass,
        min_width=_THINNEST_WALL,
        open_inside=True,
    )


def prefer_tried(
    ranked: list[Grasp], model: ObjectModel, world_T_object: FloatArray, gripper: GripperShape, *, table_height: float
) -> list[Grasp]:
    """Order grasps by the trial at import: first those that held, then untested ones, then those that failed.

    If none of the ranked grasps held, the grasps that held in the trial come first, sorted by their tilt.

    Args:
        ranked: Grasps, best first.
        model: The object.
        world_T_object: (4, 4) pose of the object.
        gripper: Shape of the gripper.
        table_height: Height of the support [m].
    """
    if not any(one.holds for one in model.tried_grasps):
        return ranked
    turns = _ROUND_THE_AXIS if model.symmetry == "revolution" else _ROUND_THE_AXIS[:1]
    about_z = np.array([make_transform((0, 0, 0), quat_from_axis_angle((0, 0, 1), turn)) for turn in turns])
    poses = np.array([about_z @ one.object_T_tool for one in model.tried_grasps]).reshape(-1, 4, 4)
    holds = np.repeat([one.holds for one in model.tried_grasps], len(turns))
    widths = np.repeat([one.width for one in model.tried_grasps], len(turns))
    marks = [set(holds[grasp.find_alike(poses)].tolist()) for grasp in ranked]
    best = [grasp for grasp, mark in zip(ranked, marks, strict=True) if True in mark]
    if not best:
        best = [
            Grasp(world_T_tool=world_T_object @ pose, object_T_tool=pose, width=float(width), score=0.0)
            for pose, width in zip(poses[holds], widths[holds], strict=True)
            if width <= gripper.max_width
        ]
        best = sorted((grasp for grasp in best if _is_above(grasp, gripper, table_height)), key=lambda one: one.tilt)
    others = [grasp for grasp, mark in zip(ranked, marks, strict=True) if not mark]
    failed = [grasp for grasp, mark in zip(ranked, marks, strict=True) if mark == {False}]
    return [*best[:_MOST_HELD], *others, *failed]


def _is_above(grasp: Grasp, gripper: GripperShape, height: float) -> bool:
    """Return True if a hand comes from above and its open fingers stay above a height [m]."""
    half = 0.5 * np.array([gripper.pad_width, gripper.opening + 2 * gripper.finger_thickness, gripper.pad_height])
    pose = grasp.world_T_tool
    return grasp.tilt < _MOST_TILT and bool(pose[2, 3] - np.abs(pose[2, :3]) @ half > height + 1e-3)


def make_tilted_grasps(cell: Workcell, name: str, *, least_tilt: float, limit: int = 60) -> list[Grasp]:
    """Return grasps of an object with a tilted hand that leave clearance for the arm, best first.

    Args:
        cell: The scene.
        name: The object.
        least_tilt: Smallest tilt of the hand from straight down [rad].
        limit: Number of grasps that are checked.
    """
    item = cell.objects[name]
    ranked = rank_grasps(
        _axes_around(item.library, item.kind, item.variant, item.scale, cell.robot.gripper.shape),
        cell.pose(name),
        table_height=cell.lowest_point(name),
        max_tilt=1.58,
        limit=limit,
        turns=[turn for turn in _TURNS if abs(turn) >= least_tilt],
    )
    leaning = [grasp for grasp in ranked if -grasp.world_T_tool[2, 2] <= np.cos(least_tilt)]
    return [grasp for grasp in leaning if _has_room(cell, grasp)]


def _has_room(cell: Workcell, grasp: Grasp) -> bool:
    """Return True if the arm reaches the grasp with all links clear; the plan checks the gripper."""
    scene = cell.scene
    q = scene.arm.solve(grasp.world_T_tool, cell.arm_command)
    if q is None:
        return False
    with scene.nearer(_CLEAR):
        return all(scene.gripper_bodies.intersection(pair) for pair in scene.contacts(q))


@lru_cache(maxsize=128)
def _axes_around(library: str, kind: str, variant: int, scale: float, gripper: GripperShape) -> GraspAxes:
    """Return axes through the whole body, as if it were solid."""
    model = open_library(library).model(kind, variant, scale)
    rng = generator(0, "side grasps", kind, variant)
    return find_axes(
        model.vertices, model.faces, gripper, rng=rng, center_of_mass=model.center_of_mass, min_width=_THICK
    )


def make_handover_grasps(giver: Workcell, receiver: Workcell, name: str, *, limit: int = 24) -> list[FloatArray]:
    """Return tool poses (4, 4) in which the receiver can take an object from the giver's hand, best first.

    Args:
        giver: Arm that holds the object.
        receiver: Arm that takes it.
        name: The object.
        limit: Largest number of poses.
    """
    axes = grasp_axes(receiver.objects[name], receiver.robot.gripper.shape)
    frames, origins, score = _hands(axes, receiver.pose(name))
    hand = giver.tool_pose()
    apart = np.linalg.norm(origins - hand[:3, 3], axis=1)
    same_side = frames[:, :, 2] @ hand[:3, 2]
    away: FloatArray = receiver.pose(name)[:3, 3] - receiver.pose(receiver.base_link())[:3, 3]
    away /= np.linalg.norm(away)
    # Limits on distance, angle and depth come first. Among the remaining grasps, the score prefers hands that are far
    # apart, approaches that point away from the receiver's base, and approaches from opposite sides.
    keep = (apart > _APART) & (same_side < _LEAST_ANGLE)
    from_above = _from_above(receiver, axes, name, frames, origins)
    keep &= from_above > _PUTS_DOWN
    keep &= _depths(axes.vertices, receiver.pose(name), frames, origins) <= axes.gripper.finger_depth
    score = score + np.minimum(apart, _FAR) / _FAR + 0.5 * (frames[:, :, 2] @ away) - 0.3 * same_side
    score = score - 0.3 * np.maximum(frames[:, 2, 2], 0.0) + 0.5 * from_above
    found: list[FloatArray] = []
    for index in np.flatnonzero(keep)[np.argsort(-score[keep], kind="stable")]:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = frames[index], origins[index]
        if not any(_alike(pose, other) for other in found):
            found.append(pose)
        if len(found) == limit:
            break
    return found


def _hands(axes: GraspAxes, world: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return frames (C, 3, 3), origins (C, 3) [m] and pad-to-surface alignments (C,) of all approaches to all axes."""
    closing = axes.directions @ world[:3, :3].T
    middles = axes.middles @ world[:3, :3].T + world[:3, 3]
    any_axis = np.where(np.abs(closing[:, :1]) < 0.7, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    first = np.cross(closing, any_axis)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(closing, first)
    approach = np.cos(_ROUND_THE_AXIS)[:, None, None] * first + np.sin(_ROUND_THE_AXIS)[:, None, None] * second
    shape = (len(_ROUND_THE_AXIS), *closing.shape)
    y = np.broadcast_to(closing, shape).reshape(-1, 3)
    z = approach.reshape(-1, 3)
    frames: FloatArray = np.stack([np.cross(y, z), y, z], axis=2).astype(float)
    origins = np.broadcast_to(middles, shape).reshape(-1, 3)
    return frames, origins, np.tile(axes.alignments, len(_ROUND_THE_AXIS))


def _from_above(cell: Workcell, axes: GraspAxes, name: str, frames: FloatArray, origins: FloatArray) -> FloatArray:
    """Return the largest downward component (C,) of each approach over the object's rest poses.

    A rest pose in which the open fingers would penetrate the table does not count.
    """
    world_T_object, gripper = cell.pose(name), axes.gripper
    # Hands in the object's frame, because rest poses are given in that frame.
    turned = world_T_object[:3, :3].T @ frames
    places = (origins - world_T_object[:3, 3]) @ world_T_object[:3, :3]
    half = 0.5 * np.array([gripper.pad_width, gripper.opening + 2 * gripper.finger_thickness, gripper.pad_height])
    best = np.full(len(frames), -1.0)
    for rest in cell.model(name).rest_poses:
        up = quat_to_matrix(rest.wxyz)[2]
        rows = np.einsum("i,cij->cj", up, turned)
        tips = places @ up - (axes.vertices @ up).min() - np.abs(rows) @ half
        best = np.maximum(best, np.where(tips > _ABOVE_TABLE, -rows[:, 2], -1.0))
    return best


def _depths(vertices: FloatArray, world: FloatArray, frames: FloatArray, origins: FloatArray) -> FloatArray:
    """Return the extent of a shape from the pad center toward the palm, for each hand [m]."""
    points = vertices @ world[:3, :3].T + world[:3, 3]
    x = points @ frames[:, :, 0].T - np.einsum("ij,ij->i", origins, frames[:, :, 0])
    z = points @ frames[:, :, 2].T - np.einsum("ij,ij->i", origins, frames[:, :, 2])
    return np.where(np.abs(x) < _NEAR, -z, 0.0).max(axis=0, initial=0.0)


def _alike(one: FloatArray, other: FloatArray) -> bool:
    return bool(np.abs(one[:3, 3] - other[:3, 3]).max() < 0.008 and one[:3, 2] @ other[:3, 2] > 0.95)
