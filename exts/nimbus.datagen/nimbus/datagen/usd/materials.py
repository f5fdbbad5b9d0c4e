"""Application of a layout's surface looks to the prims of a stage: tints of materials, or textures in their place.

Materials are UsdPreviewSurface, which every USD renderer supports; for MDL materials, the tint of OmniPBR is set.
"""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.textures.color import linear
from nimbus.datagen.textures.procedural import surface_image, texture_period
from nimbus.datagen.usd.stage_meshes import PictureFolder

_LOOKS = "dressed"
"""Name of the prim that contains the added materials of a thing, below that thing."""
_GREY = (0.5, 0.5, 0.5)
_WHITEST = 0.92
"""Largest sRGB value of a color; in the default renderer no surface reflects all light."""
_ROUGHNESS = 0.7


def apply_materials(root: Any, surface: SurfaceLook, *, textures: PictureFolder, role: str = "") -> None:
    """Apply a layout's look to everything below a prim, which must include its material prims.

    Geometry with a plain color and no material gets a material, so that its color equals that of the default renderer.

    Args:
        root: Prim of an object, a fixture or a part of the room; edits go to the stage's edit target.
        surface: Look of the surface.
        textures: Folder for images.
        role: Role that determines the texture's period and size: ``table``, ``floor``, ``backdrop``.
    """
    painter = _Painter(root, surface, textures, role=role)
    for prim in list(_bindable(root)):
        painter.paint(prim)


def _bindable(root: Any) -> Iterator[Any]:
    from pxr import Usd, UsdGeom

    for prim in Usd.PrimRange(root):
        if prim.IsA(UsdGeom.Gprim) and UsdGeom.Imageable(prim).ComputePurpose() in (
            UsdGeom.Tokens.default_,
            UsdGeom.Tokens.render,
        ):
            yield prim
            yield from (below for below in prim.GetChildren() if below.IsA(UsdGeom.Subset))


class _Painter:
    """Painter of a thing's surfaces; each material is made and tinted once."""

    def __init__(self, root: Any, surface: SurfaceLook, textures: PictureFolder, *, role: str) -> None:
        self._root, self._surface, self._textures, self._period = root, surface, textures, texture_period(role)
        self._stage = root.GetStage()
        self._image = surface_image(surface, role)
        self._tint = np.asarray(surface.color, dtype=float)
        self._made: dict[Any, Any] = {}
        self._tinted: set[Any] = set()

    def paint(self, prim: Any) -> None:
        """Paint one mesh, shape or subset."""
        from pxr import UsdGeom, UsdShade

        found: Any = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
        bound = found[0]
        if self._image is not None:
            if prim.IsA(UsdGeom.Mesh):
                project(prim, period=self._period)
                self._bind(prim, self._textured())
            elif prim.IsA(UsdGeom.Subset):
                self._bind(prim, self._textured())
            else:  # shapes have no texture coordinates
                mean = self._image.reshape(-1, 3).mean(axis=0) / 255.0
                self._bind(prim, self._plain(mean * self._tint))
        elif not bound:
            if prim.IsA(UsdGeom.Gprim):
                self._bind(prim, self._plain(np.minimum(_color(prim), _WHITEST) * self._tint))
        elif bound.GetPath().HasPrefix(self._root.GetPath()) and bound.GetPath() not in self._tinted:
            self._tinted.add(bound.GetPath())
            if self._surface.color != (1.0, 1.0, 1.0):
                _tint(bound, linear(self._tint))

    def _bind(self, prim: Any, material: Any) -> None:
        from pxr import UsdShade

        UsdShade.MaterialBindingAPI.Apply(prim).Bind(material)

    def _plain(self, srgb: FloatArray) -> Any:
        """Return a material of one color."""
        key = tuple(np.round(srgb, 4))
        if key not in self._made:
            material, shader = self._material(f"plain_{len(self._made)}")
            from pxr import Gf, Sdf

            color = shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
            color.Set(Gf.Vec3f(*(float(value) for value in linear(srgb))))
            self._made[key] = material
        return self._made[key]

    def _textured(self) -> Any:
        """Return the material of the texture, with its image written beside the stage."""
        from pxr import Gf, Sdf, UsdShade

        if "textured" in self._made:
            return self._made["textured"]
        material, shader = self._material("textured")
        types = Sdf.ValueTypeNames
        reader = UsdShade.Shader.Define(self._stage, material.GetPath().AppendChild("st"))
        reader.CreateIdAttr("UsdPrimvarReader_float2")
        reader.CreateInput("varname", types.String).Set("st")
        image = UsdShade.Shader.Define(self._stage, material.GetPath().AppendChild("image"))
        image.CreateIdAttr("UsdUVTexture")
        image.CreateInput("file", types.Asset).Set(Sdf.AssetPath(self._picture()))
        image.CreateInput("sourceColorSpace", types.Token).Set("sRGB")
        for axis in ("wrapS", "wrapT"):
            image.CreateInput(axis, types.Token).Set("repeat")
        image.CreateInput("scale", types.Float4).Set(Gf.Vec4f(*map(float, linear(self._tint)), 1.0))
        image.CreateInput("st", types.Float2).ConnectToSource(reader.CreateOutput("result", types.Float2))
        diffuse = shader.CreateInput("diffuseColor", types.Color3f)
        diffuse.ConnectToSource(image.CreateOutput("rgb", types.Float3))
        self._made["textured"] = material
        return material

    def _picture(self) -> str:
        """Return the path of the texture, relative to the edited layer."""
        path = self._textures.path / self._textures.keep(np.asarray(self._image))
        layer = Path(self._stage.GetEditTarget().GetLayer().realPath).absolute().parent
        relative = os.path.relpath(path.absolute(), layer)
        return relative if relative.startswith(".") else f"./{relative}"

    def _material(self, name: str) -> tuple[Any, Any]:
        """Make a UsdPreviewSurface material below the thing."""
        from pxr import Sdf, UsdGeom, UsdShade

        looks = self._root.GetPath().AppendChild(_LOOKS)
        UsdGeom.Scope.Define(self._stage, looks)
        material = UsdShade.Material.Define(self._stage, looks.AppendChild(name))
        shader = UsdShade.Shader.Define(self._stage, material.GetPath().AppendChild("preview"))
        shader.CreateIdAttr("UsdPreviewSurface")
        shader.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(_ROUGHNESS)
        material.CreateSurfaceOutput().ConnectToSource(shader.CreateOutput("surface", Sdf.ValueTypeNames.Token))
        return material, shader


def project(mesh: Any, *, period: float) -> None:
    """Set texture coordinates by projection along the dominant axis of each face, in the frame of the stage.

    Args:
        mesh: A mesh prim.
        period: Length of one repetition of the texture [m].
    """
    from pxr import Sdf, UsdGeom, Vt

    geometry: Any = UsdGeom.Mesh(mesh)
    counts = np.asarray(geometry.GetFaceVertexCountsAttr().Get(), dtype=int)
    corners = np.asarray(geometry.GetFaceVertexIndicesAttr().Get(), dtype=int)
    matrix = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(mesh)).T
    points = np.asarray(geometry.GetPointsAttr().Get(), dtype=float) @ matrix[:3, :3].T + matrix[:3, 3]
    starts = np.cumsum(counts) - counts
    first, second, last = (points[corners[starts + offset]] for offset in (0, 1, 2))
    axis = np.repeat(np.argmax(np.abs(np.cross(second - first, last - first)), axis=1), counts)
    across, along = np.array([1, 0, 0])[axis], np.array([2, 2, 1])[axis]
    rows = np.arange(len(corners))
    uvs = np.stack([points[corners][rows, across], points[corners][rows, along]], axis=1) / period
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar(
        "st", Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.faceVarying
    )
    primvar.Set(Vt.Vec2fArray.FromNumpy(uvs.astype(np.float32)))
    primvar.BlockIndices()


def boxes_as_meshes(root: Any) -> None:
    """Convert cubes to meshes, which can have texture coordinates."""
    from pxr import Usd, UsdGeom, Vt

    for prim in Usd.PrimRange(root):
        if not prim.IsA(UsdGeom.Cube):
            continue
        half = 0.5 * float(UsdGeom.Cube(prim).GetSizeAttr().Get())
        prim.SetTypeName("Mesh")
        prim.RemoveProperty("size")
        mesh: Any = UsdGeom.Mesh(prim)
        mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy((_CORNERS * half).astype(np.float32)))
        mesh.CreateFaceVertexCountsAttr([4] * 6)
        mesh.CreateFaceVertexIndicesAttr(_FACES.ravel().tolist())
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        mesh.CreateExtentAttr([(-half,) * 3, (half,) * 3])


_CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
_FACES = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])


def _color(prim: Any) -> FloatArray:
    """Return the plain color of a shape, its own or an inherited one; as in the default renderer, it is sRGB."""
    from pxr import UsdGeom

    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance("displayColor")
    values = primvar.Get() if primvar else None
    return np.mean(np.asarray(values, dtype=float), axis=0) if values else np.array(_GREY)


def _tint(material: Any, factor: FloatArray) -> None:
    """Multiply the color of an existing material, constant or textured."""
    from pxr import Gf, Sdf, UsdShade

    shader = material.ComputeSurfaceSource()[0] or material.ComputeSurfaceSource("mdl")[0]
    if not shader:
        return
    if shader.GetSourceAssetSubIdentifier("mdl") == "OmniPBR":
        tint = shader.CreateInput("diffuse_tint", Sdf.ValueTypeNames.Color3f)
        tint.Set(Gf.Vec3f(*(float(value) for value in np.asarray(tint.Get() or (1.0,) * 3) * factor)))
        return
    diffuse = shader.GetInput("diffuseColor") or shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
    for attribute in diffuse.GetValueProducingAttributes() or [diffuse.GetAttr()]:
        source = UsdShade.Shader(attribute.GetPrim())
        if source and source.GetShaderId() == "UsdUVTexture":
            scale = source.CreateInput("scale", Sdf.ValueTypeNames.Float4)
            values = np.asarray(scale.Get() or (1.0,) * 4, dtype=float) * (*factor, 1.0)
            scale.Set(Gf.Vec4f(*map(float, values)))
        else:
            values = np.asarray(attribute.Get() or (0.18,) * 3, dtype=float) * factor
            attribute.Set(Gf.Vec3f(*map(float, values)))
