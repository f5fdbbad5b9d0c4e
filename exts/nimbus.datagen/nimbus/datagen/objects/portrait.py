"""A picture of one object, seen from above and in front: enough to judge by eye, without a simulator."""

from __future__ import annotations

import numpy as np
from PIL import Image as PillowImage

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray, IntArray
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.objects.articulated.pose import object_T_part
from nimbus.datagen.objects.model import ObjectModel

_TURN, _RISE = np.deg2rad(35.0), np.deg2rad(32.0)
"""Direction to the eye: from the front towards the right, and upwards [rad]."""
_LIGHT = np.array([0.35, -0.55, 0.76])
_OPEN = 0.3
"""Of the way of each part."""
_PAPER = np.array([246.0, 246.0, 243.0])
_SAMPLES = 2
"""Along each side of a pixel."""


def portrait(model: ObjectModel, *, pixels: int = 160, span: float | None = None) -> ImageArray:
    """(pixels, pixels, 3) of an object, front to the lower left, in parallel projection.

    Args:
        model: What to draw.
        pixels: Width and height.
        span: Width of the picture [m]; the object fills it when left out.
    """
    size = pixels * _SAMPLES
    axes = _axes()
    vertices, normals, uvs, faces = _whole(model)
    points = vertices @ axes.T
    low, high = points.min(axis=0), points.max(axis=0)
    span = span or 1.12 * float((high - low)[:2].max())
    points = (points - (low + high) / 2) * (size / span)
    points[:, :2] += size / 2
    face, place, weights = _covered(points[faces], size)
    corners = faces[face]
    uv = np.einsum("ij,ijk->ik", weights, uvs[corners])
    normal = np.einsum("ij,ijk->ik", weights, normals[corners])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    shade = 0.45 + 0.6 * np.clip(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0, 1)
    picture = np.tile(_PAPER, (size * size, 1))
    picture[place] = np.clip(_texels(model.texture, uv) * shade[:, None], 0, 255)
    image = picture.reshape(size, size, 3)[::-1].reshape(pixels, _SAMPLES, pixels, _SAMPLES, 3).mean(axis=(1, 3))
    return np.asarray(PillowImage.fromarray((image + 0.5).astype(np.uint8)))


def _whole(model: ObjectModel) -> tuple[FloatArray, FloatArray, FloatArray, IndexArray]:
    """Vertices, normals, uvs and faces; of what has parts, with these a little open and its front to the eye."""
    pieces = [(model.vertices, model.normals, model.uvs, model.faces)]
    for part in model.parts:
        low, high = part.joint.range
        place = object_T_part(part, low + _OPEN * (high - low))
        turn = place[:3, :3].T
        pieces.append((part.vertices @ turn + place[:3, 3], part.normals @ turn, part.uvs, part.faces))
    starts = np.cumsum([0, *(len(piece[0]) for piece in pieces)])
    vertices, normals, uvs = (np.concatenate(arrays) for arrays in zip(*(piece[:3] for piece in pieces), strict=True))
    faces = np.concatenate([piece[3] + start for piece, start in zip(pieces, starts, strict=False)])
    front = quat_to_matrix(quat_from_axis_angle((0, 0, 1), np.pi / 2)).T if model.parts else np.eye(3)
    return vertices @ front, normals @ front, uvs, faces


def _axes() -> FloatArray:
    """Rows: right, up and towards the eye."""
    toward = np.array([np.sin(_TURN) * np.cos(_RISE), -np.cos(_TURN) * np.cos(_RISE), np.sin(_RISE)])
    right = np.array([np.cos(_TURN), np.sin(_TURN), 0.0])
    return np.array([right, np.cross(toward, right), toward])


def _covered(triangles: FloatArray, size: int) -> tuple[IntArray, IntArray, FloatArray]:
    """The face seen at each covered pixel, the pixel's place, and the weights of the face's corners.

    Args:
        triangles: (m, 3, 3) in pixels, depth towards the eye.
        size: Width and height [px].
    """
    low = np.clip(np.floor(triangles[..., :2].min(axis=1) - 0.5).astype(int), 0, size - 1)
    high = np.clip(np.ceil(triangles[..., :2].max(axis=1) + 0.5).astype(int), 0, size - 1)
    extent = high - low + 1
    counts = extent.prod(axis=1)
    face = np.repeat(np.arange(len(triangles)), counts)
    step = np.arange(len(face)) - np.repeat(np.cumsum(counts) - counts, counts)
    column, row = low[face, 0] + step % extent[face, 0], low[face, 1] + step // extent[face, 0]
    a, b, c = (triangles[:, corner] for corner in range(3))
    double = _cross(b - a, c - a)
    at = np.column_stack([column + 0.5, row + 0.5])
    safe = np.where(np.abs(double) < 1e-9, np.inf, double)[face]
    second = _cross(at - a[face, :2], (c - a)[face]) / safe
    third = _cross((b - a)[face], at - a[face, :2]) / safe
    weights = np.column_stack([1 - second - third, second, third])
    inside = (weights >= -1e-9).all(axis=1) & np.isfinite(safe) & (double[face] > 0)
    face, weights, place = face[inside], weights[inside], (row * size + column)[inside]
    depth = np.einsum("ij,ij->i", weights, triangles[face, :, 2])
    order = np.lexsort((depth, place))
    last = np.flatnonzero(np.r_[np.diff(place[order]) > 0, True]) if len(order) else order
    chosen = order[last]
    return face[chosen], place[chosen], weights[chosen]


def _cross(one: FloatArray, two: FloatArray) -> FloatArray:
    return one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0]


def _texels(texture: ImageArray, uv: FloatArray) -> FloatArray:
    height, width = texture.shape[:2]
    column = np.clip((uv[:, 0] % 1.0001 * width).astype(int), 0, width - 1)
    row = np.clip(((1 - uv[:, 1] % 1.0001) * height).astype(int), 0, height - 1)
    return texture[row, column].astype(np.float64)
