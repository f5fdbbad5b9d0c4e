"""Texture baking into a new atlas: each texel takes the color of the nearest point of the original surface."""

from __future__ import annotations

import numpy as np
from PIL import Image as PillowImage
from scipy.ndimage import distance_transform_edt
from scipy.spatial import KDTree

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray
from nimbus.datagen.geometry.coverage import cover_pixels, sample_surface
from nimbus.datagen.geometry.drawing import PaintedMesh, sample_texture
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.shapes.shape import smooth_normals

CREASE = 0.7
"""Angle above which edges stay sharp when shaded [rad]."""
_PADDING = 3
"""Padding between the charts of an atlas [px]."""
_SAMPLES = 300_000
"""Number of samples of the original surface, among which the nearest ones to each texel are found."""
_NEAR = 6
"""Number of nearest samples compared per texel; the nearest one with a similar normal is used."""
_AGAINST = 0.2
"""Smallest cosine between the normals of a texel and of the face that gives its color."""
_COARSER = 1.5
"""Ratio of source to atlas texels along a side above which the source is averaged first."""


def bake_texture(surface: ImportedSurface, points: FloatArray, faces: IndexArray, *, side: int) -> PaintedMesh:
    """Bake the texture of a surface for its simplified version.

    Args:
        surface: Original surface with its textures.
        points: (n, 3) points of the simplified surface, in the same frame [m].
        faces: (m, 3) triangles of the simplified surface.
        side: Approximate side of the texture [px].
    """
    vertices, faces, uvs, (height, width) = _unwrapped(points, faces, side)
    inside = cover_pixels(uvs[faces] * (width, height), width, height, both_sides=True)
    corners = vertices[faces[inside.face]]
    places = np.einsum("kc,kcd->kd", inside.weights, corners)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    texels = np.zeros((height * width, 3), dtype=np.uint8)
    area = float(np.linalg.norm(_cross(vertices[faces]), axis=1).sum()) / 2
    texels[inside.pixel] = _colors_at(surface, places, _unit(normals), density=np.sqrt(len(inside.pixel) / area))
    is_empty = np.ones(height * width, dtype=bool)
    is_empty[inside.pixel] = False
    nearest = distance_transform_edt(is_empty.reshape(height, width), return_distances=False, return_indices=True)
    assert isinstance(nearest, np.ndarray)
    texture = texels.reshape(height, width, 3)[nearest[0], nearest[1]][::-1]
    split = smooth_normals(vertices, faces, uvs, CREASE)
    return PaintedMesh(
        vertices=split[0], faces=split[1], normals=split[2], uvs=split[3], texture=np.ascontiguousarray(texture)
    )


def _unwrapped(
    points: FloatArray, faces: IndexArray, side: int
) -> tuple[FloatArray, IndexArray, FloatArray, tuple[int, int]]:
    """Return vertices, faces and uvs on an atlas, and its height and width [px]."""
    import xatlas

    atlas = xatlas.Atlas()
    atlas.add_mesh(points.astype(np.float32), faces.astype(np.uint32))
    packing = xatlas.PackOptions()
    packing.resolution, packing.padding, packing.bilinear = side, _PADDING, True
    atlas.generate(pack_options=packing)
    source, split, uvs = atlas[0]
    share = side / max(atlas.width, atlas.height)
    height, width = max(round(atlas.height * share), 1), max(round(atlas.width * share), 1)
    return points[source], split.astype(np.int32), uvs.astype(np.float64), (height, width)


def _colors_at(surface: ImportedSurface, places: FloatArray, normals: FloatArray, *, density: float) -> ImageArray:
    """Return sRGB colors (k, 3) of a surface at the points nearest to given places; density is in texels per meter."""
    old = surface.corners
    cross = _cross(old)
    double = np.linalg.norm(cross, axis=1)
    sampled, face = sample_surface(old, _SAMPLES)
    _, near = KDTree(sampled).query(places, k=_NEAR)
    candidates, facing = face[near], _unit(cross)
    alike = np.einsum("kd,knd->kn", normals, facing[candidates]) > _AGAINST
    chosen = candidates[np.arange(len(places)), np.argmax(alike, axis=1)]
    weights = _nearest_weights(old[chosen], places)
    colors, first = np.zeros((len(places), 3), dtype=np.uint8), 0
    for texture, uvs in surface.layers or ((surface.texture, surface.uvs),):
        mine = np.flatnonzero((chosen >= first) & (chosen < first + len(uvs)))
        uv = np.einsum("kc,kcd->kd", weights[mine], uvs[chosen[mine] - first])
        sharp = _coarsened(texture, uvs, double[first : first + len(uvs)].sum() / 2, density)
        colors[mine] = sample_texture(sharp, uv) + 0.5
        first += len(uvs)
    return colors


def _nearest_weights(corners: FloatArray, places: FloatArray) -> FloatArray:
    """Return barycentric weights (k, 3) of points projected onto their triangles and clipped to them."""
    a, b, c = (corners[:, corner] for corner in range(3))
    ab, ac, to = b - a, c - a, places - a
    aa, bb, cross = np.sum(ab * ab, axis=1), np.sum(ac * ac, axis=1), np.sum(ab * ac, axis=1)
    da, db = np.sum(ab * to, axis=1), np.sum(ac * to, axis=1)
    double = np.maximum(aa * bb - cross**2, 1e-30)
    v, w = (bb * da - cross * db) / double, (aa * db - cross * da) / double
    weights = np.clip(np.column_stack([1 - v - w, v, w]), 0.0, None)
    return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)


def _coarsened(texture: ImageArray, uvs: FloatArray, area: float, density: float) -> ImageArray:
    """Average a texture down to about a density of texels [1/m], if it is much finer."""
    one, two = uvs[:, 1] - uvs[:, 0], uvs[:, 2] - uvs[:, 0]
    covered = np.abs(one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]).sum() / 2 * texture.shape[0] * texture.shape[1]
    times = np.sqrt(covered / max(area, 1e-12)) / density
    if times < _COARSER:
        return texture
    size = (max(round(texture.shape[1] / times), 1), max(round(texture.shape[0] / times), 1))
    return np.asarray(PillowImage.fromarray(texture).resize(size, PillowImage.Resampling.BOX))


def _cross(corners: FloatArray) -> FloatArray:
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def _unit(vectors: FloatArray) -> FloatArray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-18)
