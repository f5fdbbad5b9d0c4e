"""Alignment check of a proxy mesh against its splats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import AnyArray, FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.nearest import find_nearest

MOST_OFF = 0.05
"""Largest displacement at which depth and collisions still match the images [m]."""
_POINTS = 20_000
"""Number of splats that are compared, taken evenly from the cloud."""
_OPAQUE = 0.5
_REACH = 0.4
"""Largest distance from the proxy at which a splat is compared [m]."""
_LEAST_SHARE = 0.5
"""Smallest fraction of splats within this distance if proxy and splats show the same place."""
_ROUNDS = 12
_WIDEST, _NARROWEST = 0.2, 0.02
"""Distance beyond which splats count as outliers, in the first and in the last iteration [m]."""
_STIFF = 1e-3
"""Weight of the damping in directions that no measurement determines."""


@dataclass(frozen=True, kw_only=True)
class Misalignment:
    """Fit of a proxy to its splats."""

    offset: FloatArray
    """Mean displacement (3,) from the proxy to the splats [m]."""
    displacement: float
    """Root mean square of the displacement over the surfaces [m]."""
    residual: float
    """Median distance of splats from the surfaces of the proxy as given [m]."""
    share: float
    """Fraction of the splats within 40 cm of the proxy."""


def measure_alignment(cloud: SplatCloud, corners: AnyArray) -> Misalignment:
    """Fit a small rigid motion and a scale of the proxy to the splats, point to plane (Chen and Medioni, 1991).

    Args:
        cloud: Splats in the world frame.
        corners: (F, 3, 3) triangles of the proxy, in the world [m].
    """
    solid = np.flatnonzero(cloud.opacities >= _OPAQUE)
    solid = solid if len(solid) else np.arange(len(cloud))
    points = cloud.positions[solid[:: max(1, len(solid) // _POINTS)]].astype(float)
    moved, total = points.copy(), np.zeros_like(points)
    distance, share = np.full(len(points), np.inf), 0.0
    for turn in range(_ROUNDS):
        nearest, normals, is_found = find_nearest(corners, moved, _REACH)
        off = np.sum((moved - nearest) * normals, axis=1)
        if turn == 0:
            distance = np.where(is_found, np.linalg.norm(moved - nearest, axis=1), np.inf)
            share = float(is_found.mean())
        if is_found.sum() < 20:
            break
        middle = moved[is_found].mean(axis=0)
        arm = moved - middle
        # There are seven unknowns: shift, rotation vector, and scale about the middle. Only the part of the motion
        # along the normal is measured: a point may slide along its surface.
        rows = np.column_stack([normals, np.cross(arm, normals), np.sum(arm * normals, axis=1)])
        # Most surfaces are parallel to a wrong offset and do not reveal it; the few others must not count as outliers.
        # 1.4826 times the median deviation is the standard deviation of normal noise. The weights are those of Geman
        # and McClure, with a width that shrinks as the fit improves.
        width = max(1.4826 * float(np.median(np.abs(off[is_found]))), _WIDEST * 0.6**turn, _NARROWEST)
        weight = is_found / (1.0 + (off / (2.0 * width)) ** 2) ** 2
        # Rotation and scale are multiplied by the radius of the cloud, so that all unknowns are lengths, and damping
        # affects them equally.
        scale = np.array([1.0] * 3 + [float(np.sqrt(np.mean(arm[is_found] ** 2)))] * 4)
        matrix = (rows / scale).T @ (weight[:, None] * rows / scale)
        # Damping keeps the system solvable where no surface determines a direction, as along a corridor.
        matrix += _STIFF * float(weight.sum()) * np.eye(7)
        change = -np.linalg.solve(matrix, (rows / scale).T @ (weight * off)) / scale
        step = change[:3] + np.cross(change[3:6], arm) + change[6] * arm
        moved, total = moved + step, total + step
        if float(np.sqrt(np.mean(step**2))) < 1e-4:
            break
    return Misalignment(
        offset=-total.mean(axis=0),
        displacement=float(np.sqrt(np.mean(np.sum(total**2, axis=1)))),
        residual=float(np.median(distance)),
        share=share,
    )


def check_alignment(cloud: SplatCloud, corners: AnyArray, *, where: str) -> Misalignment:
    """Refuse a proxy that is more than 5 cm away from its splats.

    Args:
        cloud: Splats in the world frame.
        corners: (F, 3, 3) triangles of the proxy, in the world [m].
        where: File of the proxy, for errors.

    Raises:
        InputError: The proxy is misaligned, or shows another place.
    """
    found = measure_alignment(cloud, corners)
    if found.share < _LEAST_SHARE:
        what = f"only {found.share:.0%} of the splats are within {_REACH * 100:.0f} cm of this proxy"
        instead = "set splat_T_proxy to the transform from the proxy's frame to that of the splats, or omit the proxy"
        raise InputError(what, where=where, instead=instead)
    if max(found.displacement, found.residual) > MOST_OFF:
        x, y, z = found.offset * 100
        off = max(found.displacement, found.residual) * 100
        what = f"the proxy is {off:.1f} cm away from its splats; the limit is 5 cm"
        raise InputError(what, where=where, instead=f"move it by about ({x:.1f}, {y:.1f}, {z:.1f}) cm")
    return found
