"""Reads a mesh file: OBJ, GLB, STL and PLY with trimesh, USD with pxr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PillowImage

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.media.picture_files import limit_formats
from nimbus.datagen.objects.imported.surface import ImportedSurface, color_surface

USD_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
SUFFIXES = (".obj", ".glb", ".gltf", ".stl", ".ply", *USD_SUFFIXES)
LARGEST_FILE = 256 * 2**20
_MOST_FACES = 2_000_000
_TEXTURE_SIDE = 511
_GREY = (170, 170, 172)


def read_surface(path: Path) -> ImportedSurface:
    """The triangles of a file with their colours.

    Raises:
        InputError: Empty, too large, not what its name says, or without a triangle.
    """
    size = check_regular(path)
    if not size:
        raise InputError("the file is empty", where=str(path))
    if size > LARGEST_FILE:
        raise InputError(f"{size / 2**20:.0f} MiB, at most {LARGEST_FILE / 2**20:.0f} are read", where=str(path))
    if path.suffix.lower() in USD_SUFFIXES:
        from nimbus.datagen.objects.imported.read_usd import read_usd

        surface = read_usd(path)
    else:
        surface = _with_trimesh(path)
    if not len(surface.corners):
        raise InputError("holds no triangle", where=str(path), instead="export a mesh, not points, lines or curves")
    if len(surface.corners) > _MOST_FACES:
        raise InputError(f"{len(surface.corners)} triangles, at most {_MOST_FACES} are read", where=str(path))
    if not np.isfinite(surface.corners).all():
        raise InputError("a vertex is not a number", where=str(path), instead="export it again")
    return surface


def _with_trimesh(path: Path) -> ImportedSurface:
    import trimesh
    from trimesh.resolvers import FilePathResolver

    outside: list[str] = []

    class FolderResolver(FilePathResolver):
        """Finds materials and textures below the file's folder, nowhere else."""

        def get(self, name: str) -> Any:
            target = (path.parent / name.strip()).resolve()
            if not target.is_relative_to(path.parent.resolve()):
                outside.append(name)  # the parser swallows what is raised here
                raise FileNotFoundError(name)
            check_regular(target, limit=LARGEST_FILE)
            return super().get(name)

    limit_formats()
    try:
        loaded: Any = trimesh.load_scene(str(path), resolver=FolderResolver(str(path)), process=False)
        meshes = [mesh for mesh in loaded.dump() if isinstance(mesh, trimesh.Trimesh)]
    except Exception as error:  # whatever a parser stumbles over in a file that is not its own
        what = f"cannot be read as {path.suffix[1:].upper()}: {type(error).__name__}: {error}"
        raise InputError(what.replace("\n", " "), where=str(path), instead="export it again") from None
    if outside:
        raise InputError(f"refers to '{outside[0]}' outside its folder", where=str(path), instead="put it there")
    parts = [_surface(mesh) for mesh in meshes if len(mesh.faces)]
    known = path.suffix.lower() in (".glb", ".gltf")  # the format says: metres, y up
    return join_surfaces(parts, unit_is_known=known, up="y" if known else "z")


def _surface(mesh: Any) -> ImportedSurface:
    corners = np.asarray(mesh.vertices, dtype=np.float64)[mesh.faces]
    visual = mesh.visual
    image, uv = _image(visual), getattr(visual, "uv", None)
    if image is not None and uv is not None and len(uv) == len(mesh.vertices):
        return ImportedSurface(corners=corners, uvs=np.asarray(uv, dtype=np.float64)[mesh.faces], texture=image)
    colors = np.tile(np.array(_GREY, dtype=np.uint8), (len(corners), 1))
    if visual.kind in ("vertex", "face"):
        colors = np.asarray(visual.face_colors)[:, :3].astype(np.uint8)
    elif (main := getattr(getattr(visual, "material", None), "main_color", None)) is not None:
        colors[:] = np.asarray(main)[:3]
    return color_surface(corners, colors)


def _image(visual: Any) -> ImageArray | None:
    material = getattr(visual, "material", None)
    picture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    return None if picture is None else texel_colors(picture)


def texel_colors(picture: PillowImage.Image) -> ImageArray:
    """(H, W, 3) of a picture, as large as a texture may be at most."""
    picture = picture.convert("RGB")
    share = min(_TEXTURE_SIDE / max(picture.size), 1.0)
    size = (max(round(picture.width * share), 1), max(round(picture.height * share), 1))
    return np.asarray(picture.resize(size, PillowImage.Resampling.BOX) if share < 1 else picture)


def join_surfaces(
    parts: list[ImportedSurface], *, metres: float = 1.0, unit_is_known: bool, up: str
) -> ImportedSurface:
    """Several surfaces as one, their textures side by side."""
    if not parts:
        empty = ImportedSurface(
            corners=np.zeros((0, 3, 3)), uvs=np.zeros((0, 3, 2)), texture=np.zeros((1, 1, 3), np.uint8)
        )
        return empty
    textures: list[ImageArray] = []
    for part in parts:
        if not any(part.texture is known or np.array_equal(part.texture, known) for known in textures):
            textures.append(part.texture)
    sheet, windows = _side_by_side(textures)
    uvs = []
    for part in parts:
        place = next(index for index, known in enumerate(textures) if np.array_equal(part.texture, known))
        uvs.append(_into(part.uvs, windows[place]) if len(textures) > 1 else part.uvs)
    return ImportedSurface(
        corners=np.concatenate([part.corners for part in parts]),
        uvs=np.concatenate(uvs),
        texture=sheet,
        metres=metres,
        unit_is_known=unit_is_known,
        up=up,
    )


def _side_by_side(textures: list[ImageArray]) -> tuple[ImageArray, list[tuple[float, float, float]]]:
    """One picture, and of each texture the window of u and the least v."""
    if len(textures) == 1:
        return textures[0], [(0.0, 1.0, 0.0)]
    width, height = sum(image.shape[1] for image in textures), max(image.shape[0] for image in textures)
    sheet, windows, left = np.zeros((height, width, 3), dtype=np.uint8), [], 0
    for image in textures:
        sheet[: image.shape[0], left : left + image.shape[1]] = image
        windows.append((left / width, (left + image.shape[1]) / width, 1 - image.shape[0] / height))
        left += image.shape[1]
    return texel_colors(PillowImage.fromarray(sheet)), windows


def _into(uvs: FloatArray, window: tuple[float, float, float]) -> FloatArray:
    inside = uvs - np.floor(uvs.mean(axis=1, keepdims=True))
    inside = np.clip(inside, 0.002, 0.998)
    u = window[0] + inside[..., 0] * (window[1] - window[0])
    return np.stack([u, window[2] + inside[..., 1] * (1 - window[2])], axis=-1)
