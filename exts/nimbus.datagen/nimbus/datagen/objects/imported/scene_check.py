"""Check of a foreign scene in a limited process, before this process or Isaac Sim opens it."""
# The stubs of pxr say that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.files.checked_files import check_once
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.objects.imported.composition import check_growth, outer_file
from nimbus.datagen.objects.imported.gltf_sizes import gltf_files, missing_files
from nimbus.datagen.objects.imported.mdl_files import mdl_files
from nimbus.datagen.objects.imported.read import USD_SUFFIXES, read_nodes
from nimbus.datagen.objects.imported.used_files import check_used_files, check_written

SCENE_CHECK_VERSION = 8
"""Version of the check; it is raised when the check refuses more, so that known files are checked again."""
_SECONDS = 120
"""Limit of CPU time [s]."""
_DECOMPOSE = "nimbus.datagen.objects.imported.decompositions:decompose_meshes"
_DECOMPOSE_SECONDS = 600
"""Limit of CPU time for the trial decomposition of meshes, which has a limit of its own between two meshes [s]."""
_FILE_BYTES = 1 << 30
"""Largest file of a scene [bytes]."""
_PRIMS = 300_000
"""Largest number of prims of a scene; a warehouse of Isaac Sim has about 50,000."""
_CORNERS = 50_000_000
"""Largest number of face corners of a scene, instances included."""
_SCRIPTS = ("omni:scripting:scripts", "inputs:script", "inputs:scriptPath")
"""Attributes with Python code, or with paths of files with such code, which Isaac Sim runs when it opens or plays a
stage."""
_NETWORK = "newton:modelPath"
"""Attribute with the file of a neural network; Newton also opens one that is a plain text."""
_DISTANCES = ("newton:sdfMaxResolution", "newton:sdfTargetVoxelSize", "newton:hydroelasticEnabled")
"""Attributes by which Newton computes a grid of distances, of any size."""
_GRAPHS = ("OmniGraph", "ComputeGraph", "ComputeNode", "GlobalComputeGraph", "LazyGraph", "PushGraph")
"""Beginnings of the types of graphs and their nodes, which Isaac Sim executes: some nodes run Python, CUDA or programs,
read memory, write files, or open connections."""
_TREES = "BehaviorTree"
"""Beginning of the types of behavior trees, by which Isaac Sim loads libraries of nodes in Python or C++."""
_CODE = re.compile(r"info:(?:\w+:)*sourceCode")
"""Attributes with the code of a shader."""
_GRAPH_ATTRIBUTES = ("node:type", "node:typeVersion", "evaluator:type")
_MATERIALX = ".mtlx"
"""Suffix of files that this process's USD does not read in full, so that it lists none of the images they name."""


def check_scene(path: Path) -> None:
    """Refuse a scene that would crash or fill this process, or run code in Isaac Sim.

    Scenes that come with Nimbus are not checked, and unchanged scenes only once.

    Args:
        path: A USD or glTF file.

    Raises:
        InputError: The scene cannot be read within the limits, has a Python script, an OmniGraph or a behavior tree, or
            refers to an address on a network, or to a file that is missing, not regular, or without a plain path.
    """
    if not is_shipped(path):
        check_once(path, f"{__name__}:read_scene", version=SCENE_CHECK_VERSION, seconds=_SECONDS)
        if path.suffix.lower() in USD_SUFFIXES:
            check_once(path, _DECOMPOSE, version=SCENE_CHECK_VERSION, seconds=_DECOMPOSE_SECONDS)


def is_shipped(path: Path) -> bool:
    """Return True for a stage that comes with Nimbus."""
    return path.resolve().is_relative_to(scene_folder("stages").resolve())


def read_scene(file: str) -> list[str]:
    """Read a scene in full, and return the paths of its files; this is called in a limited process.

    Raises:
        InputError: The scene is unusable.
    """
    path = Path(file)
    if path.suffix.lower() not in USD_SUFFIXES:
        read_nodes(path)
        return [str(one) for one in (*gltf_files(path), *missing_files(path))]
    from pxr import Tf, Usd

    try:
        check_growth(path, most=_PRIMS, is_closed=False)
        files = stage_files(path)
        stage: Any = Usd.Stage.Open(file)
        check_used_files(stage, files, path)
        _check_prims(stage, path)
    except Tf.ErrorException as error:
        raise unopened(path, error) from None
    return files


def check_references(path: Path) -> None:
    """Check that every file to which a stage refers exists.

    Raises:
        InputError: A file is missing, or USD cannot read the stage.
    """
    _refuse_missing(_dependencies(path)[2], path)


def _dependencies(path: Path) -> Any:
    """Return the layers of a stage, its other files, and the references without a target."""
    from pxr import Tf, UsdUtils

    try:
        return UsdUtils.ComputeAllDependencies(str(path.absolute()))
    except Tf.ErrorException as error:
        raise unopened(path, error) from error


def _refuse_missing(unresolved: Sequence[str], path: Path) -> None:
    if unresolved:
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


def stage_files(path: Path) -> list[str]:
    """Return all files of a stage, after checking that they are regular files of bounded size.

    Raises:
        InputError: One of them is missing, is not a regular file, or has an address on a network, or a layer has
            expression variables.
    """
    layers, assets, unresolved = _dependencies(path)
    for layer in layers:
        _check_addresses(layer, path)
    _refuse_missing(unresolved, path)
    files = {str(layer.realPath) for layer in layers} | {str(asset) for asset in assets}
    modules = [Path(file) for file in sorted(files) if Path(file).suffix.lower().startswith(".md")]
    files |= {str(file) for file in mdl_files(modules, path.parent)}
    files = sorted({str(outer_file(file)) for file in files})
    for file in files:
        check_regular(Path(file), limit=_FILE_BYTES)
    return files


def _check_addresses(layer: Any, path: Path) -> None:
    """Refuse paths that are addresses or have several readings, expression variables, and parts that are not USD.

    Args:
        layer: Layer of the scene; it is not changed.
        path: The scene.
    """
    from pxr import UsdUtils

    if layer.pseudoRoot.HasInfo("expressionVariables"):
        what = "has expression variables, which may change the files that other layers name"
        raise InputError(what, where=str(path), instead="write the paths of the files, or flatten the stage")
    was_changed = layer.dirty
    named: list[str] = []

    def keep(asset: str) -> str:
        named.append(asset)
        return asset

    UsdUtils.ModifyAssetPaths(layer, keep)
    if layer.dirty and not was_changed:  # it drops empty paths, and replaces expressions by their values
        layer.Reload(True)
    composed = {*layer.GetCompositionAssetDependencies()}
    for asset in sorted(filter(None, composed.union(named))):  # internal references are empty
        check_written(asset, path)
        outer, _, inner = asset.partition("[")
        suffix = Path((inner or outer).rstrip("]")).suffix.lower()
        # Isaac Sim has its own parsers for layers with other suffixes.
        if suffix == _MATERIALX or (asset in composed and suffix not in USD_SUFFIXES):
            instead = "convert it to USD"
            raise InputError(f"consists of '{asset[:200]}', which is not USD", where=str(path), instead=instead)


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
    """Refuse a prim that Isaac Sim would run, or whose network or distance field Newton would load."""
    if any(prim.HasAttribute(name) for name in _SCRIPTS) or "OmniScriptingAPI" in _applied(prim):
        what, instead = "has a Python script, which Isaac Sim would run", "remove the script from the scene"
    elif _is_graph(prim):
        what, instead = "belongs to an OmniGraph, which Isaac Sim would execute", "remove or deactivate the graph"
    elif any(str(name).startswith(_TREES) for name in (prim.GetTypeName(), *_applied(prim))):
        what, instead = "belongs to a behavior tree, which Isaac Sim would execute", "remove the tree from the scene"
    elif code := next((name for name in map(str, prim.GetPropertyNames()) if _CODE.fullmatch(name)), ""):
        what, instead = f"has code in {code}, which Isaac Sim would run", "write the material into a file"
    elif prim.HasAttribute(_NETWORK) or "NewtonNeuralControlAPI" in _applied(prim):
        what, instead = "has a neural network for a drive, which Newton would load", "remove the drive from the scene"
    elif any(map(prim.HasAttribute, _DISTANCES)) or "NewtonSDFCollisionAPI" in _applied(prim):
        what, instead = "has a distance field, which Newton computes on a GPU only", "write a physics:approximation"
    elif any(set("/\\") & {*str(prim.GetAttribute(name).Get())} for name in _plugins(prim)):
        what, instead = "names a plug-in by its path, which Isaac Sim may load", "write the name of the plug-in"
    else:
        return
    raise InputError(f"{prim.GetPath()} {what}", where=str(path), instead=instead)


def _plugins(prim: Any) -> list[str]:
    """Return the attributes of a prim that name plug-ins."""
    return [name for name in map(str, prim.GetPropertyNames()) if name.lower().endswith("pluginname")]


def _is_graph(prim: Any) -> bool:
    """Return True for an active prim of an OmniGraph; its types are unknown to this USD, but their names are kept."""
    is_typed = str(prim.GetTypeName()).startswith(_GRAPHS) or any(map(prim.HasAttribute, _GRAPH_ATTRIBUTES))
    is_applied = any(str(name).startswith(_GRAPHS) for name in _applied(prim))
    return bool(prim.IsActive()) and (is_typed or is_applied)


def _applied(prim: Any) -> list[str]:
    """Return the names of the schemas that a prim states, including those that this USD does not know."""
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
