"""A picture of one object, seen from above and in front: enough to judge by eye, without a simulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image as PillowImage

from nimbus.datagen.arrays import BoolArray, FloatArray, ImageArray, IndexArray, IntArray
from nimbus.datagen.geometry.coverage import cover_pixels
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


@dataclass(frozen=True, kw_only=True)
class PaintedMesh:
    """Mesh with a texture, to be drawn."""

    vertices: FloatArray
    """(n, 3)"""
    normals: FloatArray
    """(n, 3) unit."""
    uvs: FloatArray
    """(n, 2), v up."""
    faces: IndexArray
    """(m, 3)"""
    texture: ImageArray
    """(H, W, 3) sRGB."""


def portrait(
    model: ObjectModel, *, pixels: int = 160, span: float | None = None, turn: float = _TURN, rise: float = _RISE
) -> ImageArray:
    """(pixels, pixels, 3) of an object, front to the lower left, in parallel projection.

    Args:
        model: What to draw.
        pixels: Width and height.
        span: Width of the picture [m]; the object fills it when left out.
        turn: Direction to the eye, from the front towards the right [rad].
        rise: The same upwards [rad].
    """
    mesh, axes = _whole(model), view_axes(turn, rise)
    points = mesh.vertices @ axes.T
    low, high = points.min(axis=0), points.max(axis=0)
    span = span or 1.12 * float((high - low)[:2].max())
    image, _ = draw(mesh, axes, center=(low + high) / 2, span=span, size=pixels * _SAMPLES)
    small = image.reshape(pixels, _SAMPLES, pixels, _SAMPLES, 3).mean(axis=(1, 3))
    return np.asarray(PillowImage.fromarray((small + 0.5).astype(np.uint8)))


def draw(
    mesh: PaintedMesh, axes: FloatArray, *, center: FloatArray, span: float, size: int
) -> tuple[FloatArray, BoolArray]:
    """Draw a mesh in parallel projection.

    Args:
        mesh: What to draw.
        axes: (3, 3) rows: right, up and towards the eye.
        center: (3,) of the picture, along the axes [m].
        span: Width of the picture [m].
        size: Width and height [px].

    Returns:
        (size, size, 3) sRGB on paper, and (size, size) True where the mesh is seen.
    """
    points = (mesh.vertices @ axes.T - center) * (size / span)
    points[:, :2] += size / 2
    seen = cover_pixels(points[mesh.faces], size, size)
    corners = mesh.faces[seen.face]
    uv = np.einsum("ij,ijk->ik", seen.weights, mesh.uvs[corners])
    normal = np.einsum("ij,ijk->ik", seen.weights, mesh.normals[corners])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    shade = 0.45 + 0.6 * np.clip(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0, 1)
    picture, covered = np.tile(_PAPER, (size * size, 1)), np.zeros(size * size, dtype=bool)
    picture[seen.pixel], covered[seen.pixel] = np.clip(sample_texture(mesh.texture, uv) * shade[:, None], 0, 255), True
    return picture.reshape(size, size, 3)[::-1], covered.reshape(size, size)[::-1]


def _whole(model: ObjectModel) -> PaintedMesh:
    """The object; of what has parts, with these a little open and its front to the eye."""
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
    return PaintedMesh(vertices=vertices @ front, normals=normals @ front, uvs=uvs, faces=faces, texture=model.texture)


def view_axes(turn: float, rise: float) -> FloatArray:
    """(3, 3) rows: right, up and towards the eye, which is turned from the front to the right and raised [rad]."""
    toward = np.array([np.sin(turn) * np.cos(rise), -np.cos(turn) * np.cos(rise), np.sin(rise)])
    right = np.array([np.cos(turn), np.sin(turn), 0.0])
    return np.array([right, np.cross(toward, right), toward])


def sample_texture(texture: ImageArray, uv: FloatArray) -> FloatArray:
    """(k, 3) sRGB of a texture that repeats, interpolated between its texels, at (k, 2) places, v up."""
    height, width = texture.shape[:2]
    x, y = uv[:, 0] % 1.0 * width - 0.5, (1.0 - uv[:, 1] % 1.0) * height - 0.5
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    right, down = (x - left)[:, None], (y - top)[:, None]

    def at(row: IntArray, column: IntArray) -> FloatArray:
        return texture[row % height, column % width].astype(np.float64)

    upper = at(top, left) * (1 - right) + at(top, left + 1) * right
    lower = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right
    return upper * (1 - down) + lower * down
