"""Triangles with normals, texture coordinates and colors, from which parts are assembled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array

if TYPE_CHECKING:
    import newton

_CELL = 5
"""Side of a palette's cell [px]; bilinear sampling at its center does not reach a neighbor."""

_WHITEST = 0.92
"""Largest albedo, in sRGB; no material reflects all light, and white paint keeps its shading."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Triangles:
    """Triangles with shared vertices; compared and hashed by identity."""

    vertices: Float32Array
    """(n, 3) positions [m]."""
    faces: NDArray[np.int32]
    """(m, 3) indices of vertices, counter-clockwise from outside."""
    normals: Float32Array
    """(n, 3) unit normals."""
    uvs: Float32Array
    """(n, 2) texture coordinates."""
    colors: Float32Array
    """(n, 3) sRGB, from 0 to 1."""

    @classmethod
    def of_mesh(cls, mesh: newton.Mesh, frame_T_mesh: NDArray[np.float64], scale: NDArray[np.float64]) -> Triangles:
        """Build the triangles of a mesh, transformed into another frame.

        Args:
            mesh: Mesh with vertices (n, 3) in its own frame [m], before ``scale``.
            frame_T_mesh: (4, 4) pose of the mesh in the other frame [m].
            scale: (3,) factors along the axes of the mesh [no unit].
        """
        rotation, offset = frame_T_mesh[:3, :3], frame_T_mesh[:3, 3]
        vertices = np.asarray(mesh.vertices, dtype=float) * scale @ rotation.T + offset
        faces = np.asarray(mesh.indices, dtype=np.int32).reshape(-1, 3)
        if np.prod(scale) < 0:
            faces = faces[:, ::-1]
        if mesh.normals is None:
            vertices, normals = vertices[faces].reshape(-1, 3), None
            faces = np.arange(len(vertices), dtype=np.int32).reshape(-1, 3)
            edges = vertices.reshape(-1, 3, 3)
            normals = np.repeat(np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0]), 3, axis=0)
        else:
            normals = np.asarray(mesh.normals, dtype=float) / scale @ rotation.T
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
        count = len(vertices)
        has_uvs = mesh.uvs is not None and len(mesh.uvs) == count
        transform = np.asarray(mesh.texture_transform, dtype=float)
        uvs = np.asarray(mesh.uvs) @ transform[:, :2].T + transform[:, 2] if has_uvs else np.zeros((count, 2))
        return cls(
            vertices=vertices.astype(np.float32),
            faces=faces,
            normals=normals.astype(np.float32),
            uvs=uvs.astype(np.float32),
            colors=np.ones((count, 3), dtype=np.float32),
        )

    @classmethod
    def concatenate(cls, pieces: list[Triangles]) -> Triangles:
        """Join several sets of triangles into one."""
        starts = np.cumsum([0] + [len(piece.vertices) for piece in pieces])
        faces = [piece.faces + start for piece, start in zip(pieces, starts, strict=False)]
        return cls(
            vertices=np.concatenate([piece.vertices for piece in pieces]),
            faces=np.concatenate(faces).astype(np.int32),
            normals=np.concatenate([piece.normals for piece in pieces]),
            uvs=np.concatenate([piece.uvs for piece in pieces]),
            colors=np.concatenate([piece.colors for piece in pieces]),
        )

    def painted(self, color: Any) -> Triangles:
        """Return the triangles in one color, sRGB from 0 to 1."""
        rgb = np.minimum(np.asarray((1.0, 1.0, 1.0) if color is None else color, dtype=np.float32), _WHITEST)
        return replace(self, colors=np.broadcast_to(rgb, self.colors.shape))

    def as_rectangles(self) -> Triangles | None:
        """Return the faces as pairs (a, b, c), (a, c, d) of rectangles; None if they do not form rectangles."""
        if len(self.faces) % 2:
            return None
        faces, found = self.faces.copy(), np.zeros(len(self.faces) // 2, dtype=bool)
        for turn, other_turn in np.ndindex(3, 3):
            pair = np.roll(self.faces[::2], turn, axis=1), np.roll(self.faces[1::2], other_turn, axis=1)
            (a, b, c), (e, f, d) = (np.moveaxis(self.vertices[half], 1, 0) for half in pair)
            meet = _same(a, e) & _same(c, f) & _same(b + d, a + c) & _upright(b - a, d - a)
            faces[::2][meet], faces[1::2][meet] = pair[0][meet], pair[1][meet]
            found |= meet
        return replace(self, faces=faces) if found.all() else None

    def face_range(self, start: int, stop: int) -> Triangles:
        """Return a range of the faces, with the vertices that they use."""
        used, faces = np.unique(self.faces[start:stop], return_inverse=True)
        return Triangles(
            vertices=self.vertices[used],
            faces=faces.reshape(-1, 3).astype(np.int32),
            normals=self.normals[used],
            uvs=self.uvs[used],
            colors=self.colors[used],
        )

    def with_palette(self) -> tuple[Triangles, NDArray[np.uint8]]:
        """Return the triangles with texture coordinates into an image (H, W, 3) that has one cell per color."""
        palette, cell = np.unique(np.round(self.colors * 255).astype(np.uint8), axis=0, return_inverse=True)
        image = np.repeat(palette[None], _CELL, axis=1).repeat(_CELL, axis=0)
        u = (cell.ravel() + 0.5) / len(palette)
        return replace(self, uvs=np.stack([u, np.full_like(u, 0.5)], axis=1).astype(np.float32)), image

    def projected(self, period: float) -> Triangles:
        """Project texture coordinates along the largest axis of each vertex normal.

        Args:
            period: Length after which the texture repeats [m].
        """
        axis = np.argmax(np.abs(self.normals), axis=1)
        across, along = np.array([1, 0, 0])[axis], np.array([2, 2, 1])[axis]
        rows = np.arange(len(self.vertices))
        uvs = np.stack([self.vertices[rows, across], self.vertices[rows, along]], axis=1) / period
        return replace(self, uvs=uvs.astype(np.float32))

    @cached_property
    def corners(self) -> tuple[Float32Array, NDArray[np.int32]]:
        """Distinct positions (k, 3) of the vertices, and faces (m, 3) as indices of them."""
        places, number = np.unique(self.vertices, axis=0, return_inverse=True)
        return places, number.ravel()[self.faces].astype(np.int32)

    @cached_property
    def corner_normals(self) -> Float32Array:
        """Unit normals (3 m, 3) of the corners of all faces in sequence."""
        return self.normals[self.faces.ravel()]

    @cached_property
    def corner_uvs(self) -> Float32Array:
        """Texture coordinates (3 m, 2) of the corners of all faces in sequence."""
        return self.uvs[self.faces.ravel()]


def _same(one: Float32Array, other: Float32Array) -> NDArray[np.bool_]:
    return np.all(np.abs(one - other) < 1e-6, axis=1)


def _upright(one: Float32Array, other: Float32Array) -> NDArray[np.bool_]:
    product = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (product > 0) & (np.abs(np.sum(one * other, axis=1)) < 1e-4 * product)
