"""User's scene as a USD stage for tasks: the robot at its work surface, names, and collision geometry."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.meshes.mesh_folder import LARGEST_FILE
from nimbus.datagen.objects.imported.read import USD_SUFFIXES, read_nodes
from nimbus.datagen.rooms.settings import StageFileSettings
from nimbus.datagen.usd.stage_meshes import add_contact, add_mesh, keep_picture
from nimbus.datagen.version import versioned_hash

FILE_STAGE_VERSION = 1
"""Version of the stages that are made from files; it is raised when any of these stages changes."""
_GLTF = (".glb", ".gltf")
_LEAST, _MOST = 0.3, 10.0
"""Accepted range of a work surface's sides [m]; other sizes are due to a wrong unit."""
_INSIDE = 0.12
"""Default distance of the robot from a long side of the surface [m]."""
_SLAB = 0.04
"""Thickness of the collision geometry of a surface [m]; further down, a table may be hollow."""
_REACH, _FREE = 1.6, 0.6
"""Distance to the mount within which geometry collides [m], and height above the work surface [m]. A box over the
surface that begins below this height and ends above the surface does not collide, because it surrounds the
workspace."""
_MOST_PARTS = 200
"""Largest number of named parts; masks have 255 values."""
_ROOT = "/World"
_ROLES = (("floor", "floor"), ("ground", "floor"), ("wall", "backdrop"))
"""Beginnings of part names, with the role of parts with such a name."""


def file_identity(settings: StageFileSettings, content: str) -> str:
    """Return the content hash of a file's stage, from the file's content, the settings and the version."""
    text = settings.model_copy(update={"file": Path(settings.file).name}).reference
    return versioned_hash(f"{text} {content}".encode(), FILE_STAGE_VERSION)


def file_stage(settings: StageFileSettings, *, identity: str, where: str) -> Path:
    """Return the stage that is made from a scene file; it is written on first use.

    Args:
        settings: Settings of the scene.
        identity: Content hash of the scene.
        where: Location of the scene in the task file, for errors.

    Raises:
        InputError: The file cannot be read, or does not have the work surface of the settings.
    """
    place = versioned_hash(str(Path(settings.file).absolute()).encode(), FILE_STAGE_VERSION)
    path = cache_folder("rooms") / f"{place}-{identity}.usdc"
    if not path.is_file():
        made = _FileStage(settings, path.parent, where).made
        with writing(path.parent), replacing(path, durable=False, shared=True) as temporary:
            content_file = temporary.with_suffix(".usdc")
            made.GetRootLayer().Export(str(content_file))
            content_file.replace(temporary)
    return path


def check_scene_file(path: Path, *, where: str) -> None:
    """Check that a file is a scene, before a library opens it.

    Raises:
        InputError: The file is missing, too large, or of another format.
    """
    if path.suffix.lower() not in (*_GLTF, *USD_SUFFIXES):
        known = ", ".join((*USD_SUFFIXES, *_GLTF))
        raise InputError(f"{path.name} is not a scene file", where=where, instead=f"name one with the suffix {known}")
    if not path.exists():
        raise InputError("no such file", where=f"{where}: {path}", instead="give a path relative to the task's folder")
    check_regular(path, limit=LARGEST_FILE)


class _FileStage:
    """Writer of one stage."""

    def __init__(self, settings: StageFileSettings, folder: Path, where: str) -> None:
        from pxr import Usd, UsdGeom

        self._settings, self._folder, self._where = settings, folder, where
        self.made: Any = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageMetersPerUnit(self.made, 1.0)
        UsdGeom.SetStageUpAxis(self.made, UsdGeom.Tokens.z)
        self.made.SetDefaultPrim(UsdGeom.Xform.Define(self.made, _ROOT).GetPrim())
        self._scene = UsdGeom.Xform.Define(self.made, f"{_ROOT}/scene")
        self._placing = self._scene.AddTransformOp()
        path = Path(settings.file)
        upright = self._read_gltf(path) if path.suffix.lower() in _GLTF else self._refer(path)
        self._place(upright)
        surface = self._find_surface()
        low, high = self._bounds(surface)
        size = high - low
        if not (_LEAST <= min(size[:2]) and max(size[:2]) <= _MOST):
            found = f"the work surface '{settings.surface}' is {size[0]:.2f} x {size[1]:.2f} m"
            what = f"{found}, expected {_LEAST:g} m to {_MOST:g} m"
            raise InputError(what, where=where, instead="name a larger prim or node, or correct the unit of the file")
        self._place(self._world_T_file(low, high) @ upright)
        surface.SetCustomDataByKey("nimbus:role", "table")
        mount = UsdGeom.Xform.Define(self.made, f"{_ROOT}/robot_mount").GetPrim()
        mount.SetCustomDataByKey("nimbus:role", "robot_mount")
        self._name_parts(surface)

    def _read_gltf(self, path: Path) -> FloatArray:
        """Add a prim for each node; return the rotation (4, 4) from y up to z up."""
        from nimbus.datagen.objects.usd import add_looks

        taken: set[str] = set()
        for node, part in read_nodes(path):
            name = re.sub("[^A-Za-z0-9_]+", "_", node) or "part"
            name = f"_{name}" if name[0].isdigit() else name
            name = next(n for n in (name, *(f"{name}_{i}" for i in range(2, 10000))) if n not in taken)
            taken.add(name)
            corners = part.corners.reshape(-1, 3)
            normals = np.cross(part.corners[:, 1] - part.corners[:, 0], part.corners[:, 2] - part.corners[:, 0])
            normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
            place = f"{_ROOT}/scene/{name}"
            add_mesh(
                self.made,
                place,
                points=corners,
                faces=np.arange(len(corners)).reshape(-1, 3),
                normals=np.repeat(normals, 3, axis=0),
                uvs=part.uvs.reshape(-1, 2),
                material=add_looks(self.made, f"{_ROOT}/looks_{name}", keep_picture(self._folder, part.texture)),
            )
        return make_transform((0.0, 0.0, 0.0), quat_from_axis_angle((1, 0, 0), np.pi / 2))

    def _refer(self, path: Path) -> FloatArray:
        """Reference a stage; return the rotation and scale (4, 4) to meters with z up."""
        from pxr import Tf, Usd, UsdGeom

        try:
            source: Any = Usd.Stage.Open(str(path.absolute()))
        except Tf.ErrorException as error:
            line = str(error).strip().splitlines()[-1].split(" : ")[-1].strip("'")
            raise InputError(f"USD cannot open it: {line}", where=str(path), instead="export it again") from error
        tops = [prim for prim in source.GetPseudoRoot().GetChildren() if prim.IsA(UsdGeom.Imageable)]
        if not tops:
            raise InputError("has no visible geometry", where=str(path), instead="name a file with meshes")
        for top in tops:
            prim = self.made.DefinePrim(f"{_ROOT}/scene/{top.GetName()}")
            prim.GetReferences().AddReference(str(path.absolute()), top.GetPath())
        turn = np.eye(4)
        if UsdGeom.GetStageUpAxis(source) == UsdGeom.Tokens.y:
            turn = make_transform((0.0, 0.0, 0.0), quat_from_axis_angle((1, 0, 0), np.pi / 2))
        unit = UsdGeom.GetStageMetersPerUnit(source)
        return turn @ np.diag(np.array([unit, unit, unit, 1.0]))

    def _place(self, pose: FloatArray) -> None:
        from pxr import Gf

        self._placing.Set(Gf.Matrix4d(*pose.T.ravel().tolist()))

    def _bounds(self, prim: Any) -> FloatArray:
        """Return the lower and upper corner (2, 3) of a prim [m]."""
        from pxr import Usd, UsdGeom

        cache: Any = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default", "render"])
        box = cache.ComputeWorldBound(prim).ComputeAlignedRange()
        return np.array([box.GetMin(), box.GetMax()])

    def _find_surface(self) -> Any:
        """Return the prim of the work surface: the named one, or the one that is marked in the file."""
        from pxr import Usd, UsdGeom

        below = [prim for prim in Usd.PrimRange(self._scene.GetPrim()) if prim.IsA(UsdGeom.Imageable)][1:]
        marked = [prim for prim in below if prim.GetCustomDataByKey("nimbus:role") == "table"]
        named = [prim for prim in below if prim.GetName() == self._settings.surface]
        if not (found := named or marked):
            what = f"no prim or node '{self._settings.surface}' in {Path(self._settings.file).name}"
            hint = suggest(self._settings.surface, sorted({prim.GetName() for prim in below})[:40])
            raise InputError(what, where=self._where, instead=f"name the work surface: {hint}")
        return found[0]

    def _world_T_file(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the pose (4, 4) that moves the robot's mount to the origin and its viewing direction to x."""
        middle, size = (low + high) / 2, high - low
        yaw = self._settings.yaw
        if yaw is None:
            yaw = 0.0 if size[0] <= size[1] or self._settings.mount else np.pi / 2
        if self._settings.mount is None:
            across = size[0] if abs(np.cos(yaw)) > 0.5 else size[1]
            away = -(across / 2 - _INSIDE) * np.array([np.cos(yaw), np.sin(yaw)])
        else:
            away = np.array(self._settings.mount)
            if np.any(np.abs(away) > size[:2] / 2):
                what = "mount [{:g}, {:g}] is not on the work surface".format(*away)
                instead = "stay within {:.2f} and {:.2f} m of its center".format(*size[:2] / 2)
                raise InputError(what, where=self._where, instead=instead)
        place = np.array([*(middle[:2] + away), high[2]])
        return np.asarray(np.linalg.inv(make_transform(tuple(place), quat_from_axis_angle((0, 0, 1), yaw))), float)

    def _name_parts(self, surface: Any) -> None:
        """Assign roles to parts, and collision boxes to geometry within reach."""
        low, high = self._bounds(surface)
        slab = np.array([*high[:2] - low[:2], _SLAB])
        add_contact(self.made, f"{_ROOT}/contact", (low + high) / 2 * (1, 1, 0) + (0, 0, high[2] - _SLAB / 2), slab)
        shown = self._bounds(self._scene.GetPrim())
        extent = np.array([*(shown[1] - shown[0])[:2] + 1.0, 0.1])
        add_contact(self.made, f"{_ROOT}/floor", [*shown.mean(axis=0)[:2], shown[0, 2] - 0.05], extent)
        self.made.GetPrimAtPath(f"{_ROOT}/floor").SetCustomDataByKey("nimbus:role", "floor")
        parts = [prim for prim in self._parts(self._scene.GetPrim(), surface) if prim != surface]
        for number, prim in enumerate(parts[:_MOST_PARTS]):
            if prim.GetCustomDataByKey("nimbus:role") is not None:
                continue
            name = prim.GetName()
            plain = re.sub(r"[_0-9]+$", "", name).lower() or name
            role = next((role for start, role in _ROLES if plain.startswith(start)), "furnishing")
            prim.SetCustomDataByKey("nimbus:role", role)
            if role == "furnishing":
                prim.SetCustomDataByKey("nimbus:class", plain)
                self._touch(f"{_ROOT}/contact_{number}", prim, np.array([low, high]))

    def _parts(self, prim: Any, surface: Any) -> list[Any]:
        """Return the prims that are parts: the topmost prims below the root that do not contain the work surface."""
        from pxr import UsdGeom

        found = []
        for child in prim.GetChildren():
            if not child.IsA(UsdGeom.Imageable):
                continue
            if surface.GetPath().HasPrefix(child.GetPath()) and child != surface or len(child.GetChildren()) == 1:
                found += self._parts(child, surface)
            else:
                found.append(child)
        return found

    def _touch(self, path: str, prim: Any, surface: FloatArray) -> None:
        low, high = self._bounds(prim)
        if not np.all(np.isfinite([low, high])) or np.any(low > high):
            return
        is_near = np.linalg.norm(np.clip(0.0, low, high)) < _REACH
        over = np.all(low[:2] < surface[1, :2]) and np.all(high[:2] > surface[0, :2])
        is_shell = over and high[2] > surface[1, 2] and low[2] < surface[1, 2] + _FREE
        if is_near and not is_shell:
            add_contact(self.made, path, (low + high) / 2, np.maximum(high - low, 1e-3))
