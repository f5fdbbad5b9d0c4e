"""Camera of a proposed task, as near as it can be with everything in the image."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.geometry.cameras import intrinsics, is_in_picture, project, world_T_camera
from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.tasks.task_file import CameraSettings, Region, presets

_DISTANCES = np.arange(0.5, 1.6, 0.05)
"""Distances of the camera from the center of the work area, the nearest first [m]."""
_ABOVE = 0.12
"""Height of the working hand above the table [m]."""
_MARGIN = 0.05
"""Margin along each edge of the image, as a fraction of its size."""
_TURNS = 3
"""Number of corrections by which the work is moved to the middle of the image."""
_LEAST = 18.0
"""Smallest width of a handled object in the image [px]; it is above the doctor's limit, because layouts vary."""
_HEADINGS = np.radians(np.arange(0, 180, 10))
"""Headings of an object that may have any; the outline is equally wide from both sides [rad]."""
_GROWTH = (1.0, 1.25, 1.6, 2.0)
"""Factors on the size of the preset's images that are tried until objects are large enough."""


def frame_work(
    preset: str, regions: Mapping[str, Region], spans: Mapping[str, float], *, top: float, widths: Iterable[float]
) -> dict[str, Any]:
    """Place a camera that has the viewing direction of a preset.

    Args:
        preset: Preset that gives direction, field of view and image size.
        regions: Regions where objects start or are placed, by name.
        spans: Distance by which an object may extend over the edge of a region [m], by the region's name.
        top: Height of the table [m].
        widths: Widths of the handled objects, as the camera sees them [m].

    Returns:
        Entry of the camera for the task file.
    """
    given = CameraSettings.model_validate(presets("cameras")[preset])
    assert given.look_at is not None
    points = np.vstack([_corners(region, spans.get(name, 0.0), top) for name, region in regions.items()])
    begin, back = (points.min(axis=0) + points.max(axis=0)) / 2, np.subtract(given.position, given.look_at)
    back = back / np.linalg.norm(back)
    middle, position, camera = begin, begin, None
    is_behind = given.position[0] < given.look_at[0]  # the arm would fill the image of a camera nearer than its preset
    least = math.dist(given.position, given.look_at) if is_behind else 0.0
    for distance in _DISTANCES[_DISTANCES > least]:
        middle = _centered(points, begin, distance * back, given)
        position = middle + distance * back
        camera = _camera(position, middle, given)
        if _are_inside(camera, points):
            break
    assert camera is not None
    smallest = intrinsics(camera)[0, 0] * min(widths, default=math.inf) / np.linalg.norm(position - middle)
    factor = next((factor for factor in _GROWTH if factor * smallest >= _LEAST), _GROWTH[-1])
    entry: dict[str, Any] = {
        "position": [round(float(value), 2) for value in position],
        "look_at": [round(float(value), 2) for value in middle],
        "vertical_fov": f"{math.degrees(given.vertical_fov):.0f} deg",
    }
    return entry | ({"size": [round(factor * side) for side in given.size]} if factor > 1 else {})


def seen_width(kind: KindEntry, preset: str, *, yaw: float | None = None, state: str = "") -> float:
    """Return the width [m] that a camera with a preset's direction sees of an object at a start on the table.

    Args:
        kind: Kind of the object.
        preset: Preset that gives the direction.
        yaw: Heading [rad]; without it, three of four headings show at least the returned width.
        state: State at the start; in any but the usual rest pose, the smallest side of the object counts.
    """
    if state in ("upright", "lying") and state != kind.rests[0]:
        return min(kind.size)
    given = presets("cameras")[preset]
    ahead = np.subtract(given["look_at"], given["position"])[:2]
    turns = _HEADINGS if yaw is None else np.array([yaw])
    # An axis across the image, in the frame of the object at each heading.
    across = math.atan2(ahead[0], -ahead[1]) - turns
    return float(np.quantile(np.ptp(kind.outline @ np.stack([np.cos(across), np.sin(across)]), axis=0), 0.25))


def _corners(region: Region, span: float, top: float) -> FloatArray:
    """Return the corners (8, 3) of the box above a region and what extends over its edge [m]."""
    signs = np.array(list(np.ndindex(2, 2, 2)), float)
    half = np.array(region.size) / 2 + span
    return np.column_stack([region.center + half * (2 * signs[:, :2] - 1), top + signs[:, 2] * _ABOVE])


def _centered(points: FloatArray, middle: FloatArray, back: FloatArray, given: CameraSettings) -> FloatArray:
    """Move the camera's target (3,) across the line of sight until the points are in the middle of the image."""
    for _ in range(_TURNS):
        camera = _camera(middle + back, middle, given)
        pose = world_T_camera(np.array([camera.position]), np.array([camera.wxyz]))[0]
        seen = project(camera, pose, points)
        if seen[:, 2].min() <= 0:
            break  # a point behind the camera has no position in the image
        seen = seen[:, :2]
        offset = (seen.min(axis=0) + seen.max(axis=0) - (camera.width, camera.height)) / 2
        middle = middle + pose[:3, :2] @ (offset * np.linalg.norm(back) / intrinsics(camera)[0, 0])
    return middle


def _camera(position: FloatArray, target: FloatArray, given: CameraSettings) -> Camera:
    return given.model_copy(update={"position": tuple(position), "look_at": tuple(target)}).camera("front")


def _are_inside(camera: Camera, points: FloatArray) -> bool:
    pose = world_T_camera(np.array([camera.position]), np.array([camera.wxyz]))[0]
    seen = project(camera, pose, points)
    size = np.array((camera.width, camera.height))
    seen[:, :2] = (seen[:, :2] - _MARGIN * size) / (1 - 2 * _MARGIN)
    return bool(is_in_picture(camera, seen).all())
