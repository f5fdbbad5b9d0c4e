"""Check of stored masks, boxes and depth against projected poses, without rendering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.episode.observation import CameraFrames, Labels
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.objects.grains import GrainHeap
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.camera_model.sensor import shown_poses
from nimbus.datagen.store.episode_file.read import EpisodeFile

PIXELS = 1.5
"""Distance by which visible pixels may exceed the projected box [px]."""
METRES = 0.01
"""Distance by which a depth may be outside the box [m]; sensors are noisy."""
_NEAR = 0.02
"""Depth of a box's nearest point below which the box is not projected [m]."""


@dataclass(frozen=True, kw_only=True)
class LabelCheck:
    """Result of the check of one episode."""

    views: int
    """Number of compared pairs of image and instance."""
    problems: tuple[str, ...]
    """Contradictions, one line each."""


def check_labels(episode: EpisodeFile, steps: NDArray[np.int64]) -> LabelCheck:
    """Check some steps of an episode in all cameras.

    Args:
        episode: Stored episode.
        steps: (S,) numbers of the steps, from 0.

    Raises:
        InputError: The file is damaged.
    """
    labels = episode.labels
    if labels is None:
        return LabelCheck(views=0, problems=())
    layout = episode.layout()
    bodies = {name: row for row, name in enumerate(episode.texts("names/bodies"))}
    flexible: dict[str, list[int]] = {}
    for name, row in bodies.items():
        thing, _, point = name.partition(".")
        if point.isdecimal():  # moving parts have names, points of flexible objects have numbers
            flexible.setdefault(thing, []).append(row)
    grains = {item.name: heap.radius for item in layout.physical.objects if (heap := _heap(item))} if flexible else {}
    positions, wxyz = episode.array("observations/body_positions"), episode.array("observations/body_wxyz")
    visual = layout.visual
    positions, wxyz = shown_poses(positions, wxyz, rate=episode.rate, latency=visual.latency)
    lenses = {camera.name: camera.distortion for camera in visual.cameras}
    views, problems = 0, []
    for camera in episode.cameras:
        if not {"depth", "instance", "boxes"} <= {*episode.modalities(camera)}:
            continue
        for step in steps.tolist():
            frames = episode.frames(camera, step, step + 1)
            for number in range(1, len(labels.instance_names)):
                body = labels.instance_bodies[number]
                row, still = bodies.get(body, -1), not body and np.isfinite(labels.boxes_3d[number]).all()
                if (row < 0 and not still) or np.isnan(frames.boxes_2d[0, number]).any():
                    continue
                views += 1
                box = _points(labels, number)  # static objects: in the world frame
                own = flexible.get(body)
                if own and body in grains:
                    box = grain_points(positions[step, own], grains[body])
                elif own:
                    box = bent_points(positions[step, own], wxyz[step, own], thickness=float(np.ptp(box[:, 2])))
                elif not still:
                    box = box @ quat_to_matrix(wxyz[step, row]).T + positions[step, row]
                where = f"{episode.episode_id}, {camera}, step {step}, {labels.instance_names[number]}"
                problems += [
                    f"{where}: {what}" for what in _compare(frames, number, box, lenses.get(camera, (0.0, 0.0)))
                ]
    return LabelCheck(views=views, problems=tuple(problems))


def _compare(frames: CameraFrames, number: int, box: FloatArray, lens: tuple[float, float]) -> Iterator[str]:
    """Yield the contradictions between the labels of one instance in one image and its pose.

    Args:
        frames: One step of a camera.
        number: Number of the instance.
        box: (P, 3) points on the instance's box in the world frame [m].
        lens: Radial distortion of the camera, k1 and k2.
    """
    mask, stored = frames.instance[0] == number, frames.boxes_2d[0, number]
    rows, columns = np.nonzero(mask)
    if not len(rows):
        yield "the instance has a box but no pixel in the mask"
        return
    seen = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1], np.float64)
    if np.abs(seen - stored).max() > 0.5:
        yield f"the stored box is {_told(stored)}, the box of the mask is {_told(seen)}"
    camera_T_world = np.linalg.inv(frames.world_T_camera[0])
    inside = box @ camera_T_world[:3, :3].T + camera_T_world[:3, 3]
    depth = inside[:, 2]
    if depth.min() < _NEAR:
        return
    flat = inside[:, :2] / inside[:, 2:]
    square = (flat**2).sum(axis=1, keepdims=True)
    matrix = frames.intrinsics
    pixels = flat * (1.0 + square * (lens[0] + lens[1] * square)) @ matrix[:2, :2].T + matrix[:2, 2]
    low, high = pixels.min(axis=0) - PIXELS, pixels.max(axis=0) + PIXELS
    if np.any(seen[:2] < low) or np.any(seen[2:] > high):
        yield f"the mask is at {_told(seen)}, the pose projects to {_told(np.concatenate([low, high]))}"
    found = frames.depth[0][mask]
    found = found[found > 0]
    if len(found) and not depth.min() - METRES <= np.median(found) <= depth.max() + METRES:
        yield f"the depth is {np.median(found):.3f} m, the pose is at {depth.min():.3f} to {depth.max():.3f} m"


def _points(labels: Labels, number: int) -> FloatArray:
    """Return points (P, 3) on an instance's box in the frame of its body [m]; dense, because lenses bend edges."""
    low, high = labels.boxes_3d[number]
    return np.array([*product(*np.linspace(low, high, 5).T)])


def bent_points(positions: FloatArray, wxyz: FloatArray, *, thickness: float) -> FloatArray:
    """Return points (P, 3) around a cloth or a cable in the world frame [m].

    Args:
        positions: (V, 3) vertices of a cloth, or starts of the links of a cable [m].
        wxyz: (V, 4) orientations of the same bodies.
        thickness: Thickness of the visible mesh at rest [m]; 0 for a cloth, which is a sheet.
    """
    if not thickness:
        return positions
    link = np.linalg.norm(positions[1] - positions[0])
    joints = np.vstack([positions, positions[-1] + link * quat_to_matrix(wxyz[-1])[:, 0]])
    corners = thickness / 2 * np.array([*product((-1.0, 1.0), repeat=3)])
    return (joints[:, None] + corners).reshape(-1, 3)


def grain_points(positions: FloatArray, radius: float) -> FloatArray:
    """Return the corners (P, 3) of boxes around grains in the world frame [m].

    Args:
        positions: (V, 3) centers of the grains [m].
        radius: Radius of each grain [m].
    """
    corners = radius * np.array([*product((-1.0, 1.0), repeat=3)])
    return (positions[:, None] + corners).reshape(-1, 3)


def _heap(item: PlacedObject) -> GrainHeap | None:
    return open_library(item.library).model(item.kind, item.variant, item.scale).heap


def _told(box: NDArray[np.floating]) -> str:
    return " ".join(f"{value:.0f}" for value in box)
