"""Ranking of grasps on the axes of an object in its pose."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.canonical_grasp import add_central_axes, distance_from_canonical, price_of_support, turn_home
from nimbus.datagen.plan.grasp import Grasp, GraspAxes, GripperShape

_TURNS = np.array([0.0, 0.3, -0.3, 0.6, -0.6])
"""Rotations of the hand about the closing axis, relative to the one with the steepest approach [rad]."""
_SUPPORT_DEPTH = 0.0015
"""Distance within which a surface supports a pad [m]."""
_LEAST_SUPPORT = 0.12
"""Smallest fraction of a pad that must meet the surface."""
_MAX_DRAW_BACK = 0.009
"""Largest retreat of the hand along its approach that keeps the pads off the table [m]."""


def rank_grasps(
    axes: GraspAxes,
    world_T_object: ArrayLike,
    *,
    table_height: float = 0.0,
    max_tilt: float = 1.1,
    pad_clearance: float = 0.0025,
    limit: int = 40,
    turns: ArrayLike = _TURNS,
    home_heading: float | None = None,
) -> list[Grasp]:
    """Return hands that could close on an object in its pose, best first.

    The best grasps are those that hold it most firmly or, with a home heading, those nearest to the canonical grasp.

    Args:
        axes: Axes of the object.
        world_T_object: (4, 4) pose of the object.
        table_height: Height of the object's support [m].
        max_tilt: Largest angle between the approach and straight down [rad].
        pad_clearance: Clearance of the pads above the table [m].
        limit: Largest number of grasps.
        turns: Rotations of the hand about the closing axis, relative to the one with the steepest approach [rad].
        home_heading: Heading of the closing axis of the arm's home posture [rad].
    """
    world = np.asarray(world_T_object, dtype=float)
    central = None
    if home_heading is not None:
        central = add_central_axes(axes, world, heading=home_heading, table_height=table_height)
        axes = central.axes
    frames, origins, which, tilt = _hands(axes, world, max_tilt, np.asarray(turns, dtype=float))
    origins, drawn_back = _off_the_table(axes.gripper, frames, origins, table_height + pad_clearance)
    if central is None or home_heading is None:
        score = _firmness(axes, world, origins, which, tilt / max_tilt)
    else:
        frames = turn_home(frames, home_heading)
        score = -distance_from_canonical(
            central,
            world,
            frames=frames,
            origins=origins,
            which=which,
            tilt=tilt,
            heading=home_heading,
            table_height=table_height,
        )
    grasps: list[Grasp] = []
    object_T_world = np.linalg.inv(world)
    order = np.argsort(-score, kind="stable")
    order = order[drawn_back[order] <= _MAX_DRAW_BACK]
    # Computing the support of the pads is costly: it is computed for five times as many grasps as needed.
    best = _under_the_palm(axes, world, frames, origins, order, 5 * limit)
    points, density = (axes.surface, axes.density) if central is None else (axes.dense_surface, axes.dense_density)
    surface = points @ world[:3, :3].T + world[:3, 3]
    support = np.array(
        [_support(axes.gripper, surface, frames[i], origins[i], float(axes.widths[which[i]])) for i in best]
    )
    support /= density * axes.gripper.pad_width * axes.gripper.pad_height
    final = score[best] + (0.3 * np.minimum(support, 1.0) if central is None else -price_of_support(support))
    for place in np.argsort(-final, kind="stable"):
        index = best[place]
        if support[place] < _LEAST_SUPPORT or len(grasps) == limit:
            continue
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = frames[index], origins[index]
        grasp = Grasp(
            world_T_tool=pose,
            object_T_tool=object_T_world @ pose,
            width=float(axes.widths[which[index]]),
            score=float(final[place]),
        )
        if not any(map(grasp.resembles, grasps)):
            grasps.append(grasp)
    return grasps


def _under_the_palm(
    axes: GraspAxes, world: FloatArray, frames: FloatArray, origins: FloatArray, order: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return the first hands of an order, (C,) indices, whose palm is clear of the shape."""
    vertices = axes.vertices @ world[:3, :3].T + world[:3, 3]
    found = order[:0]
    for first in range(0, len(order), count):
        some = order[first : first + count]
        fits = _depths(vertices, frames[some], origins[some]) <= axes.gripper.finger_depth
        found = np.append(found, some[fits])[:count]
        if len(found) == count:
            break
    return found


def _firmness(
    axes: GraspAxes, world: FloatArray, origins: FloatArray, which: NDArray[np.int64], tilt: FloatArray
) -> FloatArray:
    """Return the firmness (C,) of hands, from pad alignment, centering, clearance and steepness."""
    center = world[:3, :3] @ axes.center + world[:3, 3]
    near = 1.0 - np.minimum(1.0, np.linalg.norm(origins - center, axis=1) / axes.radius)
    roomy = np.clip((axes.gripper.opening - axes.widths[which]) / 0.02, 0.0, 1.0)
    score: FloatArray = 0.3 * axes.alignments[which] + 0.3 * near + 0.1 * roomy - 0.5 * tilt
    return score


def _hands(
    axes: GraspAxes, world: FloatArray, max_tilt: float, turns: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.int64], FloatArray]:
    """Return tool frames (C, 3, 3) and origins (C, 3) in the world, the axis of each, and its tilt [rad]."""
    closing = axes.directions @ world[:3, :3].T
    middles = axes.middles @ world[:3, :3].T + world[:3, 3]
    # An almost vertical closing axis has no approach from above.
    level = np.flatnonzero(np.abs(closing[:, 2]) < 0.98)
    closing = closing[level]
    down = closing * closing[:, 2:] - (0.0, 0.0, 1.0)
    down /= np.linalg.norm(down, axis=1, keepdims=True)
    side = np.cross(closing, down)
    approach = np.cos(turns)[:, None, None] * down + np.sin(turns)[:, None, None] * side
    approach = approach.reshape(-1, 3)
    closing = np.tile(closing, (len(turns), 1))
    which = np.tile(level, len(turns))
    tilt = np.arccos(np.clip(-approach[:, 2], -1.0, 1.0))
    keep = tilt <= max_tilt
    frames = np.stack([np.cross(closing, approach), closing, approach], axis=2)[keep].astype(float, copy=False)
    return frames, middles[which[keep]], which[keep], tilt[keep]


def _off_the_table(
    gripper: GripperShape, frames: FloatArray, origins: FloatArray, height: float
) -> tuple[FloatArray, FloatArray]:
    """Retreat origins along the approach until the open finger tips are above a height; also return the distances."""
    half = 0.5 * np.array([gripper.pad_width, gripper.opening + 2 * gripper.finger_thickness, gripper.pad_height])
    reach = np.abs(frames[:, 2]) @ half
    missing = np.maximum(0.0, height + reach - origins[:, 2])
    back = missing / np.maximum(-frames[:, 2, 2], 0.1)
    return origins - back[:, None] * frames[:, :, 2], back


def _depths(vertices: FloatArray, frames: FloatArray, origins: FloatArray) -> FloatArray:
    """Return the height of a shape above the pad centers, toward the palm of each hand [m]."""
    x = vertices @ frames[:, :, 0].T - np.einsum("ij,ij->i", origins, frames[:, :, 0])
    z = vertices @ frames[:, :, 2].T - np.einsum("ij,ij->i", origins, frames[:, :, 2])
    return np.where(np.abs(x) < 0.03, -z, 0.0).max(axis=0, initial=0.0)


def _support(
    gripper: GripperShape,
    surface: FloatArray | NDArray[np.float32],
    frame: FloatArray,
    origin: FloatArray,
    width: float,
) -> float:
    """Count the surface points covered by the less supported of the two pads."""
    local = (surface - origin) @ frame
    covered = (np.abs(local[:, 0]) < gripper.pad_width / 2) & (np.abs(local[:, 2]) < gripper.pad_height / 2)
    y = local[covered, 1]
    sides = [np.count_nonzero(np.abs(y - sign * 0.5 * width) < _SUPPORT_DEPTH) for sign in (-1, 1)]
    return float(min(sides))
