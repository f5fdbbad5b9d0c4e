"""Mass, center of mass and inertia of triangle meshes, as a solid or as a thin shell."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import FloatArray, IndexArray


def mass_properties(
    vertices: FloatArray, faces: IndexArray, *, mass: float, in_surface: bool, density: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the center of mass (3,) [m] and the inertia (3, 3) about the center [kg m²].

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3) triangles, a closed surface unless ``in_surface``.
        mass: Mass [kg].
        in_surface: True if the mass is in the surface, as for a bottle or a can, instead of in the volume.
        density: (m,) relative density of the volume that each face bounds; uniform by default.
    """
    corners = vertices[faces]
    # These are exact integrals over triangles, or over the signed tetrahedra between the triangles and the origin: the
    # first moment is the mean of the corners, the second follows from the products of all pairs of corners.
    total = corners.sum(axis=1)
    outer = np.einsum("fci,fcj->fij", corners, corners) + np.einsum("fi,fj->fij", total, total)
    if in_surface:
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        weight = np.linalg.norm(cross, axis=1)
        first, second = total / 3, outer / 12
    else:
        weight = np.einsum("fi,fi->f", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
        first, second = total / 4, outer / 20
    if density is not None:
        weight = weight * density
    weight = weight / weight.sum() * mass
    center = (weight @ first) / mass
    moments = np.einsum("f,fij->ij", weight, second) - mass * np.outer(center, center)
    return center, np.trace(moments) * np.eye(3) - moments
