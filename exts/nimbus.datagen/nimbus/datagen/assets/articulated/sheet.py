"""One shared texture for all links of an object."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from PIL import Image as PillowImage

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray
from nimbus.datagen.objects.imported.looks import fit_look, paint_original
from nimbus.datagen.objects.imported.read import join_surfaces, lay_side_by_side, texel_colors
from nimbus.datagen.objects.imported.surface import ImportedSurface

_MOST_FACES = 8000
"""Number of triangles up to which a link keeps its own mesh."""
_FACES, _SIDE = 4000, 512
"""Number of triangles, and side of the texture [px], of a simplified link."""
_SHEET = 1024
"""Side of the shared texture [px]."""


@dataclass(frozen=True, kw_only=True)
class LinkLook:
    """Link for rendering, with the texture that all links share."""

    vertices: FloatArray
    """(n, 3) vertices [m]."""
    faces: IndexArray
    normals: FloatArray
    uvs: FloatArray
    texture: ImageArray
    """(H, W, 3) sRGB, equal for all links."""


def lay_out_looks(links: dict[str, list[ImportedSurface]]) -> dict[str, LinkLook]:
    """Simplify the links of one object, and combine their textures into one.

    Args:
        links: Surfaces [m] by the name of the link.
    """
    whole = join_surfaces([one for surfaces in links.values() for one in surfaces], unit_is_known=True, up="z")
    shared = texel_colors(PillowImage.fromarray(whole.texture), _SHEET)
    meshes, own, start = {}, [shared], 0
    for name, surfaces in links.items():
        count = sum(len(surface.corners) for surface in surfaces)
        rows = slice(start, start + count)
        start += count
        surface = replace(whole, corners=whole.corners[rows], uvs=whole.uvs[rows], layers=())
        if count <= _MOST_FACES:
            meshes[name] = paint_original(surface), 0
        else:
            fitted = fit_look(surface, *surface.points(), most_faces=_FACES, side=_SIDE).mesh
            meshes[name] = fitted, len(own)
            own.append(fitted.texture)
    texture, windows = lay_side_by_side(own)
    looks = {}
    for name, (mesh, place) in meshes.items():
        low, high, bottom = windows[place]
        uvs = mesh.uvs
        if len(own) > 1:
            uvs = np.clip(uvs, 0.0, 1.0)
            uvs = np.column_stack([low + uvs[:, 0] * (high - low), bottom + uvs[:, 1] * (1 - bottom)])
        looks[name] = LinkLook(vertices=mesh.vertices, faces=mesh.faces, normals=mesh.normals, uvs=uvs, texture=texture)
    return looks
