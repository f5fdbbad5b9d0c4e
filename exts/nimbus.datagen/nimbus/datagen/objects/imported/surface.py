"""Mesh as stored in its file: corners, texture, unit and up axis."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray

_UP = {
    "z": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "-z": ((1, 0, 0), (0, -1, 0), (0, 0, -1)),
    "y": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    "-y": ((1, 0, 0), (0, 0, 1), (0, -1, 0)),
    "x": ((0, 0, -1), (0, 1, 0), (1, 0, 0)),
    "-x": ((0, 0, 1), (0, 1, 0), (-1, 0, 0)),
}
"""Rows of rotation matrices: the axes of z-up coordinates, expressed in the axes of the file."""


@dataclass(frozen=True, kw_only=True)
class ImportedSurface:
    """Triangles with three corners each, so that texture seams need no special treatment."""

    corners: FloatArray
    """(m, 3, 3) in the file's unit."""
    uvs: FloatArray
    """(m, 3, 2) texture coordinates, v up."""
    texture: ImageArray
    """(H, W, 3) sRGB."""
    metres: float = 1.0
    """Length of one unit [m]."""
    unit_is_known: bool = False
    up: str = "z"
    notes: tuple[str, ...] = ()
    """Notes for users about omitted data."""
    layers: tuple[tuple[ImageArray, FloatArray], ...] = ()
    """Texture (H, W, 3) and uvs (k, 3, 2) of each merged part, in the order of the corners."""

    def upright(self, up: str) -> ImportedSurface:
        """Return the surface with z up."""
        return replace(self, corners=self.corners @ up_matrix(up).T, up="z")

    def scaled(self, factor: float) -> ImportedSurface:
        """Return the surface with all lengths multiplied by a factor, which converts them to meters."""
        return replace(self, corners=self.corners * factor, metres=1.0, unit_is_known=True)

    def without_repeats(self) -> ImportedSurface:
        """Return the surface without repeated faces; a copy of a face that faces the other way is kept."""
        turned = np.argmin(self.corners @ np.array([1.0, 2.0**0.5, 3.0**0.5]), axis=1)
        order = (turned[:, None] + np.arange(3)) % 3
        corners = np.take_along_axis(self.corners, order[:, :, None], axis=1)
        _, first = np.unique(corners.reshape(-1, 9), axis=0, return_index=True)
        if len(first) == len(corners):
            return self
        kept = np.zeros(len(corners), dtype=bool)
        kept[first] = True
        layers, start = [], 0
        for texture, uvs in self.layers:
            layers.append((texture, uvs[kept[start : start + len(uvs)]]))
            start += len(uvs)
        return replace(self, corners=self.corners[kept], uvs=self.uvs[kept], layers=tuple(layers))

    def points(self) -> tuple[FloatArray, IndexArray]:
        """Return points without duplicates (n, 3) and faces (m, 3)."""
        flat = self.corners.reshape(-1, 3)
        grain = max(float(np.ptp(flat, axis=0).max()), 1e-12) * 1e-6
        _, first, index = np.unique(
            np.round(flat / grain).astype(np.int64), axis=0, return_index=True, return_inverse=True
        )
        return flat[first], index.reshape(-1, 3).astype(np.int32)


def up_matrix(up: str) -> FloatArray:
    """Return the rotation (3, 3) from the axes of a file with the given up axis to z-up axes."""
    return np.array(_UP[up], dtype=np.float64)


def color_surface(corners: FloatArray, colors: ImageArray) -> ImportedSurface:
    """Return a surface whose texture is a palette with one color per face.

    Args:
        corners: (m, 3, 3) corners of the faces.
        colors: (m, 3) sRGB.
    """
    palette, index = np.unique(
        colors if len(np.unique(colors, axis=0)) < 4096 else colors & 0xF0, axis=0, return_inverse=True
    )
    side = int(np.ceil(np.sqrt(len(palette))))
    texture = np.zeros((side, side, 3), dtype=np.uint8)
    texture.reshape(-1, 3)[: len(palette)] = palette
    row, column = np.divmod(index.reshape(-1), side)
    uv = np.column_stack([(column + 0.5) / side, 1 - (row + 0.5) / side])
    cell = np.kron(texture, np.ones((5, 5, 1), dtype=np.uint8))
    return ImportedSurface(corners=corners, uvs=np.repeat(uv[:, None], 3, axis=1), texture=cell)
