"""Meshes, collision boxes and images of stages."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import AnyArray, FloatArray, ImageArray
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.own_files import make_subfolder
from nimbus.datagen.version import versioned_hash


def add_mesh(
    stage: Any, path: str, *, points: AnyArray, faces: AnyArray, normals: AnyArray, uvs: AnyArray, material: Any
) -> None:
    """Add a mesh: points (n, 3) [m], faces (m, 3), unit normals (n, 3) and texture coordinates (n, 2)."""
    from pxr import Sdf, UsdGeom, UsdShade, Vt

    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points.astype(np.float32)))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(faces), 3, dtype=np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(faces.astype(np.int32).ravel()))
    mesh.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(normals.astype(np.float32)))
    mesh.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateDoubleSidedAttr(True)
    st = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.vertex)
    st.Set(Vt.Vec2fArray.FromNumpy(uvs.astype(np.float32)))
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)


def add_contact(stage: Any, path: str, middle: FloatArray, extent: FloatArray) -> None:
    """Add an invisible box for collisions, with its center and its sides [m]."""
    from pxr import UsdGeom, UsdPhysics

    cube = UsdGeom.Cube.Define(stage, path)
    cube.CreateSizeAttr(1.0)
    UsdGeom.XformCommonAPI(cube).SetTranslate(tuple(map(float, middle)))
    UsdGeom.XformCommonAPI(cube).SetScale(tuple(map(float, extent)))
    cube.CreateVisibilityAttr(UsdGeom.Tokens.invisible)
    UsdPhysics.CollisionAPI.Apply(cube.GetPrim())


def keep_picture(folder: Path, image: ImageArray) -> str:
    """Write an image into the cache unless it exists already; return the name of its file."""
    name = _picture_name(image)
    if not (folder / name).is_file():
        _write_picture(folder / name, image)
    return name


class PictureFolder:
    """Folder of the images of a stage outside of the cache, in which each image is written once.

    A file that is there already is replaced, because it may come from another user.

    Args:
        path: The folder, which is made with the first image.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: set[str] = set()

    def keep(self, image: ImageArray) -> str:
        """Write an image; return the name of its file.

        Raises:
            InputError: The folder is a link, or a file has its name.
        """
        name = _picture_name(image)
        if name not in self._written:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            make_subfolder(self.path)
            _write_picture(self.path / name, image)
            self._written.add(name)
        return name


def _picture_name(image: ImageArray) -> str:
    return f"{versioned_hash(image.tobytes() + str(image.shape).encode(), 1)}.png"


def _write_picture(path: Path, image: ImageArray) -> None:
    from PIL import Image as PillowImage

    with replacing(path, durable=False, shared=True) as temporary:
        PillowImage.fromarray(image).save(temporary, format="PNG")
