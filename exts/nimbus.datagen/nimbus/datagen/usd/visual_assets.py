"""Separate USD files of scene, links, fixtures and objects, with visible geometry only."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import PlacedObject, SurfaceLook, part_label
from nimbus.datagen.files.own_files import file_name
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.objects.articulated.usd import BASE
from nimbus.datagen.textures.procedural import surface_image
from nimbus.datagen.usd.materials import apply_materials, boxes_as_meshes
from nimbus.datagen.usd.stage_meshes import PictureFolder

_LOOKS = "looks"


@dataclass(frozen=True, kw_only=True)
class VisualAssets:
    """USD files, each with one thing as its default prim."""

    scene: Path
    """Static parts."""
    bodies: Mapping[str, Path]
    """Files by trajectory body, each in the body's frame."""


def write_visual_assets(
    stage: Path,
    robot: Path,
    fixtures: Mapping[str, str],
    objects: Iterable[PlacedObject],
    folder: Path,
    *,
    surfaces: Mapping[str, SurfaceLook] | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> VisualAssets:
    """Write one file for each body and one for the rest of the scene.

    Args:
        stage: The scene's USD file.
        robot: The robot's USD file; its links are the rigid bodies in it.
        fixtures: Prim paths of the scene's bodies, by name.
        objects: Objects of the layout; an object's file is named after its kind and variant.
        folder: Destination.
        surfaces: Looks by name; without them, each file has the look of its asset, and equal objects share a file.
        roles: Prim paths of the room's parts by their name in ``surfaces``.
    """
    from nimbus.datagen.objects.libraries import open_library

    folder.mkdir(parents=True, exist_ok=True)
    scene, arm = _flat(stage), _flat(robot)
    bodies = {path.rsplit("/", 1)[-1]: (arm, path) for path in _rigid_bodies(arm)}
    bodies |= {name: (scene, path) for name, path in fixtures.items()}
    files = {name: _write(layer, path, folder / f"{file_name(name)}.usda") for name, (layer, path) in bodies.items()}
    for item in objects:
        model = open_library(item.library).model(item.kind, item.variant)
        for part in ("", *(part.name for part in model.parts)):
            stem = f"{item.library}_{item.kind}_{item.variant:03d}{_size(item)}" if surfaces is None else item.name
            target = folder / f"{file_name(stem + (part and f'_{part}'))}.usda"
            if not target.is_file():
                layer = _flat(open_library(item.library).usd_path(item.kind, item.variant, item.scale))
                below = f"/{part or BASE}" if model.parts else ""
                _write(layer, f"/{layer.defaultPrim}{below}", target)
            files[part_label(item.name, part) if part else item.name] = target
    rest = _write(scene, f"/{scene.defaultPrim}", folder / "scene.usda")
    if surfaces is not None:
        _dress(files, rest, surfaces, roles or {})
    return VisualAssets(scene=rest, bodies=files)


def _dress(
    bodies: Mapping[str, Path], scene: Path, surfaces: Mapping[str, SurfaceLook], roles: Mapping[str, Sequence[str]]
) -> None:
    """Apply a layout's looks to the files."""
    from pxr import Usd

    textures = PictureFolder(scene.parent / "textures")
    for name, path in bodies.items():
        stage: Any = Usd.Stage.Open(str(path))
        apply_materials(stage.GetDefaultPrim(), surfaces.get(name.partition(".")[0], SurfaceLook()), textures=textures)
        stage.GetRootLayer().Save()
    stage = Usd.Stage.Open(str(scene))
    for role, places in roles.items():
        for place in places:
            if prim := stage.GetPrimAtPath(place):
                look = surfaces.get(role, SurfaceLook())
                if surface_image(look) is not None:
                    boxes_as_meshes(prim)
                apply_materials(prim, look, textures=textures, role=role)
    apply_materials(
        stage.GetDefaultPrim(), SurfaceLook(), textures=textures
    )  # for parts with neither role nor material
    stage.GetRootLayer().Save()


def _size(item: PlacedObject) -> str:
    return "" if item.scale == 1.0 else f"_{round(1000 * item.scale)}"


def _flat(path: Path) -> Any:
    """Flatten a stage into one layer; instances are copied so that each can move."""
    from pxr import Usd

    stage: Any = Usd.Stage.Open(str(path))
    stage.SetEditTarget(stage.GetSessionLayer())
    for prim in stage.Traverse():
        if prim.IsInstanceable():
            prim.SetInstanceable(False)
    return stage.Flatten()


def _rigid_bodies(layer: Any) -> list[str]:
    from pxr import Usd, UsdPhysics

    stage: Any = Usd.Stage.Open(layer)
    return [str(prim.GetPath()) for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]


def _write(source: Any, path: str, target: Path) -> Path:
    """Copy a prim's visible geometry with its materials, but without physics and without bodies below it."""
    from pxr import Sdf, Usd, UsdGeom, UsdPhysics

    name = path.rsplit("/", 1)[-1]
    layer: Any = Sdf.Layer.CreateAnonymous(".usda")
    Sdf.CopySpec(source, path, layer, f"/{name}")
    stage: Any = Usd.Stage.Open(layer)
    root = stage.GetPrimAtPath(f"/{name}")
    stage.SetDefaultPrim(root)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    below = [prim for prim in Usd.PrimRange(root) if prim != root]
    doomed = [prim.GetPath() for prim in below if prim.HasAPI(UsdPhysics.RigidBodyAPI) or not _is_seen(prim)]
    for place in sorted(doomed, key=lambda place: -place.pathElementCount):
        stage.RemovePrim(place)
    for prop in root.GetAuthoredProperties():
        if prop.GetName().startswith("xformOp") and not _is_scene(path):
            root.RemoveProperty(prop.GetName())
    _take_materials(stage, root, source, path)
    for prim in Usd.PrimRange(root):
        _strip_physics(prim)
    layer.Export(str(target))
    return target


def _is_scene(path: str) -> bool:
    return path.count("/") == 1


def _is_seen(prim: Any) -> bool:
    from pxr import UsdGeom

    if str(prim.GetTypeName()).startswith("Physics"):
        return False
    imageable = UsdGeom.Imageable(prim)
    if not imageable:
        return True
    purpose: Any = imageable.GetPurposeAttr().Get()
    return purpose not in (UsdGeom.Tokens.guide, UsdGeom.Tokens.proxy) and (
        imageable.GetVisibilityAttr().Get() != UsdGeom.Tokens.invisible
    )


def _strip_physics(prim: Any) -> None:
    for schema in prim.GetAppliedSchemas():
        if schema.startswith(("Physics", "Mjc", "Newton", "Physx")):
            prim.RemoveAppliedSchema(schema)
    for name in prim.GetAuthoredPropertyNames():
        if name.startswith(("physics:", "mjc:", "newton:", "physx")) or name.endswith(":physics"):
            prim.RemoveProperty(name)


def _take_materials(stage: Any, root: Any, source: Any, path: str) -> None:
    """Copy materials from outside the prim to below it, and bind the copies."""
    from pxr import Sdf, Usd

    taken: dict[Any, Any] = {}
    for prim in list(Usd.PrimRange(root)):
        binding = prim.GetRelationship("material:binding")
        for target in binding.GetTargets() if binding else ():
            if target.HasPrefix(root.GetPath()) or not source.GetPrimAtPath(target):
                continue
            if target not in taken:
                place = root.GetPath().AppendChild(_LOOKS).AppendChild(target.name)
                Sdf.CreatePrimInLayer(stage.GetRootLayer(), place.GetParentPath()).specifier = Sdf.SpecifierDef
                Sdf.CopySpec(source, target, stage.GetRootLayer(), place)
                taken[target] = place
            binding.SetTargets([taken[target]])


def asset_bounds(path: Path) -> NDArray[np.float64]:
    """Return the bounding box (2, 3) of an asset's visible geometry in its own frame [m]; zero without any."""
    from pxr import Usd, UsdGeom

    stage: Any = Usd.Stage.Open(str(path))
    boxes: Any = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default", "render"])
    box = boxes.ComputeUntransformedBound(stage.GetDefaultPrim()).ComputeAlignedRange()
    return np.zeros((2, 3)) if box.IsEmpty() else np.array([box.GetMin(), box.GetMax()])


def seen_bounds(assets: VisualAssets, names: Sequence[str], positions: Any, wxyz: Any) -> NDArray[np.float64]:
    """Return the bounding box (2, 3) of everything visible, over all steps [m].

    Args:
        assets: Visible assets.
        names: B body names.
        positions: (T, B, 3) [m].
        wxyz: (T, B, 4) unit quaternions.
    """
    boxes = [asset_bounds(assets.scene)]
    for row, name in enumerate(names):
        if name in assets.bodies:
            box = asset_bounds(assets.bodies[name])
            corners = np.stack(np.meshgrid(*box.T, indexing="ij"), axis=-1).reshape(-1, 3)
            turned = corners @ np.swapaxes(quat_to_matrix(wxyz[:, row]), -1, -2) + positions[:, row, None]
            boxes.append(turned.reshape(-1, 3))
    every = np.concatenate(boxes)
    return np.stack([every.min(axis=0), every.max(axis=0)])
