"""Reader of USD meshes with their textures or display colors."""
# The stubs of pxr say that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.media.picture_files import open_picture
from nimbus.datagen.objects.imported.composition import check_growth, outer_file
from nimbus.datagen.objects.imported.roots import below
from nimbus.datagen.objects.imported.surface import ImportedSurface, color_surface

_GREY = (170, 170, 172)
_MDL_TEXTURES = ("diffuse_texture", "albedo_texture", "base_color_texture", "basecolor_texture", "BaseColor_Tex")
_COLORS = ("diffuseColor", "diffuse_color_constant", "diffuse_tint", "base_color", "albedo_color")
"""Inputs of MDL materials for textures and for colors; in each tuple, the inputs of OmniPBR come first."""


def read_usd(path: Path, *, root: Path | None = None) -> ImportedSurface:
    """Read all visible meshes, in the unit and with the up axis of the stage.

    Args:
        path: The file.
        root: Folder in which textures may lie; others are omitted. Without a root, textures must lie in the file's
            folder.
    """
    from pxr import Tf, Usd, UsdGeom

    from nimbus.datagen.objects.imported.read import USD_SUFFIXES, join_surfaces

    try:
        check_growth(path)
        stage: Any = Usd.Stage.Open(str(path.absolute()))
    except Tf.ErrorException as error:
        try:
            what = str(error).strip().splitlines()[-1]
        except UnicodeDecodeError:  # the message quotes bytes that are not text
            what = "no text"
        raise InputError(f"cannot be read as USD: {what}", where=str(path), instead="export it again") from None
    for layer in stage.GetUsedLayers():
        if layer.realPath and not outer_file(layer.realPath).name.lower().endswith(USD_SUFFIXES):
            what = f"consists of '{layer.realPath}', which is not USD"
            raise InputError(what, where=str(path), instead="export it as USD alone")
        if layer.realPath and not outer_file(layer.realPath).resolve().is_relative_to(path.parent.resolve()):
            raise InputError(
                f"refers to '{layer.realPath}' outside its folder", where=str(path), instead="copy it into the folder"
            )
    cache = UsdGeom.XformCache()
    parts, notes = [], []
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        mesh = UsdGeom.Mesh(prim)
        if mesh and mesh.ComputePurpose() in (UsdGeom.Tokens.default_, UsdGeom.Tokens.render):
            if mesh.ComputeVisibility() != UsdGeom.Tokens.invisible:
                parts += mesh_surfaces(mesh, np.array(cache.GetLocalToWorldTransform(prim)), path, root, notes)
    metres = float(UsdGeom.GetStageMetersPerUnit(stage))
    up = str(UsdGeom.GetStageUpAxis(stage)).lower()
    if up not in ("x", "y", "z"):
        raise InputError(f"upAxis '{up}' is not an axis", where=str(path), instead='write upAxis = "Y" or "Z"')
    if metres <= 0:
        metres = 0.01  # USD's own default
        notes.append("metersPerUnit is 0: the default of 0.01 is used")
    return join_surfaces(parts, metres=metres, unit_is_known=True, up=up, notes=tuple(dict.fromkeys(notes)))


def mesh_surfaces(
    mesh: Any, transform: FloatArray, path: Path, root: Path | None, notes: list[str]
) -> list[ImportedSurface]:
    """Read the triangles of a mesh as one surface, or none if it has no faces.

    Args:
        mesh: ``UsdGeom.Mesh``.
        transform: (4, 4) matrix of USD, for row vectors, to the requested frame.
        path: The stage's file.
        root: Folder of the source, as for :func:`read_usd`.
        notes: Receiver of notes about omitted data.

    Raises:
        InputError: A face refers to a missing point.
    """
    points, counts, indices = (
        getter().Get() for getter in (mesh.GetPointsAttr, mesh.GetFaceVertexCountsAttr, mesh.GetFaceVertexIndicesAttr)
    )
    if points is None or not counts or not indices:
        return []
    counts = np.asarray(counts)
    if counts.min() < 0 or counts.sum(dtype=np.int64) > len(indices):
        what = f"{mesh.GetPath()}: its faces have more corners than faceVertexIndices"
        raise InputError(what, where=str(path), instead="export it again")
    points = np.asarray(points, dtype=np.float64) @ transform[:3, :3] + transform[3, :3]
    indices, places = np.asarray(indices), _fans(counts)
    if indices.min() < 0 or indices.max() >= len(points) or places.max(initial=-1) >= len(indices):
        raise InputError(
            f"{mesh.GetPath()}: a face refers to a missing point", where=str(path), instead="export it again"
        )
    if mesh.GetOrientationAttr().Get() == "leftHanded":
        places = places[:, ::-1]
    corners = points[indices[places]]
    if np.linalg.det(transform[:3, :3]) < 0:
        corners, places = corners[:, ::-1], places[:, ::-1]
    image, uvs = _image(mesh, path, root, notes), _uvs(mesh, indices, places)
    if image is not None and uvs is not None:
        return [ImportedSurface(corners=corners, uvs=uvs, texture=image)]
    return [color_surface(corners, np.tile(_plain_color(mesh, image, notes), (len(corners), 1)))]


def _fans(counts: IndexArray) -> IndexArray:
    """Return (m, 3) indices into the list of face corners, with each polygon as a fan of triangles."""
    starts = np.cumsum(counts) - counts
    triangles = [
        (start, start + step, start + step + 1)
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
        for step in range(1, count - 1)
    ]
    return np.array(triangles, dtype=np.int32).reshape(-1, 3)


def _uvs(mesh: Any, indices: IndexArray, places: IndexArray) -> FloatArray | None:
    from pxr import UsdGeom

    api = UsdGeom.PrimvarsAPI(mesh)
    primvar = next((api.GetPrimvar(name) for name in ("st", "st0", "uv", "UVMap") if api.HasPrimvar(name)), None)
    flat = primvar.ComputeFlattened() if primvar else None
    if flat is None:
        return None
    values = np.asarray(flat, dtype=np.float64)
    each_corner = primvar.GetInterpolation() == UsdGeom.Tokens.faceVarying
    chosen = places if each_corner else indices[places]
    return values[chosen] if len(values) > chosen.max(initial=-1) else None


def _image(mesh: Any, path: Path, root: Path | None, notes: list[str]) -> ImageArray | None:
    from pxr import Ar

    from nimbus.datagen.objects.imported.read import REFERRED, texel_colors

    asset = _texture(mesh)
    if asset is None or not asset.path:
        return None
    found = str(asset.resolvedPath)
    if root is not None and not (Ar.IsPackageRelativePath(found) and outer_file(found).resolve().is_relative_to(root)):
        place = below(root, path.parent, asset.path)
        found = str(root / place) if place else ""
    if not found:
        notes.append(f"texture '{asset.path}' is missing below the root and is omitted")
        return None
    outer = outer_file(found)
    if root is None and not outer.resolve().is_relative_to(path.parent.resolve()):
        raise InputError(
            f"refers to '{asset.path}' outside its folder", where=str(path), instead="copy it into the folder"
        )
    if root is None and not outer.name.lower().endswith(REFERRED):
        notes.append(f"texture '{asset.path}' has another suffix than {', '.join(REFERRED)} and is omitted")
        return None
    check_regular(outer)
    opened: Any = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(found))
    if opened is None:
        notes.append(f"texture '{asset.path}' cannot be opened and is omitted")
        return None
    return texel_colors(open_picture(BytesIO(bytes(opened.GetBuffer()))))


def _shaders(mesh: Any) -> Iterator[Any]:
    """Yield the surface shader that a mesh is bound to, then the MDL shader."""
    from pxr import UsdShade

    bound: Any = UsdShade.MaterialBindingAPI(mesh).ComputeBoundMaterial()
    material = bound[0]
    for context in ("", "mdl") if material else ():
        shader = material.ComputeSurfaceSource(context)[0]
        if shader:
            yield shader


def _texture(mesh: Any) -> Any:
    """Find the file of a mesh's colors, which its UsdPreviewSurface or its MDL material (OmniPBR and similar) names."""
    from pxr import UsdShade

    for shader in _shaders(mesh):
        color = shader.GetInput("diffuseColor")
        if color and color.HasConnectedSource():
            file = UsdShade.Shader(color.GetConnectedSources()[0][0].source).GetInput("file")
            if file and file.Get():
                return file.Get()
        for name in _MDL_TEXTURES:
            file = shader.GetInput(name)
            if file and file.Get():
                return file.Get()
    return None


def _plain_color(mesh: Any, image: ImageArray | None, notes: list[str]) -> ImageArray:
    """Return the color of an untextured mesh: the mean of an unmapped texture, or its material's or display color."""
    colors = mesh.GetDisplayColorAttr().Get()
    said = (shader.GetInput(name) for shader in _shaders(mesh) for name in _COLORS)
    linear = next((value.Get() for value in said if value and value.Get() is not None), None)
    if image is not None:
        return (image.reshape(-1, 3).mean(axis=0) + 0.5).astype(np.uint8)
    if linear is None and colors:
        linear = colors[0]
    if linear is None:
        notes.append("has no color and is shown in gray")
        return np.array(_GREY, dtype=np.uint8)
    srgb = np.clip(np.array(linear, dtype=np.float64), 0, 1) ** (1 / 2.2)
    return (255 * srgb + 0.5).astype(np.uint8)
