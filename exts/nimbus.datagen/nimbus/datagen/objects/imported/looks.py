"""Appearance of an imported mesh with fewer triangles and one texture, whose images are close to the original's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from PIL import Image as PillowImage

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.geometry.drawing import PaintedMesh, draw, view_axes
from nimbus.datagen.meshes.decimate import decimate
from nimbus.datagen.objects.imported.bake import CREASE, bake_texture
from nimbus.datagen.objects.imported.read import texel_colors
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.shapes.shape import smooth_normals

MOST_FACES, TEXTURE_SIDE = 6000, 1024
"""Target number of triangles, and side of the texture [px], of an object near the camera."""
_COARSE = 20_000
"""Number of triangles above which a fast collapse without a tolerance replaces edge-by-edge decimation."""
_TOLERANCES = (1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3)
"""Tolerances of the simplified surface, tried in turn, for an object of 0.1 m or more [m]."""
_MOST_ERROR = 3.0
"""Mean image difference [gray levels of 255] above which the file's own triangles are kept."""
_MOST_KEPT = 60_000
"""Largest number of a file's own triangles that are kept to preserve its appearance."""
_VIEWS = ((0.6, 0.5), (2.2, 0.5), (3.7, 0.5), (5.3, 0.5), (0.6, -0.7), (2.2, 1.2))
"""Azimuth and elevation of the cameras of the compared images [rad]."""
_PIXELS, _PER_PIXEL = 128, 3
"""Width of the compared images [px], and number of samples along each side of a pixel."""
_GREY = np.array([0.299, 0.587, 0.114])
"""Weights of ITU-R BT.601."""


@dataclass(frozen=True, kw_only=True)
class FittedLook:
    """Mesh for rendering."""

    mesh: PaintedMesh
    error: float
    """Mean difference from an image of the original [gray levels]."""
    is_baked: bool
    """True if its texture was baked rather than taken from the file."""


def fit_look(
    surface: ImportedSurface,
    points: FloatArray,
    faces: IndexArray,
    *,
    most_faces: int = MOST_FACES,
    side: int = TEXTURE_SIDE,
) -> FittedLook:
    """Reduce a surface for rendering; repeated faces are dropped.

    Args:
        surface: Surface as read, z up [m].
        points: (n, 3) points of the same surface after closing [m].
        faces: (m, 3) triangles of the points.
        most_faces: Approximate upper bound on the number of triangles.
        side: Side of the texture [px].
    """
    surface = surface.without_repeats()
    original = paint_original(surface)
    kept = replace(original, texture=texel_colors(PillowImage.fromarray(surface.texture), side))
    if len(faces) == len(surface.corners) <= most_faces and not surface.layers:
        return FittedLook(mesh=kept, error=0.0, is_baked=False)
    few = reduce_faces(points, faces, most_faces)
    mesh = _plain(surface, *few) or bake_texture(surface, *few, side=side)
    error = image_error(original, mesh)
    if error > _MOST_ERROR and len(surface.corners) <= _MOST_KEPT:
        return FittedLook(mesh=kept, error=0.0, is_baked=False)
    return FittedLook(mesh=mesh, error=error, is_baked=True)


def paint_original(surface: ImportedSurface) -> PaintedMesh:
    """Return the surface with its own triangles and texture."""
    each = np.arange(3 * len(surface.corners), dtype=np.int32).reshape(-1, 3)
    split = smooth_normals(surface.corners.reshape(-1, 3), each, surface.uvs.reshape(-1, 2), CREASE)
    return PaintedMesh(vertices=split[0], faces=split[1], normals=split[2], uvs=split[3], texture=surface.texture)


def _plain(surface: ImportedSurface, points: FloatArray, faces: IndexArray) -> PaintedMesh | None:
    """Return the simplified surface if it has a single color and needs no atlas; None otherwise."""
    shades = surface.texture.reshape(-1, 3)
    if surface.layers or (shades != shades[0]).any():
        return None
    split = smooth_normals(points, faces, np.full((len(points), 2), 0.5), CREASE)
    texture = surface.texture[:1, :1].repeat(5, axis=0).repeat(5, axis=1)
    return PaintedMesh(vertices=split[0], faces=split[1], normals=split[2], uvs=split[3], texture=texture)


def reduce_faces(points: FloatArray, faces: IndexArray, most: int) -> tuple[FloatArray, IndexArray]:
    """Simplify a surface to points (k, 3) [m] and about the given number of faces; it stays within 1.6 mm."""
    if len(faces) > _COARSE:
        from fast_simplification import simplify

        fewer, corners, *_ = simplify(points, faces, target_count=_COARSE)
        points, faces = np.asarray(fewer, dtype=np.float64), np.asarray(corners, dtype=np.int32)
    scale = min(float(np.ptp(points, axis=0).max()) / 0.1, 1.0)
    for tolerance in _TOLERANCES:
        if len(faces) <= most:
            break
        points, faces = decimate(points, faces, tolerance=scale * tolerance)
    return points, faces


def image_error(one: PaintedMesh, other: PaintedMesh) -> float:
    """Return the mean difference [gray levels] of images of two meshes from six sides, where either is visible."""
    total, count = 0.0, 0
    for turn, rise in _VIEWS:
        axes = view_axes(turn, rise)
        along = one.vertices @ axes.T
        low, high = along.min(axis=0), along.max(axis=0)
        center, span = (low + high) / 2, 1.12 * float((high - low)[:2].max())
        pictures = []
        seen = np.zeros((_PIXELS, _PIXELS), dtype=bool)
        for mesh in (one, other):
            picture, covered = draw(mesh, axes, center=center, span=span, size=_PIXELS * _PER_PIXEL)
            blocks = (_PIXELS, _PER_PIXEL, _PIXELS, _PER_PIXEL)
            pictures.append((picture @ _GREY).reshape(blocks).mean(axis=(1, 3)))
            seen |= covered.reshape(blocks).any(axis=(1, 3))
        total += float(np.abs(pictures[0] - pictures[1])[seen].sum())
        count += int(seen.sum())
    return total / max(count, 1)
