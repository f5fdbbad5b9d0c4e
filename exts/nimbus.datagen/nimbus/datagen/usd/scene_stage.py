"""USD stage of a navigation scene: every part with its material, and with collision geometry."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import ImageArray
from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart
from nimbus.datagen.usd.stage_meshes import PictureFolder, add_mesh

SCENE = "/World/scene"
_LOOKS = "/World/looks"
_LAMP_RADIUS = 0.12
"""Radius of a ceiling lamp [m]."""
_LAMP_INTENSITY = 30_000.0
"""Intensity of a ceiling lamp [nit]; for its size, this is about 17,000 lm, before the losses at the walls."""
_SKY_INTENSITY = 300.0
"""Intensity of the dome light [nit], which keeps rooms without a lamp from being black."""


def write_scene_stage(path: Path, scene: NavigationScene) -> None:
    """Write a stage; images go to a folder beside it.

    Parts whose textures contain their light, such as scans, are emissive. Collision geometry consists of the triangles
    of all parts except views through windows.

    Args:
        path: File to write; it must not be open in this process.
        scene: The scene.
    """
    from pxr import Tf, Usd, UsdGeom, UsdPhysics

    path.parent.mkdir(parents=True, exist_ok=True)
    stage: Any = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    UsdPhysics.Scene.Define(stage, "/PhysicsScene")
    UsdGeom.Scope.Define(stage, _LOOKS)
    looks = _Looks(stage, path)
    counts: dict[str, int] = {}
    for part in scene.parts:
        name = Tf.MakeValidIdentifier(part.name)  # several names may give the same identifier
        place = f"{SCENE}/{name}"
        if name not in counts:
            thing = UsdGeom.Xform.Define(stage, place).GetPrim()
            for key, value in (("class", part.object_class), ("room", part.room)):
                thing.SetCustomDataByKey(f"nimbus:{key}", value)
        number = counts[name] = counts.get(name, -1) + 1
        if len(part.triangles.faces):
            _add_part(stage, f"{place}/part_{number}", part, looks, shines=scene.is_lit or part.is_open)
    _add_lights(stage, scene)
    stage.GetRootLayer().Save()


def _add_part(stage: Any, place: str, part: ScenePart, looks: _Looks, *, shines: bool) -> None:
    from pxr import Sdf, UsdGeom, UsdPhysics, Vt

    triangles = part.triangles
    add_mesh(
        stage,
        place,
        points=triangles.vertices,
        faces=triangles.faces,
        normals=triangles.normals,
        uvs=triangles.uvs,
        material=looks.material(part.image, shines=shines),
    )
    prim = stage.GetPrimAtPath(place)
    if part.image is None:
        kind, interpolation = Sdf.ValueTypeNames.Color3fArray, UsdGeom.Tokens.vertex
        colors = UsdGeom.PrimvarsAPI(prim).CreatePrimvar("displayColor", kind, interpolation)
        colors.Set(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(triangles.colors, dtype=np.float32)))
    if not part.is_open:
        UsdPhysics.CollisionAPI.Apply(prim)
        UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(UsdPhysics.Tokens.none)


def _add_lights(stage: Any, scene: NavigationScene) -> None:
    from pxr import Gf, UsdGeom, UsdLux

    if scene.is_lit:
        return  # its textures contain its light
    UsdGeom.Scope.Define(stage, "/World/Lights")
    for number, lamp in enumerate(scene.lamps):
        light = UsdLux.SphereLight.Define(stage, f"/World/Lights/lamp_{number}")
        light.CreateRadiusAttr(_LAMP_RADIUS)
        light.CreateIntensityAttr(_LAMP_INTENSITY)
        UsdGeom.XformCommonAPI(light).SetTranslate(Gf.Vec3d(*map(float, lamp)))
    UsdLux.DomeLight.Define(stage, "/World/Lights/sky").CreateIntensityAttr(_SKY_INTENSITY)


class _Looks:
    """Materials of a stage, one for each image."""

    def __init__(self, stage: Any, path: Path) -> None:
        self._stage = stage
        self._pictures = PictureFolder(path.with_name(f"{path.stem}_textures"))
        self._made: dict[tuple[str, bool], Any] = {}

    def material(self, image: ImageArray | None, *, shines: bool) -> Any:
        """Return the material with an image, or with the vertex colors."""
        name = "" if image is None else self._pictures.keep(image)
        if (name, shines) not in self._made:
            self._made[name, shines] = self._make(name, shines)
        return self._made[name, shines]

    def _make(self, picture: str, shines: bool) -> Any:
        from pxr import Sdf, UsdShade

        types = Sdf.ValueTypeNames
        path = f"{_LOOKS}/material_{len(self._made)}"
        material = UsdShade.Material.Define(self._stage, path)
        surface = UsdShade.Shader.Define(self._stage, f"{path}/preview")
        surface.CreateIdAttr("UsdPreviewSurface")
        surface.CreateInput("roughness", types.Float).Set(0.7)
        reader = UsdShade.Shader.Define(self._stage, f"{path}/reader")
        reader.CreateIdAttr("UsdPrimvarReader_float2" if picture else "UsdPrimvarReader_float3")
        reader.CreateInput("varname", types.String).Set("st" if picture else "displayColor")
        color = reader.CreateOutput("result", types.Float2 if picture else types.Float3)
        if picture:
            image = UsdShade.Shader.Define(self._stage, f"{path}/image")
            image.CreateIdAttr("UsdUVTexture")
            image.CreateInput("file", types.Asset).Set(Sdf.AssetPath(f"./{self._pictures.path.name}/{picture}"))
            image.CreateInput("sourceColorSpace", types.Token).Set("sRGB")
            for wrap in ("wrapS", "wrapT"):
                image.CreateInput(wrap, types.Token).Set("repeat")
            image.CreateInput("st", types.Float2).ConnectToSource(color)
            color = image.CreateOutput("rgb", types.Float3)
        surface.CreateInput("emissiveColor" if shines else "diffuseColor", types.Color3f).ConnectToSource(color)
        if shines:
            surface.CreateInput("diffuseColor", types.Color3f).Set((0.0, 0.0, 0.0))
        material.CreateSurfaceOutput().ConnectToSource(surface.CreateOutput("surface", types.Token))
        return material
