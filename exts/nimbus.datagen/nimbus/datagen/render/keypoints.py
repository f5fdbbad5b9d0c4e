"""Keypoints of objects and grippers: named points fixed to bodies, and their places in images.

Every renderer uses these functions, so that names, order and meaning of keypoints are the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.episode.observation import CameraFrames, Keypoints, Labels
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import features
from nimbus.datagen.render.camera_model.lens import is_inside
from nimbus.datagen.render.render_inputs import ROBOT
from nimbus.datagen.robots.robot import Manipulator, Robot

HIDDEN, VISIBLE = 1, 2
"""Values of ``keypoint_visibility`` inside the image, as those of COCO; 0 is outside."""
_MARGIN = 0.002
"""Distance by which a surface may be in front of a keypoint that counts as visible [m]: meshes of the robot are
simplified by less. The extent of a pixel at that depth is added, across which a surface at 45 degrees rises as much."""
_NEAR = 1e-3
"""Smallest depth of a keypoint in front of the camera [m]."""
_MOST = 10_000
"""Largest number of keypoints of an episode: 255 objects have fewer."""


def find_keypoints(objects: Sequence[PlacedObject], robot: Robot, labels: Labels) -> Keypoints:
    """Return the keypoints of an episode, object by object, then those of the grippers.

    An object has the named points of its model (``top``, ``handle``, …), six points on its surface (``x_min`` to
    ``z_max``), and points of its moving parts. A gripper has its tool frame, its hand and its fingers.

    Args:
        objects: Objects of the episode.
        robot: The robot.
        labels: Instances of the masks.

    Raises:
        InputError: There are too many.
    """
    found: list[tuple[str, str, str, FloatArray]] = []
    for item in objects:
        for part, name, place in _object_points(item.library, item.kind, item.variant, item.scale):
            body = part_label(item.name, part) if part else item.name
            instance = body if body in labels.instance_names else item.name
            found.append((f"{body}.{name}", body, instance, np.asarray(place)))
    found += [(name, body, ROBOT, place) for arm in robot.arms for name, body, place in _gripper_points(robot, arm)]
    if len(found) > _MOST:
        raise InputError(f"{len(found)} keypoints in one scene", instead="use fewer objects")
    index = {name: place for place, name in enumerate(labels.instance_names)}
    return Keypoints(
        names=tuple(name for name, *_ in found),
        bodies=tuple(body for _, body, _, _ in found),
        instances=np.array([index[name] for *_, name, _ in found], dtype=np.uint8),
        positions=np.array([place for *_, place in found], dtype=np.float64).reshape(-1, 3),
    )


def with_keypoints(
    frames: CameraFrames, keypoints: Keypoints, rows: Mapping[str, int], positions: FloatArray, wxyz: FloatArray
) -> CameraFrames:
    """Add the places of keypoints to a pinhole camera's frames, whose depth decides on visibility.

    Args:
        frames: Frames of K steps.
        keypoints: Q keypoints.
        rows: Row of each body by name.
        positions: (K, B, 3) [m], world frame.
        wxyz: (K, B, 4) unit quaternions.
    """
    places = in_camera(keypoints, rows, positions, wxyz, frames.world_T_camera)
    pixels = project_keypoints(places, frames.intrinsics)
    return replace(
        frames,
        keypoints_3d=places.astype(np.float32),
        keypoints_2d=pixels.astype(np.float32),
        keypoint_visibility=judge_visibility(pixels, places[..., 2], frames.depth, frames.intrinsics),
    )


def in_camera(
    keypoints: Keypoints, rows: Mapping[str, int], positions: FloatArray, wxyz: FloatArray, world_T_camera: FloatArray
) -> FloatArray:
    """Return (K, Q, 3) keypoints in the frames of cameras (K, 4, 4) with OpenCV axes [m]."""
    bodies = [rows[name] for name in keypoints.bodies]
    turned = np.einsum("kqij,qj->kqi", quat_to_matrix(wxyz[:, bodies]), keypoints.positions)
    world = positions[:, bodies] + turned
    return (world - world_T_camera[:, None, :3, 3]) @ world_T_camera[:, :3, :3]


def project_keypoints(places: FloatArray, intrinsics: FloatArray) -> FloatArray:
    """Return (K, Q, 2) column and row [px] of points (K, Q, 3) in the frame of a pinhole camera; NaN behind it."""
    depth = np.where(places[..., 2:] > _NEAR, places[..., 2:], np.nan)
    return places[..., :2] / depth * np.diag(intrinsics)[:2] + intrinsics[:2, 2]


def judge_visibility(
    pixels: FloatArray, distance: FloatArray, depth: NDArray[np.float32], intrinsics: FloatArray
) -> NDArray[np.uint8]:
    """Return (K, Q) 2 where no surface is in front of a point, 1 where one is, 0 outside the image.

    Args:
        pixels: (K, Q, 2) column and row [px].
        distance: (K, Q) along the optical axis [m].
        depth: (K, H, W) of the surfaces [m]; 0 for nothing.
        intrinsics: (3, 3) pinhole matrix [px].
    """
    count, height, width = depth.shape
    inside = is_inside(pixels, width, height)
    column, row = (np.where(inside, pixels[..., axis], 0).astype(int) for axis in (0, 1))
    surface = depth[np.arange(count)[:, None], row, column]
    margin = _MARGIN + distance / intrinsics[0, 0]
    is_free = (surface == 0) | (surface > distance - margin)
    return np.where(inside, np.where(is_free, VISIBLE, HIDDEN), 0).astype(np.uint8)


def _gripper_points(robot: Robot, arm: Manipulator) -> Iterator[tuple[str, str, FloatArray]]:
    """Yield name, body and place in it of a gripper's points."""
    prefix = "gripper" if len(robot.arms) == 1 else f"{arm.name}_gripper"
    yield f"{prefix}.tool", arm.tool.link, np.array(arm.tool.position)
    yield f"{prefix}.hand", arm.tool.link, np.zeros(3)
    for number, link in enumerate(arm.gripper.fingers):
        yield f"{prefix}.finger_{number}", link, np.zeros(3)


@lru_cache(maxsize=512)
def _object_points(library: str, kind: str, variant: int, scale: float) -> tuple[tuple[str, str, FloatArray], ...]:
    """Return moving part (empty for the base), name and place of a model's points; names are unique within a body."""
    model = open_library(library).model(kind, variant, scale)
    found = [
        ("", name, place) for name, place in {**surface_points(model.vertices, model.faces), **features(model)}.items()
    ]
    for part in model.parts:
        points = surface_points(part.vertices, part.faces)
        points |= {name: np.asarray(frame)[:3, 3] for name, frame in part.frames.items()}
        points |= {f"handle_{number}": handle.position for number, handle in enumerate(part.handles)}
        points |= {f"press_{number}": press.position for number, press in enumerate(part.pressings)}
        found += [(part.name, name, place) for name, place in points.items()]
    return tuple(found)


def surface_points(vertices: FloatArray, faces: NDArray[np.integer]) -> dict[str, FloatArray]:
    """Return six points (3,) on a surface: the outermost along each axis through the middle of its bounds [m].

    Where no axis meets the surface, as in a ring, it is the vertex next to the middle of that side of the bounds.

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3) vertices of each triangle.
    """
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    middle, corners = (low + high) / 2, vertices[faces]
    found = {}
    for axis, name in enumerate("xyz"):
        heights = _crossings(np.delete(corners, axis, axis=2), corners[..., axis], np.delete(middle, axis))
        for side, limit in (("min", low), ("max", high)):
            place = middle.copy()
            if len(heights):
                place[axis] = heights.min() if side == "min" else heights.max()
            else:
                place[axis] = limit[axis]
                place = vertices[np.argmin(np.linalg.norm(vertices - place, axis=1))].astype(np.float64)
            found[f"{name}_{side}"] = place
    return found


def _crossings(flat: FloatArray, heights: FloatArray, at: FloatArray) -> FloatArray:
    """Return heights at which triangles, (m, 3, 2) seen along an axis with heights (m, 3), cross it at a place (2,)."""
    one, other, to = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0], at - flat[:, 0]
    area = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        s = (to[:, 0] * other[:, 1] - to[:, 1] * other[:, 0]) / area
        t = (one[:, 0] * to[:, 1] - one[:, 1] * to[:, 0]) / area
        hit = (np.abs(area) > 1e-12) & (s >= -1e-9) & (t >= -1e-9) & (s + t <= 1 + 1e-9)
    s, t, heights = s[hit], t[hit], heights[hit]
    return heights[:, 0] + s * (heights[:, 1] - heights[:, 0]) + t * (heights[:, 2] - heights[:, 0])
