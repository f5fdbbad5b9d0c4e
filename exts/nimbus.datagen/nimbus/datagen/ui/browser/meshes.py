"""Parts of a scene as meshes that a browser draws, in the colours that the cameras see."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.textures.procedural import surface_image
from nimbus.datagen.ui.browser.simplify import simplified

if TYPE_CHECKING:
    from nimbus.datagen.render.render_parts import RenderPart

_PERIOD = 1.6
"""[m] after which a procedural texture repeats."""
_MOST_PIXELS = 256
"""Along a side of a picture: it is sent to the browser."""

_plain: weakref.WeakKeyDictionary[RenderPart, dict[bool, Any]] = weakref.WeakKeyDictionary()


def part_mesh(part: RenderPart, surface: SurfaceLook, *, simple: bool = False) -> Any:
    """A ``trimesh.Trimesh`` of a part, in the frame of its body [m].

    Args:
        part: The part.
        surface: How it looks.
        simple: With fewer triangles.
    """
    if surface != SurfaceLook():
        return _mesh(part, surface, simple=simple)
    known = _plain.setdefault(part, {})
    if simple not in known:
        known[simple] = _mesh(part, surface, simple=simple)
    return known[simple]


def _mesh(part: RenderPart, surface: SurfaceLook, *, simple: bool) -> Any:
    import trimesh
    from PIL import Image
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import PBRMaterial

    triangles, image = simplified(part.triangles) if simple else part.triangles, part.image
    if (worn := surface_image(surface)) is not None:
        image, triangles = worn, triangles.projected(_PERIOD)
    image = _tinted(image, surface)
    plain = {"vertices": triangles.vertices, "faces": triangles.faces, "vertex_normals": triangles.normals}
    picture = Image.fromarray(image)
    picture.thumbnail((_MOST_PIXELS, _MOST_PIXELS))
    # A material is said: without one, glTF means bare metal, black wherever no light falls.
    material = PBRMaterial(baseColorTexture=picture, metallicFactor=0.0, roughnessFactor=0.8)
    return trimesh.Trimesh(**plain, visual=TextureVisuals(uv=triangles.uvs, material=material), process=False)


def _tinted(image: NDArray[np.uint8], surface: SurfaceLook) -> NDArray[np.uint8]:
    return np.clip(image * np.asarray(surface.color), 0, 255).astype(np.uint8)
