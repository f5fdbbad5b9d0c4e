"""Drawing of textured meshes in parallel projection, without a simulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import BoolArray, FloatArray, ImageArray, IndexArray, IntArray
from nimbus.datagen.geometry.coverage import cover_pixels, estimate_covered

_LIGHT = np.array([0.35, -0.55, 0.76])
_PAPER = np.array([246.0, 246.0, 243.0])
_MOST_COVERED = 8_000_000
"""Number of pairs of a face and a pixel, hidden ones included, above which an image is drawn with larger pixels; with
384 x 384 pixels, these are 54 layers of faces over the whole image."""
_SMALLEST = 16
"""Size of an image that is not reduced further [px]."""


@dataclass(frozen=True, kw_only=True)
class PaintedMesh:
    """Mesh with a texture."""

    vertices: FloatArray
    """(n, 3) vertices [m]."""
    normals: FloatArray
    """(n, 3) unit normals."""
    uvs: FloatArray
    """(n, 2) texture coordinates, v up."""
    faces: IndexArray
    """(m, 3) triangles."""
    texture: ImageArray
    """(H, W, 3) sRGB."""


def draw(
    mesh: PaintedMesh, axes: FloatArray, *, center: FloatArray, span: float, size: int
) -> tuple[FloatArray, BoolArray]:
    """Draw a mesh in parallel projection.

    Args:
        mesh: Mesh to draw.
        axes: (3, 3) rows are the directions right, up and toward the camera.
        center: (3,) center of the image, in coordinates along these axes [m].
        span: Width of the image [m].
        size: Width and height of the image [px].

    Returns:
        Image (size, size, 3) sRGB on a light background, and a mask (size, size) of the mesh. If very many faces
        lie over one another, the image is drawn with larger pixels.
    """
    points = (mesh.vertices @ axes.T - center) * (size / span)
    points[:, :2] += size / 2
    triangles = points[mesh.faces]
    if size > _SMALLEST and estimate_covered(triangles, size, size) > _MOST_COVERED:
        picture, covered = draw(mesh, axes, center=center, span=span, size=size // 2)
        nearest = np.arange(size) * (size // 2) // size
        return picture[np.ix_(nearest, nearest)], covered[np.ix_(nearest, nearest)]
    seen = cover_pixels(triangles, size, size)
    corners = mesh.faces[seen.face]
    uv = np.einsum("ij,ijk->ik", seen.weights, mesh.uvs[corners])
    normal = np.einsum("ij,ijk->ik", seen.weights, mesh.normals[corners])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    shade = 0.45 + 0.6 * np.clip(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0, 1)
    picture, covered = np.tile(_PAPER, (size * size, 1)), np.zeros(size * size, dtype=bool)
    picture[seen.pixel], covered[seen.pixel] = np.clip(sample_texture(mesh.texture, uv) * shade[:, None], 0, 255), True
    return picture.reshape(size, size, 3)[::-1], covered.reshape(size, size)[::-1]


def view_axes(turn: float, rise: float) -> FloatArray:
    """Return axes (3, 3), as for :func:`draw`, of a camera rotated from the front to the right, and raised [rad]."""
    toward = np.array([np.sin(turn) * np.cos(rise), -np.cos(turn) * np.cos(rise), np.sin(rise)])
    right = np.array([np.cos(turn), np.sin(turn), 0.0])
    return np.array([right, np.cross(toward, right), toward])


def sample_texture(texture: ImageArray, uv: FloatArray) -> FloatArray:
    """Sample a repeating texture bilinearly at points (k, 2), v up; return sRGB (k, 3)."""
    height, width = texture.shape[:2]
    x, y = uv[:, 0] % 1.0 * width - 0.5, (1.0 - uv[:, 1] % 1.0) * height - 0.5
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    right, down = (x - left)[:, None], (y - top)[:, None]

    def at(row: IntArray, column: IntArray) -> FloatArray:
        return texture[row % height, column % width].astype(np.float64)

    upper = at(top, left) * (1 - right) + at(top, left + 1) * right
    lower = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right
    return upper * (1 - down) + lower * down
