"""USD stage with K states of a scene as K regions with their cameras, for Isaac Sim."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Dome, Lamp, Light
from nimbus.datagen.geometry.cameras import BodyRows, camera_poses
from nimbus.datagen.textures.environment_map import check_map
from nimbus.datagen.usd.stack_layout import NEAR, StackLayout
from nimbus.datagen.usd.visual_assets import VisualAssets

REGIONS = "/World/Regions"
PARTITION = "omni:scenePartition"
"""Attribute that assigns a prim and its viewers to a region, for renderers that support scene partitions."""
_OPERATIONS = "xformOp:translate", "xformOp:orient", "xformOp:scale"
_APERTURE = 20.955
"""Horizontal aperture [tenths of a stage unit]; only the ratio to the focal length matters."""


@dataclass(frozen=True, kw_only=True)
class RegionPaths:
    """Prims of one region."""

    root: str
    bodies: dict[str, str]
    """Prims whose poses are set, by trajectory body; they are direct children of the region."""
    cameras: dict[str, str]


def body_prim(name: str) -> str:
    """Return the name of a body's prim, which must not have a dot as in ``cabinet_0.door``."""
    return f"body_{name.replace('.', '__')}"


def region_paths(index: int, bodies: Sequence[str], cameras: Sequence[Camera]) -> RegionPaths:
    """Return the prim paths of region ``index``."""
    root = f"{REGIONS}/R_{index:03d}"
    return RegionPaths(
        root=root,
        bodies={name: f"{root}/{body_prim(name)}" for name in bodies},
        cameras={camera.name: f"{root}/camera_{camera.name}" for camera in cameras},
    )


def region_poses(
    cameras: Sequence[Camera], names: Sequence[str], positions: FloatArray, wxyz: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the poses of bodies (K, B, …) and cameras (K, C, …) in their regions; cameras have OpenGL axes.

    Args:
        cameras: C cameras.
        names: B body names.
        positions: (K, B, 3) [m]
        wxyz: (K, B, 4)
    """
    rows = BodyRows(names)
    seen = [camera_poses(camera, rows, positions, wxyz) for camera in cameras]
    eyes, turns = (np.stack([pose[part] for pose in seen], axis=1) for part in (0, 1))
    return positions, wxyz, eyes, turns


def write_stacked_stage(
    path: Path,
    assets: VisualAssets,
    layout: StackLayout,
    *,
    names: Sequence[str],
    positions: FloatArray,
    wxyz: FloatArray,
    cameras: Sequence[Camera],
    light: Light | None = None,
    dome: Dome | None = None,
) -> list[RegionPaths]:
    """Write the stage; bodies without visible geometry are left out.

    Args:
        path: The file, which no stage in this process has open.
        assets: Visible assets.
        layout: Positions of the K regions.
        names: B body names.
        positions: (K, B, 3) [m], in the world frame of a single scene.
        wxyz: (K, B, 4) unit quaternions.
        cameras: Cameras of each region.
        light: Sun and sky, shared by all regions.
        dome: Environment map in place of the plain sky.

    Returns:
        The prims of each region.
    """
    from pxr import Usd, UsdGeom

    stage: Any = Usd.Stage.CreateNew(str(path))  # at its final path, because references are relative to it
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    UsdGeom.Scope.Define(stage, REGIONS)
    shown = [name for name in names if name in assets.bodies]
    rows = BodyRows(names)
    _, _, eyes, turns = region_poses(cameras, names, positions, wxyz)
    written = []
    for index, origin in enumerate(layout.origins):
        paths = region_paths(index, shown, cameras)
        region = UsdGeom.Xform.Define(stage, paths.root).GetPrim()
        set_pose(region, origin, (1.0, 0.0, 0.0, 0.0))
        _partition(region, f"primvars:{PARTITION}", paths.root)
        refer(stage, f"{paths.root}/scene", assets.scene, path)
        for name, place in paths.bodies.items():
            body = refer(stage, place, assets.bodies[name], path)
            set_pose(body, positions[index, rows[name]], wxyz[index, rows[name]])
        for column, camera in enumerate(cameras):
            prim = define_camera(stage, paths.cameras[camera.name], camera, far=layout.far)
            set_pose(prim, eyes[index, column], turns[index, column])
            _partition(prim, PARTITION, paths.root)
        written.append(paths)
    if light is not None:
        add_light(stage, light, dome)
    stage.GetRootLayer().Save()
    return written


def add_light(stage: Any, light: Light, dome: Dome | None = None) -> None:
    """Add a sun, further lamps and a sky for the whole stage."""
    from pxr import Gf, UsdGeom, UsdLux

    UsdGeom.Scope.Define(stage, "/World/Lights")
    _add_distant(stage, "sun", light)
    for place, lamp in enumerate(light.lamps):
        _add_distant(stage, f"lamp_{place}", lamp)
    sky = UsdLux.DomeLight.Define(stage, "/World/Lights/sky")
    if dome is not None:
        _show_picture(sky, dome)
        return
    strength = max(light.sky)
    sky.CreateColorAttr(Gf.Vec3f(*(value / max(strength, 1e-9) for value in light.sky)))
    sky.CreateIntensityAttr(strength * 1000.0)


def _show_picture(sky: Any, dome: Dome) -> None:
    """Light the stage with an environment map, in Kit's orientation: on a Z-up stage, top at +Z and left edge at +X.

    USD's own convention has the top at +Y and, after a rotation to Z, the left edge at +Y: the map is therefore rotated
    by a quarter turn about the vertical, and not tilted.
    """
    from pxr import Sdf, UsdGeom, UsdLux

    sky.CreateIntensityAttr(dome.intensity * 1000.0)
    check_map(Path(dome.texture), dome.content)
    sky.CreateTextureFileAttr(Sdf.AssetPath(str(Path(dome.texture).absolute())))
    sky.CreateTextureFormatAttr(UsdLux.Tokens.latlong)
    UsdGeom.Xformable(sky).AddRotateZOp().Set(math.degrees(dome.turn) + 90.0)


def _add_distant(stage: Any, name: str, light: Light | Lamp) -> None:
    from pxr import Gf, UsdLux

    lamp = UsdLux.DistantLight.Define(stage, f"/World/Lights/{name}")
    strength = max(light.color)
    lamp.CreateColorAttr(Gf.Vec3f(*(value / max(strength, 1e-9) for value in light.color)))
    lamp.CreateIntensityAttr(strength * math.pi * 1000.0)
    lamp.CreateAngleAttr(0.53)
    set_pose(lamp.GetPrim(), np.zeros(3), _down_along(np.asarray(light.direction, dtype=float)))


def _down_along(direction: FloatArray) -> FloatArray:
    """Return the shortest rotation from -Z, the direction of a distant light, to a direction; unit quaternion."""
    x, y, z = direction / np.linalg.norm(direction)
    turn = np.array([1.0 - z, y, -x, 0.0])
    return turn / np.linalg.norm(turn) if z < 1.0 - 1e-12 else np.array([0.0, 1.0, 0.0, 0.0])


def refer(stage: Any, place: str, asset: Path, beside: Path) -> Any:
    """Add a prim that references an asset, by a path relative to the stage's file."""
    from pxr import UsdGeom

    prim = UsdGeom.Xform.Define(stage, place).GetPrim()
    relative = os.path.relpath(asset.absolute(), beside.absolute().parent)
    prim.GetReferences().AddReference("./" + relative if not relative.startswith(".") else relative)
    return prim


def set_pose(prim: Any, position: Any, wxyz: Any, *, time: Any = None) -> None:
    """Set the pose of a prim by the three standard operations, which Isaac Sim's batched interfaces write to.

    Args:
        prim: The prim; other transform operations are replaced by the standard ones.
        position: Position in the parent's frame [m].
        wxyz: Unit quaternion.
        time: Time code; by default the pose applies at all times.
    """
    from pxr import Gf, Sdf, Usd, UsdGeom

    time = Usd.TimeCode.Default() if time is None else time
    w, x, y, z = (float(value) for value in wxyz)
    types, at = Sdf.ValueTypeNames, [float(value) for value in position]
    prim.CreateAttribute(_OPERATIONS[0], types.Double3, custom=False).Set(Gf.Vec3d(*at), time)
    orient = prim.GetAttribute(_OPERATIONS[1])
    kind = Gf.Quatf if orient and orient.GetTypeName() == types.Quatf else Gf.Quatd
    orient = orient or prim.CreateAttribute(_OPERATIONS[1], types.Quatd, custom=False)
    orient.Set(kind(w, x, y, z), time)
    prim.CreateAttribute(_OPERATIONS[2], types.Double3, custom=False).Set(Gf.Vec3d(1.0, 1.0, 1.0))
    UsdGeom.Xformable(prim).GetXformOpOrderAttr().Set(list(_OPERATIONS))


def _partition(prim: Any, attribute: str, token: str) -> None:
    from pxr import Sdf

    prim.CreateAttribute(attribute, Sdf.ValueTypeNames.Token, custom=False).Set(token.rsplit("/", 1)[-1])


def define_camera(stage: Any, place: str, camera: Camera, *, far: float) -> Any:
    """Define a camera's lens; its pose is set separately."""
    from pxr import Gf, UsdGeom

    prim = UsdGeom.Camera.Define(stage, place)
    aspect = camera.width / camera.height
    prim.CreateHorizontalApertureAttr(_APERTURE)
    prim.CreateVerticalApertureAttr(_APERTURE / aspect)
    prim.CreateFocalLengthAttr(0.5 * _APERTURE / (aspect * math.tan(0.5 * camera.vertical_fov)))
    prim.CreateClippingRangeAttr(Gf.Vec2f(NEAR, far))
    return prim.GetPrim()
