"""Reader of foreign scenes in a limited child process; the parent reads only the arrays that the child writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import as_typed
from nimbus.datagen.files.codec import parse_json, to_json
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.geometry.warp_library import kernel_folder, load_kernels, start_warp
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart, SceneRoom
from nimbus.datagen.navigate.read.open_scene import further_files, open_scene, scene_places
from nimbus.datagen.navigate.read.splats import SplatScene, read_splat_scene
from nimbus.datagen.objects.imported.read import USD_SUFFIXES
from nimbus.datagen.objects.imported.scene_check import check_scene
from nimbus.datagen.splats import nearest
from nimbus.datagen.splats.cloud import SplatCloud

_SECONDS = 600
"""Limit of CPU time [s]."""
_MEMORY = 6 << 30
"""Limit of memory [bytes]; a scan of five million faces takes about 4 GB."""
_MOST_FILES = 50_000
"""Largest number of files of a scene."""
_FILE = "scene.npz"
_CLOUD = "cloud_"
_TRIANGLES = tuple(field.name for field in fields(Triangles))
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class _Part:
    name: str
    object_class: str
    room: str
    vertex_count: int
    face_count: int
    image: int
    """Number of the texture; -1 for none."""


@dataclass(frozen=True, kw_only=True)
class _Outline:
    """Fields of :class:`NavigationScene` without its arrays."""

    name: str
    content_hash: str
    is_lit: bool
    parts: tuple[_Part, ...]
    rooms: tuple[SceneRoom, ...]


def open_limited(path: Path, up: str = "auto") -> NavigationScene:
    """Read a scene like :func:`open_scene`, in a process with limits of time and memory.

    Raises:
        InputError: The file is unusable, or its reader exceeds a limit or crashes.
    """
    scene, _ = _run("write_scene", [path], {"file": path, "up": up})
    return scene


def read_limited_splats(
    path: Path, *, proxy: Path | None = None, up: str = "auto", scale: float = 1.0, proxy_up: str = "auto"
) -> SplatScene:
    """Read splats like :func:`read_splat_scene`, in a process with limits of time and memory.

    Raises:
        InputError: A file is unusable, or its reader exceeds a limit or crashes.
    """
    given = {"file": path, "proxy": proxy or ""}
    given |= {"up": up, "scale": scale, "proxy_up": proxy_up}
    files = [path, proxy] if proxy else [path]
    if proxy:  # later commands execute kernels, so a process that reads foreign files writes none
        run_limited(f"{__name__}:compile_kernels", {}, where=str(path), seconds=_SECONDS, writes=[kernel_folder()])
    scene, arrays = _run("write_splats", files, given)
    held = {name.removeprefix(_CLOUD): array for name, array in arrays.items() if name.startswith(_CLOUD)}
    matrix, is_antialiased = held.pop("matrix"), bool(held.pop("is_antialiased"))
    return SplatScene(scene=scene, cloud=SplatCloud(**held, is_antialiased=is_antialiased), world_T_cloud=matrix)


def compile_kernels() -> None:
    """Compile the kernel that :func:`write_splats` uses; this is called in a limited process."""
    load_kernels(nearest)


def list_limited(paths: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the :func:`further_files` of each scene that has any; they are listed in a process with limits.

    Raises:
        InputError: A file is unusable, the files are too many, or the process exceeds a limit or crashes.
    """
    if not paths:
        return {}
    where, given = str(paths[0].parent), {"files": list(paths)}
    _check_scenes(paths)
    reads = scene_places(paths)
    told = run_limited(f"{__name__}:list_files", given, where=where, seconds=_SECONDS, memory=_MEMORY, reads=reads)
    lists = [[Path(name) for name in one] for one in as_typed(list[list[str]], told, where=where)]
    return {path: files for path, files in zip(paths, lists, strict=True) if files}


def list_files(files: list[str]) -> list[list[str]]:
    """Return the further files of each scene; this is called in a limited process.

    Raises:
        InputError: A file is unusable, or the files are too many.
    """
    found: list[list[str]] = []
    for file in files:
        found.append(sorted({str(one.absolute()) for one in further_files(Path(file))}))
        if len(found[-1]) > _MOST_FILES:
            what = f"the scene consists of more than {_MOST_FILES} files"
            raise InputError(what, where=file, instead="leave out objects")
    return found


def _run(function: str, paths: Sequence[Path], arguments: dict[str, Any]) -> tuple[NavigationScene, Arrays]:
    _check_scenes(paths)
    where = str(paths[0])
    with TemporaryDirectory(prefix="nimbus-scene-") as folder:
        target = Path(folder, _FILE)
        given = arguments | {"target": str(target)}
        told = run_limited(
            f"{__name__}:{function}",
            given,
            where=where,
            seconds=_SECONDS,
            memory=_MEMORY,
            reads=None if (places := scene_places(paths)) is None else (*places, kernel_folder()),
            writes=[Path(folder)],
        )
        with np.load(target, allow_pickle=False) as file:
            arrays: Arrays = dict(file)
    return _scene(as_typed(_Outline, told, where=where), arrays), arrays


def _check_scenes(paths: Sequence[Path]) -> None:
    """Check USD scenes here: their reader in a limited process then finds them checked, and starts no other process."""
    for path in paths:
        if path.suffix.lower() in USD_SUFFIXES:
            check_scene(path)


def write_scene(file: str, up: str, target: str) -> Any:
    """Read a scene, write its arrays to an NPZ file, and return the rest; this is called in a limited process.

    Raises:
        InputError: The file is unusable.
    """
    return _write(open_scene(Path(file), up), Path(target), {})


def write_splats(file: str, proxy: str, up: str, scale: float, proxy_up: str, target: str) -> Any:
    """Read splats with their proxy, write their arrays to an NPZ file, and return the rest; see :func:`write_scene`.

    Raises:
        InputError: A file is unusable.
    """
    if proxy:
        start_warp()  # with the kernels of the user
    found = read_splat_scene(Path(file), proxy=Path(proxy) if proxy else None, up=up, scale=scale, proxy_up=proxy_up)
    held = {field.name: getattr(found.cloud, field.name) for field in fields(found.cloud)}
    held["matrix"] = found.world_T_cloud
    arrays = {_CLOUD + name: np.asarray(value) for name, value in held.items() if value is not None}
    return _write(found.scene, Path(target), arrays)


def _write(scene: NavigationScene, target: Path, arrays: Arrays) -> Any:
    images = {id(part.image): part.image for part in scene.parts if part.image is not None}
    numbers = {key: number for number, key in enumerate(images)}
    parts = tuple(
        _Part(
            name=part.name,
            object_class=part.object_class,
            room=part.room,
            vertex_count=len(part.triangles.vertices),
            face_count=len(part.triangles.faces),
            image=numbers.get(id(part.image), -1),
        )
        for part in scene.parts
    )
    for name in _TRIANGLES:
        arrays[name] = np.concatenate([getattr(part.triangles, name) for part in scene.parts])
    arrays |= {f"image_{number}": image for number, image in enumerate(images.values())}
    np.savez(target, allow_pickle=False, **arrays)
    outline = _Outline(
        name=scene.name, content_hash=scene.content_hash, is_lit=scene.is_lit, parts=parts, rooms=scene.rooms
    )
    return parse_json(to_json(outline))


def _scene(outline: _Outline, arrays: Arrays) -> NavigationScene:
    points = _spans([part.vertex_count for part in outline.parts])
    faces = _spans([part.face_count for part in outline.parts])
    parts = [
        ScenePart(
            name=part.name,
            object_class=part.object_class,
            room=part.room,
            triangles=Triangles(**{name: arrays[name][one if name == "faces" else at] for name in _TRIANGLES}),
            picture=None if part.image < 0 else arrays[f"image_{part.image}"],
        )
        for part, at, one in zip(outline.parts, points, faces, strict=True)
    ]
    return NavigationScene(
        name=outline.name,
        content_hash=outline.content_hash,
        parts=tuple(parts),
        rooms=outline.rooms,
        is_lit=outline.is_lit,
    )


def _spans(counts: Sequence[int]) -> list[slice]:
    """Return the rows of each part."""
    ends = np.cumsum([0, *counts]).tolist()
    return [slice(begin, end) for begin, end in zip(ends, ends[1:], strict=False)]
