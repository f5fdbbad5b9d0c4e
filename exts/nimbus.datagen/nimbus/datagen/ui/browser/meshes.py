"""Parts of a scene as meshes for a browser, in the colors of camera images."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.textures.procedural import surface_image

if TYPE_CHECKING:
    from nimbus.datagen.arrays import AnyArray
    from nimbus.datagen.meshes.triangles import Triangles
    from nimbus.datagen.render.render_inputs import RenderPart

_KEPT = 0.1
"""Fraction of the triangles of each color that decimation keeps."""
_FEW = 100
"""Smallest number of triangles of one color that is decimated."""
_MOST_COLORS = 16
"""Number of colors above which a part counts as textured; decimation would destroy its texture."""
_SMOOTH = 0.5
"""Cosine of the largest angle between faces at which their edge is shaded smoothly."""
_PERIOD = 1.6
"""Length after which a procedural texture repeats [m]."""
_MOST_PIXELS = 256
"""Largest side of a texture sent to the browser [px]."""

_plain: weakref.WeakKeyDictionary[RenderPart, dict[bool, Any]] = weakref.WeakKeyDictionary()


def simplified(triangles: Triangles) -> Triangles:
    """Reduce a part in a few plain colors to about a tenth of its triangles; other parts are unchanged."""
    faces = np.asarray(triangles.faces)
    _, first, color = np.unique(triangles.uvs[faces[:, 0]].round(4), axis=0, return_index=True, return_inverse=True)
    if len(faces) <= _FEW or len(first) > _MOST_COLORS:
        return triangles
    corners, normals, uvs = [], [], []
    for number, one in enumerate(first):
        places, kept = _fewer(*_welded(triangles.vertices, faces[color.ravel() == number]))
        corners.append(places[kept].reshape(-1, 3))
        normals.append(_corner_normals(places, kept))
        uvs.append(np.tile(triangles.uvs[faces[one, 0]], (3 * len(kept), 1)))
    vertices = np.concatenate(corners).astype(np.float32)
    return replace(
        triangles,
        vertices=vertices,
        faces=np.arange(len(vertices), dtype=np.int32).reshape(-1, 3),
        normals=np.concatenate(normals).astype(np.float32),
        uvs=np.concatenate(uvs).astype(np.float32),
        colors=np.ones((len(vertices), 3), dtype=np.float32),
    )


def _welded(vertices: AnyArray, faces: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Merge equal vertices and drop unused ones."""
    places, index = np.unique(vertices[faces].reshape(-1, 3).round(5), axis=0, return_inverse=True)
    return places.astype(np.float32), index.reshape(-1, 3).astype(np.int32)


def _fewer(vertices: AnyArray, faces: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Decimate by quadric error metrics (Garland and Heckbert 1997)."""
    from fast_simplification import simplify  # pyright: ignore[reportMissingImports]

    if len(faces) <= _FEW:
        return vertices, faces
    places, kept, *_ = simplify(vertices, faces, target_reduction=1.0 - _KEPT)
    return places, kept


def _corner_normals(vertices: AnyArray, faces: AnyArray) -> AnyArray:
    """Return corner normals (3 m, 3): the vertex normal on a smooth surface, and the face normal at a sharp edge."""
    one, two, three = (vertices[faces[:, corner]] for corner in range(3))
    across = np.cross(two - one, three - one)
    around = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(around, faces[:, corner], across)
    round_, flat = _unit(around)[faces], _unit(across)[:, None]
    is_round = (round_ * flat).sum(axis=2, keepdims=True) > _SMOOTH
    return np.where(is_round, round_, flat).reshape(-1, 3)


def _unit(vectors: AnyArray) -> AnyArray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def part_mesh(part: RenderPart, surface: SurfaceLook, *, simple: bool = False) -> Any:
    """Return the ``trimesh.Trimesh`` of a part, in the frame of its body [m].

    Args:
        part: The part.
        surface: Surface of the part.
        simple: Use fewer triangles.
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
    # glTF's default material is bare metal, which would be black in an environment without reflections.
    material = PBRMaterial(baseColorTexture=picture, metallicFactor=0.0, roughnessFactor=0.8)
    return trimesh.Trimesh(**plain, visual=TextureVisuals(uv=triangles.uvs, material=material), process=False)


def mean_color(part: RenderPart, surface: SurfaceLook) -> tuple[int, int, int]:
    """Return the mean sRGB color of a part's texture, of three numbers up to 255."""
    worn = surface_image(surface)
    image = _tinted(part.image if worn is None else worn, surface)
    red, green, blue = image.reshape(-1, 3).mean(axis=0).round().astype(int).tolist()
    return red, green, blue


def _tinted(image: NDArray[np.uint8], surface: SurfaceLook) -> NDArray[np.uint8]:
    return np.clip(image * np.asarray(surface.color), 0, 255).astype(np.uint8)
