"""Contents of a scene's USD stage that tasks refer to: robot mount, fixtures and surfaces."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import Quaternion
from nimbus.datagen.episode.layout import PhysicalLayout, Vector
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.files.scene_files import scene_file
from nimbus.datagen.meshes.mesh_folder import LARGEST_FILE
from nimbus.datagen.objects.imported.gltf_sizes import gltf_files
from nimbus.datagen.objects.imported.mdl_files import mdl_files
from nimbus.datagen.objects.imported.read import USD_SUFFIXES
from nimbus.datagen.objects.imported.scene_check import check_references, check_scene, is_shipped, unopened
from nimbus.datagen.objects.imported.used_files import check_used_files
from nimbus.datagen.rooms.plan import Bench
from nimbus.datagen.rooms.room import least_size
from nimbus.datagen.rooms.settings import RoomSettings, StageFileSettings, parse_file_reference, parse_reference
from nimbus.datagen.usd.file_stage import check_scene_file, file_identity, file_stage
from nimbus.datagen.usd.room_stage import room_file, room_identity

_LEG = 0.75
"""Height of a bench whose stage has no floor below it [m]."""


@dataclass(frozen=True, kw_only=True)
class Fixture:
    """Body of the scene that a task can name: a bin, a drawer, a shelf."""

    name: str
    prim_path: str
    group: str
    object_class: str
    position: tuple[float, float, float]
    """Initial origin of the fixture's frame, in the world frame [m]."""
    bounds: tuple[Vector, Vector]
    """Lower and upper corner in its own frame [m]."""
    world_bounds: tuple[Vector, Vector]
    """Initial bounds along the world axes [m]."""


@dataclass(frozen=True, kw_only=True)
class SupportSurface:
    """Flat surface that objects can stand on."""

    name: str
    lower: tuple[float, float, float]
    """Lower corner of the bounds in the world frame [m]; objects stand at height ``upper[2]``."""
    upper: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class StageInfo:
    """Contents of a stage file that is read once: names and positions, without meshes."""

    name: str
    path: Path
    content_hash: str
    robot_position: tuple[float, float, float]
    robot_wxyz: Quaternion
    fixtures: Mapping[str, Fixture]
    surfaces: Mapping[str, SupportSurface]
    roles: Mapping[str, tuple[str, ...]]
    """Prim paths by role: ``table``, ``floor``, ``backdrop``, …; the role of a fixture or furnishing is its name."""
    furnishings: Mapping[str, str] = field(default_factory=dict)
    """Class of each static furnishing of the room, which no task names."""
    flat: frozenset[str] = frozenset()
    """Furnishings that lie on walls, ceiling or floor and cast no shadow."""
    classes: tuple[str, ...] = ()
    """All classes of furnishings in stages of this type; semantic labels follow this order."""
    room: RoomSettings | None = None
    """Settings of a generated room."""
    is_own: bool = False
    """True for a stage made from a user's scene file."""
    bench: str = ""
    """Name or path of the stage around which a room is built; for a stage that is not a room, its own name or path."""


@lru_cache(maxsize=8)
def read_stage(name_or_path: str, *, where: str = "") -> StageInfo:
    """Open a stage by name or path and read its contents.

    Raises:
        InputError: The stage does not exist or cannot be opened, or a file that it references is missing.
    """
    from pxr import Tf, Usd

    with suppress(ImportError):  # USD lists its schemas once, when the first stage opens; robots are converted later
        import newton_usd_schemas  # noqa: F401
    if (settings := parse_reference(name_or_path)) is not None:
        return _read_room(settings, settings.bench, where=where)
    if (own := parse_file_reference(name_or_path)) is not None:
        return _read_own(own, name_or_path, where=where)
    path = scene_file("stages", name_or_path, kind="scene", suffix=".usda", where=where)
    check_scene(path)
    check_references(path)
    path = path.absolute()  # Kit takes a relative path such as "file:/rooms/a.usd" for an address
    try:
        stage = Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        raise unopened(path, error) from error
    return _read(stage, path.stem, path, bench=name_or_path)


def layout_stage(stage: StageInfo, layout: PhysicalLayout) -> StageInfo:
    """Return the stage of one episode: the room that the layout has drawn around the bench, or the task's stage."""
    room = layout_room(stage, layout)
    return stage if room == stage.room or room is None else _read_drawn(room.reference, stage.bench)


@lru_cache(maxsize=8)
def _read_drawn(reference: str, bench: str) -> StageInfo:
    """Read the room that a layout draws around the bench of its task, which may be made from a user's scene file."""
    settings = parse_reference(reference)
    assert settings is not None
    return _read_room(settings, bench, where="")


def layout_room(stage: StageInfo, layout: PhysicalLayout) -> RoomSettings | None:
    """Return the settings of one episode's room; None without a room.

    Raises:
        InputError: The layout's settings are not valid for this version.
    """
    drawn = layout.drawn.get("scene")
    if not isinstance(drawn, Mapping) or "family" not in drawn:
        return stage.room
    bench = {} if parse_file_reference(stage.bench) else {"bench": stage.bench}
    try:
        return RoomSettings.model_validate({name: drawn[name] for name in ("family", "seed", "look")} | bench)
    except (KeyError, ValueError):  # pydantic's error is a ValueError
        what = "the layout of the episode needs a room that this version cannot make"
        raise InputError(what, where=stage.name, instead="restore the dataset from a copy") from None


def _read_room(settings: RoomSettings, bench_name: str, *, where: str) -> StageInfo:
    """Read the bench, and the stage of the room that is generated around it."""
    from pxr import Usd

    base = read_stage(bench_name, where=where)
    if "table" not in base.surfaces:
        what = f"stage '{bench_name}' has no work surface to build a room around"
        raise InputError(what, where=where, instead="give a prim named table the customData nimbus:role = table")
    if base.furnishings:
        raise InputError(f"'{bench_name}' is already a room", where=where, instead="name the stage of a bench")
    table = base.surfaces["table"]
    floor = min((low for low in (_floor_height(base),) if low < table.lower[2]), default=table.lower[2] - _LEG)
    bench = Bench((table.lower[0], table.lower[1]), (table.upper[0], table.upper[1]), floor)
    least = least_size(bench)
    if settings.size is not None and (settings.size[0] < least[0] or settings.size[1] < least[1]):
        what = "a room of {:g} x {:g} m is too small for the bench and the cameras around it".format(*settings.size)
        instead = "write at least [{:.1f} m, {:.1f} m]".format(*(value + 0.05 for value in least))
        raise InputError(what, where=where, instead=instead)
    mount = np.array(base.robot_position)
    path = room_file(settings, bench=bench, stage=base.path, bench_hash=base.content_hash, mount=mount)
    made = _read(Usd.Stage.Open(str(path)), settings.family, path, bench=bench_name)
    return replace(made, room=settings, content_hash=room_identity(settings, base.content_hash))


def _read_own(own: StageFileSettings, reference: str, *, where: str) -> StageInfo:
    """Read the stage that is made from a scene file."""
    from pxr import Usd

    source = Path(own.file)
    check_scene_file(source, where=where)
    check_scene(source)
    identity = file_identity(own, _file_hash(source))
    path = file_stage(own, identity=identity, where=where)
    made = _read(Usd.Stage.Open(str(path)), source.stem, path, bench=reference)
    return replace(made, is_own=True, content_hash=identity)


def _floor_height(base: StageInfo) -> float:
    return base.surfaces["floor"].upper[2] if "floor" in base.surfaces else np.inf


def _file_hash(path: Path) -> str:
    """Return the hash of a scene file and everything that it references."""
    if path.suffix.lower() not in USD_SUFFIXES:
        return _gltf_hash(path)
    check_references(path)
    return _content_hash(_files(path))


def _gltf_hash(path: Path) -> str:
    """Return the hash of a glTF file and of the buffers and images that it names."""
    digest = hashlib.sha256(path.name.encode())
    digest.update(read_bytes(path, limit=LARGEST_FILE))
    for file in gltf_files(path)[1:]:
        content = read_bytes(file, limit=LARGEST_FILE)
        digest.update(f"{os.path.relpath(file, path.parent)} {len(content)}\n".encode(errors="surrogateescape"))
        digest.update(content)
    return digest.hexdigest()[:16]


def _files(path: Path) -> list[str]:
    """Return all files of a stage, sorted."""
    from pxr import UsdUtils

    found: Any = UsdUtils.ComputeAllDependencies(str(path.absolute()))
    layers, assets, _ = found
    files = {str(layer.realPath) for layer in layers} | {str(asset) for asset in assets}
    modules = [Path(file) for file in sorted(files) if Path(file).suffix.lower().startswith(".md")]
    return sorted(files | {str(file) for file in mdl_files(modules, path.parent)})


def _content_hash(files: Iterable[str]) -> str:
    """Return the hash of the names and contents of files.

    It has no lengths, so one author can make two scenes of one hash. Lengths would change the hash that all datasets
    state. Files in the cache do not mix such scenes, because their names also cover the path of the scene.
    """
    digest = hashlib.sha256()
    for file in files:
        digest.update(Path(file).name.encode() + b"\0" + Path(file).read_bytes())
    return digest.hexdigest()[:16]


def _read(stage: Any, name: str, path: Path, *, bench: str) -> StageInfo:
    from pxr import Usd, UsdGeom

    bounds: Any = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default", "render"])
    fixtures: dict[str, Fixture] = {}
    surfaces: dict[str, SupportSurface] = {}
    furnishings: dict[str, str] = {}
    flat: set[str] = set()
    roles: dict[str, list[str]] = {}
    mount: tuple[Vector, Quaternion] | None = None
    for prim in stage.Traverse():
        role = prim.GetCustomDataByKey("nimbus:role")
        if role is None:
            continue
        box = bounds.ComputeWorldBound(prim).ComputeAlignedRange()
        lower, upper = tuple(box.GetMin()), tuple(box.GetMax())
        if role == "robot_mount":
            mount = _origin(prim), _turn(prim)
        elif role == "fixture":
            fixtures[prim.GetName()] = _fixture(prim, bounds)
            roles.setdefault(prim.GetName(), []).append(str(prim.GetPath()))
        elif role == "furnishing":
            furnishings[prim.GetName()] = prim.GetCustomDataByKey("nimbus:class") or prim.GetName()
            flat |= set() if prim.GetCustomDataByKey("nimbus:shadow") is not False else {prim.GetName()}
            roles.setdefault(prim.GetName(), []).append(str(prim.GetPath()))
        else:
            roles.setdefault(role, []).append(str(prim.GetPath()))
            if prim.GetName() == role or (role == "table" and role not in surfaces):
                surfaces[role] = SupportSurface(name=role, lower=lower, upper=upper)
    files = _files(path)
    if not is_shipped(path):
        check_used_files(stage, files, path)
    if mount is None:
        raise InputError(
            "the stage has no mount for the robot",
            where=str(path),
            instead="give one Xform the customData nimbus:role = robot_mount",
        )
    return StageInfo(
        name=name,
        path=path,
        content_hash=_content_hash(files),
        robot_position=mount[0],
        robot_wxyz=mount[1],
        fixtures=fixtures,
        surfaces=surfaces,
        roles={role: tuple(paths) for role, paths in roles.items()},
        furnishings=furnishings,
        flat=frozenset(flat),
        classes=tuple(stage.GetDefaultPrim().GetCustomDataByKey("nimbus:classes") or sorted({*furnishings.values()})),
        bench=bench,
    )


def _origin(prim: Any) -> tuple[float, float, float]:
    from pxr import UsdGeom

    world_T_prim: Any = UsdGeom.XformCache().GetLocalToWorldTransform(prim)
    x, y, z = world_T_prim.ExtractTranslation()
    return x, y, z


def _turn(prim: Any) -> Quaternion:
    from pxr import UsdGeom

    world_T_prim: Any = UsdGeom.XformCache().GetLocalToWorldTransform(prim)
    rotation = world_T_prim.ExtractRotationQuat()
    x, y, z = rotation.GetImaginary()
    return rotation.GetReal(), x, y, z


def _fixture(prim: Any, bounds: Any) -> Fixture:
    own = bounds.ComputeUntransformedBound(prim).ComputeAlignedRange()
    world = bounds.ComputeWorldBound(prim).ComputeAlignedRange()
    return Fixture(
        name=prim.GetName(),
        prim_path=str(prim.GetPath()),
        group=prim.GetCustomDataByKey("nimbus:group") or "",
        object_class=prim.GetCustomDataByKey("nimbus:class") or "",
        position=_origin(prim),
        bounds=(tuple(own.GetMin()), tuple(own.GetMax())),
        world_bounds=(tuple(world.GetMin()), tuple(world.GetMax())),
    )
