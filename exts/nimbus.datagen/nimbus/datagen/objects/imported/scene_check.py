"""Check of a foreign scene in a limited process, before this process or Isaac Sim opens it."""
# The stubs of pxr say that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.files.checked_files import check_once
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.objects.imported.composition import check_growth
from nimbus.datagen.objects.imported.read import USD_SUFFIXES, read_nodes

SCENE_CHECK_VERSION = 1
"""Version of the check; raised when it refuses more, so that known files are checked again."""
_SECONDS = 120
"""Limit of CPU time [s]."""
_FILE_BYTES = 1 << 30
"""Largest file of a scene [bytes]."""
_PRIMS = 300_000
"""Largest number of prims of a scene; a warehouse of Isaac Sim has about 50,000."""
_CORNERS = 50_000_000
"""Largest number of face corners of a scene, instances included."""
_SCRIPT_NODE = "omni.graph.scriptnode"
_SCRIPTS = ("omni:scripting:scripts", "inputs:script", "inputs:scriptPath")
"""Attributes with Python code, or with files of it, that Isaac Sim runs when it opens or plays a stage."""


def check_scene(path: Path) -> None:
    """Refuse a scene that would crash or fill this process, or run code in Isaac Sim.

    Scenes that come with Nimbus, and scenes that were checked before, cost nothing.

    Args:
        path: A USD or glTF file.

    Raises:
        InputError: The scene cannot be read within the limits, has a Python script, or refers to a file that is missing
            or not a regular file.
    """
    if not path.resolve().is_relative_to(scene_folder("stages").resolve()):
        check_once(path, f"{__name__}:read_scene", version=SCENE_CHECK_VERSION, seconds=_SECONDS)


def read_scene(file: str) -> list[str]:
    """Read a scene in full, and return the paths of its files; called in a limited process.

    Raises:
        InputError: The scene is unusable.
    """
    path = Path(file)
    if path.suffix.lower() not in USD_SUFFIXES:
        read_nodes(path)
        return [str(one) for one in path.parent.iterdir() if one.is_file()] if path.suffix == ".gltf" else [file]
    from pxr import Tf, Usd

    try:
        check_growth(path, most=_PRIMS, is_closed=False)
        files = _files(path)
        stage: Any = Usd.Stage.Open(file)
        _check_prims(stage, path)
    except Tf.ErrorException as error:
        raise unopened(path, error) from None
    return files


def check_references(path: Path) -> None:
    """Check that every file exists that a stage refers to.

    Raises:
        InputError: A file is missing, or USD cannot read the stage.
    """
    from pxr import Tf, UsdUtils

    try:
        found: Any = UsdUtils.ComputeAllDependencies(str(path))
    except Tf.ErrorException as error:
        raise unopened(path, error) from error
    if unresolved := found[2]:
        what = f"refers to '{sorted(unresolved)[0]}', which does not exist"
        raise InputError(what, where=str(path), instead="put the file there or correct the path in the stage")


def unopened(path: Path, error: Exception) -> InputError:
    """Make the error for a stage that USD cannot open."""
    try:
        lines = str(error).strip().strip("'").strip().splitlines()
        what = lines[-1].split(" : ")[-1].strip("'")
    except UnicodeDecodeError:  # the message quotes bytes that are not text
        what = "no text"
    return InputError(f"USD cannot open it: {what}", where=str(path), instead="check the file with usdchecker")


def _files(path: Path) -> list[str]:
    """Return all files of a stage, after checking that they are regular files of bounded size."""
    from pxr import UsdUtils

    check_references(path)
    found: Any = UsdUtils.ComputeAllDependencies(str(path))
    layers, assets, _ = found
    files = {str(layer.realPath) for layer in layers} | {str(asset) for asset in assets}
    # A file inside a package is named package.usdz[file].
    files = sorted({file if Path(file).exists() else file.split("[")[0] for file in files})
    for file in files:
        check_regular(Path(file), limit=_FILE_BYTES)
    return files


def _check_prims(stage: Any, path: Path) -> None:
    from pxr import Usd, UsdGeom

    bounds: Any = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default", "render"])
    bounds.ComputeWorldBound(stage.GetPseudoRoot())
    count = 0
    for prim in stage.Traverse(Usd.TraverseInstanceProxies(Usd.PrimAllPrimsPredicate)):
        _check_scripts(prim, path)
        if mesh := UsdGeom.Mesh(prim):
            count += _check_mesh(mesh, path)
        if count > _CORNERS:
            what = f"its faces have more than {_CORNERS:,} corners"
            raise InputError(what, where=str(path), instead="simplify it, or leave out objects")


def _check_scripts(prim: Any, path: Path) -> None:
    """Refuse a prim with Python code, which Isaac Sim would run."""
    node: Any = prim.GetAttribute("node:type")
    has_script = any(prim.HasAttribute(name) for name in _SCRIPTS) or "OmniScriptingAPI" in _applied(prim)
    if has_script or (node and str(node.Get()).startswith(_SCRIPT_NODE)):
        what = f"{prim.GetPath()} has a Python script, which Isaac Sim would run"
        raise InputError(what, where=str(path), instead="remove the script from the scene")


def _applied(prim: Any) -> list[str]:
    """Return the names of the schemas that a prim states, also of those that this USD does not know."""
    stated: Any = prim.GetMetadata("apiSchemas")
    return [] if stated is None else list(stated.GetAddedOrExplicitItems())


def _check_mesh(mesh: Any, path: Path) -> int:
    """Check the faces of a mesh, and return the number of their corners."""
    points, counts, corners = mesh.GetPointsAttr(), mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr()
    try:
        counts, corners = (np.asarray(one.Get() or (), dtype=np.int64) for one in (counts, corners))
        point_count = len(points.Get() or ())
    except (TypeError, ValueError):
        raise _mesh_error(mesh, path, "its points or faces are not numbers") from None
    if counts.min(initial=0) < 0 or counts.sum() > len(corners):
        raise _mesh_error(mesh, path, "its faces have more corners than faceVertexIndices")
    if len(corners) and not 0 <= corners.min() <= corners.max() < point_count:
        raise _mesh_error(mesh, path, "a face refers to a missing point")
    return len(corners)


def _mesh_error(mesh: Any, path: Path, what: str) -> InputError:
    return InputError(f"{mesh.GetPath()}: {what}", where=str(path), instead="export it again")
