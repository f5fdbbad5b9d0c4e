"""Splats sampled from the surfaces of a mesh, for scenes with a known ground truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import AnyArray, Float32Array, FloatArray, IntArray
from nimbus.datagen.splats.cloud import SplatCloud

_R2 = np.array([0.7548776662466927, 0.5698402909980532])
"""Steps of the R2 sequence: powers of the reciprocal of the plastic number (Roberts, 2018)."""
_GOLDEN = 0.6180339887498949
_WIDE, _THIN = 0.7, 0.05
"""Standard deviations of a disc: along its surface, as a fraction of the spacing, and across it, as a fraction of
the former."""
_OPACITY = (0.75, 0.98)
"""Range of opacities, as in trained scenes on surfaces."""
VERSION = 1
"""Version of the sampling; raise it when equal meshes give different splats."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SurfaceSamples:
    """N points on faces, ordered by face."""

    faces: IntArray
    """(N,) index of each point's face."""
    shares: FloatArray
    """(N, 3) barycentric weights of the face's corners."""
    positions: FloatArray
    """(N, 3) positions [m]."""
    normals: FloatArray
    """(N, 3) unit normals of the faces."""
    spacing: float
    """Distance between neighbors [m]."""


def place_samples(corners: AnyArray, count: int) -> SurfaceSamples:
    """Distribute points evenly over surfaces.

    The number of points on a face is proportional to its area; inside a face, they follow a low-discrepancy sequence.

    Args:
        corners: (F, 3, 3) triangles of all parts [m].
        count: Total number of points.
    """
    corners = np.asarray(corners, dtype=float)
    edges = corners[:, 1:] - corners[:, :1]
    across = np.cross(edges[:, 0], edges[:, 1])
    double = np.linalg.norm(across, axis=1)
    reached = np.cumsum(double)
    number = np.arange(count)
    # Samples are at equal steps of the accumulated area, so the number on a face is proportional to its area.
    faces = np.searchsorted(reached, (number + 0.5) / count * reached[-1]).astype(np.int64)
    share = np.mod((number[:, None] + 1) * _R2, 1.0)
    # Points beyond the diagonal of the unit square are mirrored into the triangle, which keeps their density even.
    share = np.where(share.sum(axis=1, keepdims=True) > 1.0, 1.0 - share, share)
    shares = np.column_stack([1.0 - share.sum(axis=1), share])
    return SurfaceSamples(
        faces=faces,
        shares=shares,
        positions=np.einsum("nk,nkd->nd", shares, corners[faces]),
        normals=across[faces] / np.maximum(double[faces, None], 1e-12),
        spacing=float(np.sqrt(0.5 * reached[-1] / count)),
    )


def paint_samples(
    samples: SurfaceSamples, corner_uvs: AnyArray, image: NDArray[np.uint8], chosen: NDArray[np.bool_]
) -> FloatArray:
    """Look up the texture of a part at some of the samples.

    Args:
        samples: Samples on the faces of all parts.
        corner_uvs: (F, 3, 2) texture coordinates of all faces, v up; the texture repeats.
        image: (H, W, 3) sRGB of the part.
        chosen: (N,) mask of the samples on this part.

    Returns:
        sRGB (n, 3) from 0 to 1.
    """
    uv = np.einsum("nk,nkd->nd", samples.shares[chosen], np.asarray(corner_uvs, float)[samples.faces[chosen]]) % 1.0
    height, width = image.shape[:2]
    columns = np.minimum((uv[:, 0] * width).astype(int), width - 1)
    rows = np.minimum(((1.0 - uv[:, 1]) * height).astype(int), height - 1)
    return image[rows, columns] / 255.0


def discs_of(samples: SurfaceSamples, colors: AnyArray) -> SplatCloud:
    """Turn each sample into a flat disc on its face.

    Args:
        samples: N samples.
        colors: (N, 3) sRGB from 0 to 1, including the light.
    """
    count = len(samples.faces)
    wide = _WIDE * samples.spacing
    low, high = _OPACITY
    opacities = low + (high - low) * np.mod((np.arange(count) + 1) * _GOLDEN, 1.0)
    return SplatCloud(
        positions=samples.positions.astype(np.float32),
        scales=np.tile(np.array([wide, wide, _THIN * wide], dtype=np.float32), (count, 1)),
        wxyz=_facing(samples.normals),
        opacities=opacities.astype(np.float32),
        colors=np.asarray(colors, dtype=np.float32),
        is_antialiased=True,
    )


def _facing(normals: FloatArray) -> Float32Array:
    """Return the smallest rotations (N, 4) wxyz from z to unit normals (N, 3); opposite normals rotate about x."""
    x, y, z = normals.T
    wxyz = np.column_stack([1.0 + z, -y, x, np.zeros_like(z)])
    wxyz[z < -1.0 + 1e-9] = (0.0, 1.0, 0.0, 0.0)
    return (wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True)).astype(np.float32)
