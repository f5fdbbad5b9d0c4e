"""Reader of scenes of Gaussian splats; their proxy geometry is read from a mesh or derived from the splats."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart
from nimbus.datagen.navigate.read.assemble import make_scene, triangles_of
from nimbus.datagen.navigate.read.open_scene import open_scene
from nimbus.datagen.objects.imported.surface import up_matrix
from nimbus.datagen.splats.alignment import check_alignment
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.proxy import make_proxy
from nimbus.datagen.splats.read import read_splats

_UP = {".spz": "y", ".ply": "-y"}
"""Up axis by format. SPZ defines it; trained splats in PLY have the frame of a camera, in which y points down."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SplatScene:
    """Splats with their proxy geometry."""

    scene: NavigationScene
    """Proxy geometry for paths, depth and labels, in the world."""
    cloud: SplatCloud
    """Splats in their own frame."""
    world_T_cloud: FloatArray
    """(4, 4) transform from the frame of the splats to the world, including scale."""


def read_splat_scene(
    path: Path, *, proxy: Path | None = None, up: str = "auto", scale: float = 1.0, proxy_up: str = "auto"
) -> SplatScene:
    """Read splats, and read or derive their proxy mesh.

    Args:
        path: Path of a PLY, compressed PLY or SPZ file.
        proxy: Path of a mesh of the same scene, aligned with the world frame, in a format of :func:`open_scene`.
        up: Up axis of the splats; with ``auto``, that of the format.
        scale: Length of one unit of the splats [m].
        proxy_up: Up axis of the proxy mesh, or ``auto``.

    Raises:
        InputError: A file cannot be read, there is no floor, or the proxy is misaligned by more than 5 cm.
    """
    cloud = read_splats(path)
    world_T_cloud = np.eye(4)
    axis = _UP[path.suffix.lower()] if up == "auto" else up
    world_T_cloud[:3, :3] = up_matrix(axis) * scale
    placed = cloud.moved(world_T_cloud)
    if proxy is not None:
        scene = open_scene(proxy, proxy_up)
        check_alignment(placed, scene.corners, where=str(proxy))
        return SplatScene(scene=_named(scene, path, world_T_cloud), cloud=cloud, world_T_cloud=world_T_cloud)
    made = make_proxy(placed, where=str(path))
    parts = [
        ScenePart(name=name, object_class=kind, room="", triangles=triangles_of(corners))
        for name, kind, corners in (("floor", "floor", made.floor), ("obstacles", "other", made.obstacles))
    ]
    scene = make_scene(path, parts, is_lit=True)
    return SplatScene(scene=_named(scene, path, world_T_cloud), cloud=cloud, world_T_cloud=world_T_cloud)


def _named(scene: NavigationScene, path: Path, world_T_cloud: FloatArray) -> NavigationScene:
    """Return the scene with a content hash that also covers the splats and their transform."""
    check_regular(path)
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    digest = hashlib.sha256(f"{scene.content_hash}:{content}:{np.round(world_T_cloud, 9).tolist()}".encode())
    return replace(scene, content_hash=digest.hexdigest())
