"""Reader of mesh files: OBJ, GLB, STL and PLY with trimesh, USD with pxr."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PillowImage

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular, read_bytes, real_path
from nimbus.datagen.media.picture_files import limit_formats, open_picture
from nimbus.datagen.meshes.mesh_folder import LARGEST_FILE
from nimbus.datagen.objects.imported.gltf_sizes import check_gltf_sizes, gltf_files
from nimbus.datagen.objects.imported.roots import below
from nimbus.datagen.objects.imported.surface import ImportedSurface, color_surface

USD_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
SUFFIXES = (".obj", ".glb", ".gltf", ".stl", ".ply", *USD_SUFFIXES)
_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tga", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
REFERRED = (".mtl", ".bin", *USD_SUFFIXES, *_PICTURES)
"""Suffixes of the files to which a mesh other than glTF may refer. Others are not read: the hash of a library covers
these alone."""
_MOST_FACES = 2_000_000
_TEXTURE_SIDE = 2048
"""Largest side of a texture when read [px]; stored textures are baked smaller."""
_GREY = (170, 170, 172)


def read_surface(path: Path, *, root: Path | None = None, look: OutsideLook | None = None) -> ImportedSurface:
    """Read the triangles of a file with their colors.

    Args:
        path: The file.
        root: Folder in which referenced files may lie; a missing texture is only omitted. Without a root,
            referenced files must lie in the mesh's folder, or the mesh is refused.
        look: Materials from outside the file, as in URDF and MJCF.

    Raises:
        InputError: The file is empty, too large, not in the format of its suffix, or has no triangle.
    """
    size = check_regular(path)
    if not size:
        raise InputError("the file is empty", where=str(path), instead="restore the file from its source")
    if size > LARGEST_FILE:
        raise InputError(
            f"{size / 2**20:.0f} MiB; the limit is {LARGEST_FILE / 2**20:.0f}",
            where=str(path),
            instead="simplify the mesh or shrink its textures",
        )
    if path.suffix.lower() in USD_SUFFIXES:
        from nimbus.datagen.objects.imported.read_usd import read_usd

        surface = read_usd(path, root=root)
    elif path.suffix.lower() == ".msh":
        surface = join_surfaces([_surface(_read_msh(path), look)], unit_is_known=False, up="z")
    else:
        surface = _with_trimesh(path, root, look)
    if not len(surface.corners):
        raise InputError("contains no triangles", where=str(path), instead="export a mesh, not points, lines or curves")
    if len(surface.corners) > _MOST_FACES:
        raise InputError(
            f"{len(surface.corners)} triangles; the limit is {_MOST_FACES}",
            where=str(path),
            instead="simplify the mesh",
        )
    if not np.isfinite(surface.corners).all():
        raise InputError("a coordinate of a vertex is not a number", where=str(path), instead="export it again")
    return surface


@dataclass(frozen=True, kw_only=True)
class OutsideLook:
    """Appearance of a mesh from outside its file, which replaces the file's own."""

    texture: Path | None = None
    color: tuple[float, float, float] | None = None
    """sRGB from 0 to 1, used without a texture."""


def read_nodes(path: Path) -> list[tuple[str, ImportedSurface]]:
    """Read the named meshes of a glTF file separately, each at the position of its node [m, y up].

    Raises:
        InputError: The file is not glTF, refers to files outside its folder, or has a vertex that is not a
            number.
    """
    check_regular(path, limit=LARGEST_FILE)
    meshes, _ = _load_meshes(path, None)
    found = [(str(mesh.metadata.get("node", "part")), _surface(mesh, None)) for mesh in meshes if len(mesh.faces)]
    for name, surface in found:
        if not np.isfinite(surface.corners).all():
            what = f"a coordinate of a vertex of '{name[:60]}' is not a number"
            raise InputError(what, where=str(path), instead="export it again")
    # A face without texture coordinates gets those of a corner of the texture.
    return [(name, replace(surface, uvs=np.nan_to_num(surface.uvs, posinf=0.0, neginf=0.0))) for name, surface in found]


def _with_trimesh(path: Path, root: Path | None, look: OutsideLook | None) -> ImportedSurface:
    meshes, outside = _load_meshes(path, root)
    parts = [_surface(mesh, look) for mesh in meshes if len(mesh.faces)]
    known = path.suffix.lower() in (".glb", ".gltf")  # the format defines meters and y up
    notes = tuple(f"'{name}' is missing below the root and is omitted" for name in dict.fromkeys(outside))
    return join_surfaces(parts, unit_is_known=known, up="y" if known else "z", notes=notes)


def _load_meshes(path: Path, root: Path | None) -> tuple[list[Any], list[str]]:
    """Return meshes in the frame of the file, and the names of referenced files that are missing or outside."""
    import trimesh
    from trimesh.resolvers import FilePathResolver

    outside: list[str] = []
    unlisted: list[str] = []
    listed: set[Path] = set()
    _refuse_compression(path)
    if is_gltf := path.suffix.lower() in (".glb", ".gltf"):
        check_gltf_sizes(path)
        listed = {file.resolve() for file in gltf_files(path)} if root is None else set()

    class FolderResolver(FilePathResolver):
        """Resolver that finds materials and textures only below the file's folder."""

        def get(self, name: str) -> Any:
            if root is not None:
                found = below(root, path.parent, name)
                if not found:
                    outside.append(name)
                    raise FileNotFoundError(name)
                return read_bytes(root / found, limit=LARGEST_FILE)
            target = real_path(path.parent / name.strip())
            if not is_gltf and not target.name.lower().endswith(REFERRED):
                raise FileNotFoundError(name)  # the parser goes on without the file
            if not target.is_relative_to(path.parent.resolve()):
                outside.append(name)  # the parser ignores errors raised here
                raise FileNotFoundError(name)
            if is_gltf and target not in listed and target.is_file():
                unlisted.append(name)  # checks and hashes cover the listed files alone
                raise FileNotFoundError(name)
            return read_bytes(target, limit=LARGEST_FILE)

    limit_formats()
    try:
        place = str(path.absolute())  # trimesh would look for a relative path "~/a.glb" in the home folder
        loaded: Any = trimesh.load_scene(place, resolver=FolderResolver(place), process=False)
        meshes = [mesh for mesh in loaded.dump() if isinstance(mesh, trimesh.Trimesh)]
    except Exception as error:  # the parser raises various errors for a foreign file
        what = f"cannot be read as {path.suffix[1:].upper()}: {type(error).__name__}: {error}"
        raise InputError(what.replace("\n", " "), where=str(path), instead="export it again") from None
    if unlisted:
        what, instead = f"refers to '{unlisted[0][:200]}', which is not a plain path", "write the path without '..'"
        raise InputError(what, where=str(path), instead=instead)
    if outside and root is None:
        raise InputError(f"refers to '{outside[0]}' outside its folder", where=str(path), instead="put it there")
    return meshes, outside


def _refuse_compression(path: Path) -> None:
    """Refuse a glTF whose compressed triangles need a library that is not installed."""
    if path.suffix.lower() in (".glb", ".gltf"):
        with path.open("rb") as file:
            head = file.read(1 << 20)
        required = b"".join(re.findall(rb'"extensionsRequired"\s*:\s*\[([^]]*)', head))
        for name in (b"KHR_draco_mesh_compression", b"EXT_meshopt_compression"):
            if name in required:
                what, instead = f"is compressed with {name.decode()}", "export it without compression"
                raise InputError(what, where=str(path), instead=instead)


def _read_msh(path: Path) -> Any:
    """Read MuJoCo's binary format: four counts (vertices, normals, texture coordinates, faces), then their blocks."""
    import trimesh
    from trimesh.visual import TextureVisuals

    content = read_bytes(path, limit=LARGEST_FILE)
    counts = np.frombuffer(content[:16], "<i4").astype(np.int64)
    if len(counts) < 4 or counts.min() < 0 or len(content) != 16 + 12 * counts[[0, 1, 3]].sum() + 8 * counts[2]:
        raise InputError("cannot be read as MSH", where=str(path), instead="export it as OBJ")
    ends = 16 + np.cumsum([12 * counts[0], 12 * counts[1], 8 * counts[2]])
    vertices = np.frombuffer(content[16 : ends[0]], "<f4").reshape(-1, 3)
    uvs = np.frombuffer(content[ends[1] : ends[2]], "<f4").reshape(-1, 2)
    faces = np.frombuffer(content[ends[2] :], "<i4").reshape(-1, 3)
    if faces.min(initial=0) < 0 or faces.max(initial=-1) >= len(vertices):
        raise InputError("a face refers to a missing vertex", where=str(path), instead="export it again")
    visual = TextureVisuals(uv=uvs * (1, -1) + (0, 1)) if len(uvs) == len(vertices) else None
    return trimesh.Trimesh(vertices, faces, visual=visual, process=False)


def _surface(mesh: Any, look: OutsideLook | None) -> ImportedSurface:
    corners = np.asarray(mesh.vertices, dtype=np.float64)[mesh.faces]
    visual = mesh.visual
    image, uv = _image(visual), getattr(visual, "uv", None)
    if look and look.texture:
        limit_formats()
        image = texel_colors(open_picture(look.texture))
        if uv is None:
            look = replace(look, color=tuple((image.reshape(-1, 3).mean(axis=0) / 255).tolist()))
    if image is not None and uv is not None and len(uv) == len(mesh.vertices):
        return ImportedSurface(corners=corners, uvs=np.asarray(uv, dtype=np.float64)[mesh.faces], texture=image)
    if look and look.color:
        return color_surface(corners, np.tile(_srgb(look.color), (len(corners), 1)))
    colors = np.tile(np.array(_GREY, dtype=np.uint8), (len(corners), 1))
    if visual.kind in ("vertex", "face"):
        colors = np.asarray(visual.face_colors)[:, :3].astype(np.uint8)
    elif (main := getattr(getattr(visual, "material", None), "main_color", None)) is not None:
        colors[:] = np.asarray(main)[:3]
    return color_surface(corners, colors)


def _srgb(color: tuple[float, float, float]) -> ImageArray:
    return (255 * np.clip(np.array(color), 0, 1) + 0.5).astype(np.uint8)


def _image(visual: Any) -> ImageArray | None:
    material = getattr(visual, "material", None)
    picture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    return None if picture is None else texel_colors(picture)


def texel_colors(picture: PillowImage.Image, side: int = _TEXTURE_SIDE) -> ImageArray:
    """Return the texels (H, W, 3) of an image, shrunk until no side exceeds a given length."""
    if picture.mode.startswith("I"):  # these texels have 16 bits, which Pillow's conversion would clip at 255
        picture = PillowImage.fromarray((np.asarray(picture).astype(np.uint32) // 257).clip(0, 255).astype(np.uint8))
    picture = picture.convert("RGB")
    share = min(side / max(picture.size), 1.0)
    size = (max(round(picture.width * share), 1), max(round(picture.height * share), 1))
    return np.asarray(picture.resize(size, PillowImage.Resampling.BOX) if share < 1 else picture)


def join_surfaces(
    parts: list[ImportedSurface], *, metres: float = 1.0, unit_is_known: bool, up: str, notes: tuple[str, ...] = ()
) -> ImportedSurface:
    """Merge several surfaces, with their textures side by side."""
    if not parts:
        empty = ImportedSurface(
            corners=np.zeros((0, 3, 3)), uvs=np.zeros((0, 3, 2)), texture=np.zeros((1, 1, 3), np.uint8)
        )
        return empty
    textures: list[ImageArray] = []
    for part in parts:
        if not any(part.texture is known or np.array_equal(part.texture, known) for known in textures):
            textures.append(part.texture)
    layers = tuple(layer for part in parts for layer in part.layers or ((part.texture, part.uvs),))
    sheet, windows = lay_side_by_side(textures)
    uvs = []
    for part in parts:
        place = next(index for index, known in enumerate(textures) if np.array_equal(part.texture, known))
        uvs.append(_into(part.uvs, windows[place]) if len(textures) > 1 else part.uvs)
    return ImportedSurface(
        corners=np.concatenate([part.corners for part in parts]),
        uvs=np.concatenate(uvs),
        layers=layers if len(textures) > 1 or len(layers) > len(parts) else (),
        texture=sheet,
        metres=metres,
        unit_is_known=unit_is_known,
        up=up,
        notes=notes,
    )


def lay_side_by_side(textures: list[ImageArray]) -> tuple[ImageArray, list[tuple[float, float, float]]]:
    """Join textures into one image; the second result is (first u, last u, lowest v) of each texture in it."""
    if len(textures) == 1:
        return textures[0], [(0.0, 1.0, 0.0)]
    textures = [
        texel_colors(PillowImage.fromarray(image), max(_TEXTURE_SIDE // len(textures), 8)) for image in textures
    ]
    width, height = sum(image.shape[1] for image in textures), max(image.shape[0] for image in textures)
    sheet, windows, left = np.zeros((height, width, 3), dtype=np.uint8), [], 0
    for image in textures:
        sheet[: image.shape[0], left : left + image.shape[1]] = image
        windows.append((left / width, (left + image.shape[1]) / width, 1 - image.shape[0] / height))
        left += image.shape[1]
    return sheet, windows


def _into(uvs: FloatArray, window: tuple[float, float, float]) -> FloatArray:
    inside = uvs - np.floor(uvs.mean(axis=1, keepdims=True))
    inside = np.clip(inside, 0.002, 0.998)
    u = window[0] + inside[..., 0] * (window[1] - window[0])
    return np.stack([u, window[2] + inside[..., 1] * (1 - window[2])], axis=-1)
