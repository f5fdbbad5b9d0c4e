"""Surfaces of the parts of an asset: meshes and solids in their poses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.found import FoundPart
from nimbus.datagen.objects.imported.read import OutsideLook, read_surface
from nimbus.datagen.objects.imported.surface import ImportedSurface, color_surface


def read_part(root: Path, part: FoundPart) -> ImportedSurface:
    """Read a part, in the frame and unit of the asset.

    Args:
        root: Folder of the source.
        part: Part to read.

    Raises:
        InputError: The mesh of the part cannot be read.
    """
    if part.mesh:
        texture = root / part.texture if part.texture else None
        surface = read_surface(root / part.mesh, root=root, look=OutsideLook(texture=texture, color=part.color))
    else:
        surface = _solid_surface(part)
    matrix = part.matrix()
    if np.array_equal(matrix, np.eye(4)):
        return surface
    corners: FloatArray = surface.corners @ matrix[:3, :3].T + matrix[:3, 3]
    if np.linalg.det(matrix[:3, :3]) < 0:
        return replace(surface, corners=corners[:, ::-1], uvs=surface.uvs[:, ::-1])
    return replace(surface, corners=corners)


def _solid_surface(part: FoundPart) -> ImportedSurface:
    """Return the triangles of a box, sphere, cylinder or capsule."""
    from trimesh import creation

    size = part.size
    mesh = {
        "box": lambda: creation.box(size),
        "sphere": lambda: creation.icosphere(subdivisions=3, radius=size[0]),
        "cylinder": lambda: creation.cylinder(size[0], size[1], sections=32),
        "capsule": lambda: creation.capsule(height=size[1], radius=size[0]),
    }[part.solid]()
    corners = np.asarray(mesh.vertices, dtype=np.float64)[mesh.faces]
    color = (255 * np.array(part.color or (0.67, 0.67, 0.67)) + 0.5).astype(np.uint8)
    return color_surface(corners, np.tile(color, (len(corners), 1)))
