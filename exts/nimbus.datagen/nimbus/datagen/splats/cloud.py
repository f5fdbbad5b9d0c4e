"""Gaussian splats of a scene in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array, FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry import transforms

FIRST_HARMONIC = 0.28209479177387814
"""Y00, the constant spherical harmonic: 1 / (2 sqrt(pi))."""
MOST_SPLATS = 3_000_000
"""Largest number of splats of a scene; they take about 0.5 s to render on one core, and 0.5 GB."""
_FARTHEST = 1e4
"""Largest distance of a splat from the origin [m]."""
_LARGEST = 1e3
"""Largest standard deviation of a splat [m]; a larger one indicates a wrong unit."""


def split_similarity(matrix: FloatArray) -> tuple[float, FloatArray]:
    """Return the scale and the rotation (3, 3) of a matrix (4, 4) with a uniform scale."""
    # The determinant of a matrix with a uniform scale is the cube of this scale.
    factor = float(np.cbrt(np.linalg.det(matrix[:3, :3])))
    return factor, matrix[:3, :3] / factor


@dataclass(frozen=True, kw_only=True, eq=False)
class SplatCloud:
    """N Gaussians, with colors that may depend on the viewing direction."""

    positions: Float32Array
    """(N, 3) means [m]."""
    scales: Float32Array
    """(N, 3) standard deviations along the axes of each Gaussian [m]."""
    wxyz: Float32Array
    """(N, 4) orientations of the axes, unit quaternions wxyz."""
    opacities: Float32Array
    """(N,) opacities at the mean, from 0 to 1."""
    colors: Float32Array
    """(N, 3) sRGB of the constant harmonic; values may be outside 0 to 1."""
    harmonics: NDArray[np.float16] | None = None
    """(N, 3, C) further harmonic coefficients per channel, with C = 3, 8 or 15 for degree 1, 2 or 3.

    None for colors that do not depend on the direction.
    """
    is_antialiased: bool = False
    """True if the training reduced the opacity of splats smaller than a pixel (Mip-Splatting)."""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def degree(self) -> int:
        """Degree of the spherical harmonics, 0 to 3."""
        return 0 if self.harmonics is None else {3: 1, 8: 2, 15: 3}[self.harmonics.shape[2]]

    def rows(self, chosen: NDArray[Any]) -> SplatCloud:
        """Select splats by index, in the given order, or by a mask."""
        return replace(
            self,
            positions=self.positions[chosen],
            scales=self.scales[chosen],
            wxyz=self.wxyz[chosen],
            opacities=self.opacities[chosen],
            colors=self.colors[chosen],
            harmonics=None if self.harmonics is None else self.harmonics[chosen],
        )

    def moved(self, frame_T_cloud: FloatArray) -> SplatCloud:
        """Transform the cloud into another frame.

        Args:
            frame_T_cloud: (4, 4) matrix with rotation, uniform scale and offset [m]. If it rotates, harmonics above
                degree 0 are dropped, because their rotation costs more than their effect is worth.
        """
        matrix = np.asarray(frame_T_cloud, dtype=float)
        factor, rotation = split_similarity(matrix)
        turn = np.asarray(transforms.quat_from_matrix(rotation))
        w, x, y, z = (float(part) for part in turn)
        turned = transforms.quat_multiply((w, x, y, z), tuple(self.wxyz.T))  # type: ignore[arg-type]
        # Without a rotation, harmonics stay valid, and orientations stay equal to the last bit.
        is_turned = not np.allclose(rotation, np.eye(3), atol=1e-6)
        return replace(
            self,
            positions=(self.positions @ matrix[:3, :3].T + matrix[:3, 3]).astype(np.float32),
            scales=(self.scales * factor).astype(np.float32),
            wxyz=np.stack(turned, axis=1).astype(np.float32) if is_turned else self.wxyz,
            harmonics=None if is_turned else self.harmonics,
        )


def check_cloud(cloud: SplatCloud, *, where: str) -> SplatCloud:
    """Check that a cloud can be rendered, and return it.

    Args:
        cloud: Splats as returned by a reader.
        where: File of the splats, for errors.

    Raises:
        InputError: The cloud is empty, too large, or contains values that are not finite.
    """
    if not len(cloud):
        raise InputError("contains no splats", where=where, instead="export the scene again")
    if len(cloud) > MOST_SPLATS:
        what = f"has {len(cloud)} splats; the limit is {MOST_SPLATS}"
        raise InputError(what, where=where, instead="prune it, for example with splat-transform --decimate")
    for name in ("positions", "scales", "wxyz", "opacities", "colors", "harmonics"):
        values = getattr(cloud, name)
        # The message names the first bad splat and their number, so the cause can be found in the file.
        if values is not None and not (fine := np.isfinite(values).reshape(len(cloud), -1).all(axis=1)).all():
            first, count = int(np.argmin(fine)), int((~fine).sum())
            what = f"{name} of splat {first} are not finite numbers; {count} splats are affected"
            raise InputError(what, where=where, instead="remove them, for example with splat-transform --filter-nan")
    if (far := float(np.abs(cloud.positions).max())) > _FARTHEST:
        raise InputError(f"a splat is {far:.3g} m from the origin", where=where, instead="crop the scene")
    if (large := float(cloud.scales.max())) > _LARGEST:
        raise InputError(f"the standard deviation of a splat is {large:.3g} m", where=where, instead="crop the scene")
    return cloud


def unit_quaternions(wxyz: NDArray[Any]) -> Float32Array:
    """Normalize quaternions (N, 4); zeros become the identity."""
    length = np.linalg.norm(wxyz, axis=1, keepdims=True)
    none = np.array([[1.0, 0.0, 0.0, 0.0]])
    return np.where(length > 1e-12, wxyz / np.maximum(length, 1e-12), none).astype(np.float32)
