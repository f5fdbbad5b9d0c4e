"""Decomposition of a URDF's collision meshes into convex pieces; simulators would use the hull of each mesh."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from nimbus.datagen.files.own_files import file_name
from nimbus.datagen.media.picture_files import limit_formats
from nimbus.datagen.meshes.mesh_folder import folder_resolver

_CUTTING: dict[str, Any] = {
    "threshold": 0.08,  # largest concavity of a piece, as measured by coacd
    "max_convex_hull": 8,
    "preprocess_mode": "on",
    "preprocess_resolution": 30,
    "resolution": 1000,
    "mcts_nodes": 10,
    "mcts_iterations": 40,
    "mcts_max_depth": 2,
    "seed": 0,
}
"""Settings that need a tenth of the time of coacd's defaults: a few seconds per mesh."""


def split_collisions(root: ElementTree.Element, link: str, folder: Path) -> None:
    """Replace the collision meshes of a link by convex pieces, whose files are written into a folder.

    Args:
        root: Root element of the URDF.
        link: Name of the link.
        folder: Folder for the files.
    """
    element = next(found for found in root.findall("link") if found.get("name") == link)
    for number, collision in enumerate(element.findall("collision")):
        mesh = collision.find("geometry/mesh")
        if mesh is None:
            continue
        for part, path in enumerate(_pieces(Path(mesh.get("filename", "")), folder, f"{link}_{number}")):
            piece = copy.deepcopy(collision)
            piece.set("name", f"{link}_{number}_{part}")
            piece.find("geometry/mesh").set("filename", str(path))  # type: ignore[union-attr]
            element.append(piece)
        element.remove(collision)


def _pieces(path: Path, folder: Path, name: str) -> list[Path]:
    import coacd
    import trimesh

    coacd.set_log_level("error")
    limit_formats()
    whole: Any = trimesh.load(path.absolute(), force="mesh", resolver=folder_resolver(path))
    parts = coacd.run_coacd(coacd.Mesh(whole.vertices, whole.faces), **_CUTTING)
    files = []
    for number, (vertices, faces) in enumerate(parts):
        files.append(folder / f"{file_name(name)}_{number}.stl")
        trimesh.Trimesh(vertices, faces).export(files[-1])
    return files
