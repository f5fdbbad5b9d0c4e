"""Recognition of a folder's layout: published datasets by their file names, XML models, and other meshes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from typing import Any

from nimbus.datagen.assets.found import FoundAsset, FoundPart
from nimbus.datagen.assets.mjcf import read_mjcf
from nimbus.datagen.assets.source_files import text_beside
from nimbus.datagen.assets.urdf import read_urdf
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import TEXT_BYTES
from nimbus.datagen.files.codec import parse_json
from nimbus.datagen.objects.imported.read import SUFFIXES

_MOST_FILES = 1_000_000
_MESHES = (*SUFFIXES, ".msh")
_UNNAMED = {
    "textured",
    "model",
    "mesh",
    "base",
    "visual",
    "object",
    "scene",
    "textured_simple",
    "model_normalized",
    "obj",
}
"""Names of mesh files that have no meaning; the name of the folder is used instead."""
_PLAIN_FOLDERS = {
    *("meshes", "mesh", "visual", "google_16k", "tsdf", "poisson", "eval", "full", "models", "textured_objs"),
    *("objects", "assets", "materials", "obj", "glb", "usd"),
}
_COLLISION = re.compile(r"(^|[_\-.])(coll?|collision|vhacd|coacd|convex|decomp\w*|chs)(\d*)([_\-.]|$)", re.IGNORECASE)
_YCB = re.compile(r"(^|/)(?P<name>\d{3}(-[a-z])?_[a-z0-9_\-]+)/(?P<scan>google_16k|google_64k|tsdf|poisson|clouds)/")
_YCB_SCANS, _YCB_FILES = (
    ("google_16k", "google_64k", "poisson", "tsdf"),
    ("textured.obj", "nontextured.ply", "nontextured.stl"),
)
_GSO = re.compile(r"(^|/)(?P<name>[^/]+)/meshes/model\.obj$")
_ROBOTWIN = re.compile(r"(^|/)(?P<name>\d{3}_[a-z0-9\-]+)/visual/(base)?(?P<number>\d+)\.glb$")
_OBJAVERSE = re.compile(r"(^|/)(?P<uid>[0-9a-f]{32})\.glb$")
_HOPE = {
    *("alphabetsoup", "bbqsauce", "butter", "cherries", "chocolatepudding", "cookies", "corn", "creamcheese"),
    *("granolabars", "greenbeans", "ketchup", "macaroniandcheese", "mayo", "milk", "mushrooms", "mustard"),
    *("orangejuice", "parmesan", "peaches", "peasandcarrots", "pineapple", "popcorn", "raisins", "saladdressing"),
    *("spaghetti", "tomatosauce", "tuna", "yogurt"),
}
_HOPE_ENOUGH = 3
"""Smallest number of names of HOPE objects at which a folder is recognized as that dataset; a single 'tuna' can is not
enough."""


def recognize(folder: str, only: str = "") -> list[dict[str, Any]]:
    """Recognize the assets of a folder; runs in a child process.

    Args:
        folder: Folder to search.
        only: Name of the only file to consider; all files if empty.

    Raises:
        InputError: The folder contains no asset, or too many files.
    """
    root = Path(folder).resolve()
    files = [only] if only else sorted(_files(root))
    found, lines = _of_xml(root, files)
    claimed = {mesh for asset in found for mesh in asset.claims}
    stems = {mesh.rpartition(".")[0] for mesh in claimed}  # the same mesh in another format belongs to the same asset
    meshes = [name for name in files if name.lower().endswith(_MESHES) and name.rpartition(".")[0] not in stems]
    hope = sum(PurePosixPath(name).stem.lower() in _HOPE or _folder(name).lower() in _HOPE for name in meshes)
    categories = _objaverse_categories(root, files) if any(map(_OBJAVERSE.search, meshes)) else {}
    for name in meshes:
        if asset := _of_mesh(root, name, set(files), categories, is_hope=hope >= _HOPE_ENOUGH):
            found.append(asset)
    if not found and not lines:
        raise InputError("contains no mesh, URDF or MJCF", where=folder, instead="give a folder or archive of assets")
    return [asdict(asset) for asset in [*found, *lines]]


def _files(root: Path) -> Iterator[str]:
    """Yield the files below a folder; symbolic links are skipped."""
    count = 0
    for place, folders, names in os.walk(root):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not (Path(place) / name).is_symlink()
        )
        for name in names:
            count += 1
            if count > _MOST_FILES:
                raise InputError(
                    f"contains more than {_MOST_FILES:,} files",
                    where=str(root),
                    instead="import its subfolders one by one",
                )
            path = Path(place) / name
            if not name.startswith(".") and not path.is_symlink():
                yield path.relative_to(root).as_posix()


def _of_xml(root: Path, files: list[str]) -> tuple[list[FoundAsset], list[FoundAsset]]:
    """Return the assets of URDF and MJCF files, and the refused files; if assets are equal, only the first is kept."""
    found, lines, seen = [], [], {}
    for name in sorted(files, key=lambda name: (len(name), name)):  # 'can.xml' before 'can-visual.xml'
        reader = {".urdf": read_urdf, ".xacro": read_urdf, ".xml": read_mjcf}.get(PurePosixPath(name).suffix.lower())
        if reader is None:
            continue
        try:
            assets = reader(root, name)
        except InputError as error:
            is_urdf = name.lower().endswith((".urdf", ".xacro"))
            if is_urdf or _is_mjcf(root, root / name):
                layout = "urdf" if is_urdf else "mjcf"
                lines.append(FoundAsset(name=PurePosixPath(name).stem, path=name, layout=layout, refused=error.what))
            continue
        for asset in assets:
            if not asset.refused and not any(part.mesh for part in asset.parts) and not _is_own(asset):
                continue
            shown = tuple((part.mesh, part.solid, part.size, part.place, part.link) for part in asset.parts)
            if not shown or seen.setdefault(shown, asset) is asset:
                found.append(asset)
    rigid = {mesh for asset in found if not asset.refused for part in asset.parts if (mesh := part.mesh)}
    # If a refused asset, such as a robot, and a rigid asset share a mesh, only the rigid asset claims it.
    return [
        replace(asset, claims=tuple(mesh for mesh in asset.claims if mesh not in rigid)) if asset.refused else asset
        for asset in found
    ], lines


def _is_mjcf(root: Path, path: Path) -> bool:
    """Return True if an unreadable file was probably meant as MJCF."""
    return "<mujoco" in text_beside(root, path, limit=16 << 20)


def _is_own(asset: FoundAsset) -> bool:
    """Return True if an asset made only of primitive solids has at least two parts, and so counts as an object."""
    return len(asset.parts) > 1


def _of_mesh(root: Path, name: str, files: set[str], categories: dict[str, str], *, is_hope: bool) -> FoundAsset | None:
    path = PurePosixPath(name)
    if any(_COLLISION.search(part) for part in (path.stem, *path.parts[:-1][-2:])):
        return None
    part = FoundPart(mesh=name)
    if match := _YCB.search(name):
        base = name[: match.start("scan")]
        choices = (f"{base}{scan}/{file}" for scan in _YCB_SCANS for file in _YCB_FILES)
        if name != next((wish for wish in choices if wish in files), ""):
            return None
        words = (match["name"],)
        return FoundAsset(name=match["name"], path=name, layout="ycb", parts=(part,), words=words, metres=1.0, up="z")
    if match := _GSO.search(name):
        base = name[: match.start("name")] + match["name"]
        texture = next((file for file in (f"{base}/materials/textures/texture.png",) if file in files), "")
        words = (match["name"], _pbtxt_category(root, root / base / "metadata.pbtxt"))
        part = replace(part, texture=texture)
        return FoundAsset(name=match["name"], path=name, layout="gso", parts=(part,), words=words, metres=1.0, up="z")
    if match := _ROBOTWIN.search(name):
        own = f"{match['name']}_{match['number']}"
        base = path.parent.parent
        metres, notes = _robotwin_scale(root, root / base / f"model_data{match['number']}.json")
        return FoundAsset(
            name=own, path=name, layout="robotwin", parts=(part,), words=(match["name"],), metres=metres, notes=notes
        )
    if match := _OBJAVERSE.search(name):
        given = categories.get(match["uid"], "")
        own = f"{given}_{match['uid'][:8]}" if given else f"objaverse_{match['uid'][:8]}"
        return FoundAsset(name=own, path=name, layout="objaverse", parts=(part,), words=(given,), metres=0.0, up="y")
    own = _folder(name) if path.stem.lower() in _UNNAMED or path.stem.isdigit() else path.stem
    if is_hope and (path.stem.lower() in _HOPE or _folder(name).lower() in _HOPE):
        own = path.stem if path.stem.lower() in _HOPE else _folder(name)
        return FoundAsset(name=own, path=name, layout="hope", parts=(part,), words=(own,), metres=0.01, up="y")
    if _has_better(path, files):
        return None
    return FoundAsset(name=own or "object", path=name, layout="mesh", parts=(part,), words=(own, _folder(name)))


def _has_better(path: PurePosixPath, files: set[str]) -> bool:
    """Return True if the same mesh exists in a format with more information, such as color or unit."""
    order = (".glb", ".gltf", ".usdz", ".usd", ".usdc", ".usda", ".obj", ".ply", ".stl", ".msh")
    better = order[: order.index(path.suffix.lower())]
    return any(path.with_suffix(suffix).as_posix() in files for suffix in better)


def _folder(name: str) -> str:
    """Return the name of the nearest parent folder that has a meaningful name."""
    parts = PurePosixPath(name).parts[:-1]
    return next((part for part in reversed(parts) if part.lower() not in _PLAIN_FOLDERS), "")


def _pbtxt_category(root: Path, path: Path) -> str:
    """Return the category of a Google scan from its metadata, such as ``first: "Shoe"``."""
    parts = re.findall(r"categories\s*\{([^}]*)", text_beside(root, path))
    match = next(filter(None, (re.search(r'first:\s*"([^"]{1,60})"', part) for part in parts)), None)
    return match[1] if match else ""


def _robotwin_scale(root: Path, path: Path) -> tuple[float | None, tuple[str, ...]]:
    try:
        scale = parse_json(text_beside(root, path))["scale"]
        sides = [float(side) for side in (scale if isinstance(scale, list) else [scale])]
    except (ValueError, KeyError, TypeError, OverflowError):
        return None, (f"{path.name} gives no scale",)
    if not sides or not all(0 < side < math.inf for side in sides):
        return None, (f"{path.name} gives the scale {scale}, which is not used",)
    return sides[0], (f"its axes have scales {sides}; the first is used",) if max(sides) > 1.001 * min(sides) else ()


def _objaverse_categories(root: Path, files: list[str]) -> dict[str, str]:
    """Return the categories by object identifier, from ``lvis-annotations.json``."""
    found: dict[str, str] = {}
    for name in files:
        if PurePosixPath(name).name == "lvis-annotations.json":
            try:
                content = parse_json(text_beside(root, root / name, limit=TEXT_BYTES))
            except ValueError:
                continue
            if isinstance(content, dict):
                for category, uids in content.items():
                    if isinstance(uids, list):
                        found |= {uid: str(category) for uid in uids if isinstance(uid, str)}
    return found
