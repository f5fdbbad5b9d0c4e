"""A mesh made ready once: checked, simplified, cut into convex pieces, and kept in the cache."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from scipy.spatial import ConvexHull, KDTree

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.meshes.decimate import decimate
from nimbus.datagen.objects.imported.folds import check_folds
from nimbus.datagen.objects.imported.mesh_repair import close_mesh, convert_to_metres
from nimbus.datagen.objects.imported.read import read_surface
from nimbus.datagen.objects.imported.settings import AssetSettings
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.shapes.contact import Piece, limited_hull
from nimbus.datagen.objects.shapes.shape import smooth_normals

PREPARATION_VERSION = 2
"""Version of the code that makes meshes ready: raise it when any mesh comes out otherwise."""

_MOST_FACES, _FACES_TO_CUT = 6000, 3000
_TOLERANCES = (1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3)
"""[m] By which a simplified surface may be off."""
_CREASE = 0.7
_CONVEX = 0.97
"""A mesh that fills so much of its hull is one piece."""
_THRESHOLD = 0.04
"""Share that the hull of a piece may add, for coacd."""


@dataclass(frozen=True, kw_only=True)
class PreparedMesh:
    """What is kept of a mesh, z up, in metres, in the file's own frame."""

    vertices: FloatArray
    faces: IndexArray
    normals: FloatArray
    uvs: FloatArray
    texture: ImageArray
    solid_vertices: FloatArray
    """The closed surface, not simplified, for mass."""
    solid_faces: IndexArray
    pieces: tuple[Piece, ...]


def prepare_mesh(path: Path, settings: AssetSettings, *, digest: str, said_in: str) -> PreparedMesh:
    """The mesh of a file, from the cache where it was made before.

    Args:
        path: The mesh file.
        settings: What is said about it.
        digest: Of the content of the file and of what it refers to.
        said_in: The file where settings belong, for errors.

    Raises:
        InputError: The mesh cannot be a thing.
    """
    shape = f"{settings.unit} {settings.scale} {settings.up} {settings.pieces}"
    key = hashlib.sha256(f"{digest} {shape} {PREPARATION_VERSION}".encode()).hexdigest()[:24]
    kept = cache_folder("assets") / f"{key}.npz"
    if (known := _read(kept)) is not None:
        return known
    arguments = {"mesh": str(path), "settings": settings.model_dump_json(by_alias=True), "said_in": said_in}
    with writing(kept.parent):
        run_limited(f"{__name__}:prepare_into", arguments | {"target": str(kept)}, where=str(path))
    made = _read(kept)
    assert made is not None, kept
    return made


def prepare_into(mesh: str, settings: str, said_in: str, target: str) -> None:
    """Prepare a mesh in a process of its own, into a file of the cache.

    Raises:
        InputError: The mesh cannot be a thing.
    """
    path = Path(mesh)
    _keep(_prepare(path, AssetSettings.model_validate_json(settings, strict=False), said_in), Path(target))


def _prepare(path: Path, settings: AssetSettings, said_in: str) -> PreparedMesh:
    surface = convert_to_metres(read_surface(path), settings, path, said_in)
    points, faces = close_mesh(*surface.points(), path)
    vertices, seen_faces, normals, uvs = simplify_looks(surface, points, faces)
    return PreparedMesh(
        vertices=vertices,
        faces=seen_faces,
        normals=normals,
        uvs=uvs,
        texture=surface.texture,
        solid_vertices=points,
        solid_faces=faces,
        pieces=cut_solid(points, faces, settings.pieces, path, said_in),
    )


def simplify_looks(
    surface: ImportedSurface, points: FloatArray, faces: IndexArray
) -> tuple[FloatArray, IndexArray, FloatArray, FloatArray]:
    """Simplify a closed surface to what is seen.

    Args:
        surface: As read, z up and in metres; its texture stays.
        points: (n, 3) of the closed surface [m].
        faces: (m, 3)

    Returns:
        (v, 3) vertices [m], (f, 3) faces, (v, 3) normals and (v, 2) places in the texture.
    """
    seen_points, seen_faces = _simplified(points, faces, _MOST_FACES)
    corners, uvs = seen_points[seen_faces], _transferred(surface, seen_points[seen_faces])
    each = np.arange(3 * len(corners), dtype=np.int32).reshape(-1, 3)
    return smooth_normals(corners.reshape(-1, 3), each, uvs.reshape(-1, 2), _CREASE)


def cut_solid(points: FloatArray, faces: IndexArray, most: int, path: Path, said_in: str) -> tuple[Piece, ...]:
    """Cut a closed surface into at most so many convex pieces.

    Raises:
        InputError: It folds onto itself.
    """
    return _cut(*_simplified(points, faces, _FACES_TO_CUT), most, path, said_in)


def _simplified(points: FloatArray, faces: IndexArray, most: int) -> tuple[FloatArray, IndexArray]:
    for tolerance in _TOLERANCES:
        if len(faces) <= most:
            break
        points, faces = decimate(points, faces, tolerance=tolerance)
    return points, faces


def _transferred(surface: ImportedSurface, corners: FloatArray) -> FloatArray:
    """(m, 3, 2) places in the texture: each face continues the map of the old face that is nearest and faces alike."""
    old = surface.corners
    if len(old) == len(corners) and np.allclose(old, corners, atol=1e-9):
        return surface.uvs
    normal, old_normal = _normals(corners), _normals(old)
    _, near = KDTree(old.mean(axis=1)).query(corners.mean(axis=1), k=min(8, len(old)))
    near = np.asarray(near).reshape(len(corners), -1)
    alike = np.einsum("ij,ikj->ik", normal, old_normal[near]) - 0.05 * np.arange(near.shape[1])
    source = near[np.arange(len(near)), np.argmax(alike, axis=1)]
    a, b, c = (old[source, corner] for corner in range(3))
    edges = np.stack([b - a, c - a], axis=-1)
    weights = np.einsum("mij,mkj->mki", np.linalg.pinv(edges), corners - a[:, None])
    weights = np.clip(weights, -1.0, 2.0)
    uv = surface.uvs[source]
    return uv[:, :1] + weights[..., :1] * (uv[:, 1:2] - uv[:, :1]) + weights[..., 1:] * (uv[:, 2:] - uv[:, :1])


def _normals(corners: FloatArray) -> FloatArray:
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return cross / np.maximum(np.linalg.norm(cross, axis=1, keepdims=True), 1e-18)


def _cut(points: FloatArray, faces: IndexArray, most: int, path: Path, said_in: str) -> tuple[Piece, ...]:
    """Convex pieces of a closed surface: its hull where that is nearly the same, else those of coacd."""
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    volume = abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6
    if most == 1 or volume > _CONVEX * ConvexHull(points).volume:
        return (limited_hull(points),)
    check_folds(points, faces, path, said_in)
    import coacd

    coacd.set_log_level("off")
    found = coacd.run_coacd(
        coacd.Mesh(points, faces), threshold=_THRESHOLD, max_convex_hull=most, mcts_iterations=60, seed=0
    )
    hulls = [limited_hull(np.asarray(vertices, dtype=np.float64)) for vertices, _ in found if len(vertices) > 3]
    return tuple(hulls)


def _keep(made: PreparedMesh, path: Path) -> None:
    """Write whole or not at all; what a killed process left half-written is swept away."""
    arrays = {name: getattr(made, name) for name in _ARRAYS}
    for index, (vertices, faces) in enumerate(made.pieces):
        arrays |= {f"piece_{index}_vertices": vertices, f"piece_{index}_faces": faces}
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        left.unlink(missing_ok=True)
    # FileNotFoundError: another process made the same at this moment, and swept ours away.
    with suppress(FileNotFoundError), writing(path.parent):
        write_atomic(path, content.getvalue(), durable=False, shared=True)


_ARRAYS = ("vertices", "faces", "normals", "uvs", "texture", "solid_vertices", "solid_faces")


def _read(path: Path) -> PreparedMesh | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            count = sum(name.endswith("_vertices") and name.startswith("piece_") for name in stored.files)
            pieces = tuple((stored[f"piece_{i}_vertices"], stored[f"piece_{i}_faces"]) for i in range(count))
            return PreparedMesh(**{name: stored[name] for name in _ARRAYS}, pieces=pieces)
    except (OSError, KeyError, ValueError, BadZipFile):
        return None
