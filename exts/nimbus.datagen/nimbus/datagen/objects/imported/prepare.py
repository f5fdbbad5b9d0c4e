"""Preparation of a mesh, which is checked, simplified, decomposed into convex pieces, and cached."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.objects.imported.looks import fit_look
from nimbus.datagen.objects.imported.mesh_repair import close_mesh, convert_to_metres
from nimbus.datagen.objects.imported.read import read_surface
from nimbus.datagen.objects.imported.rooms import find_rooms
from nimbus.datagen.objects.imported.settings import AssetSettings
from nimbus.datagen.objects.imported.settle import RestingWay, settle
from nimbus.datagen.objects.imported.solid import cut_contact
from nimbus.datagen.objects.imported.surface import up_matrix
from nimbus.datagen.objects.imported.symmetry import find_symmetry
from nimbus.datagen.objects.imported.up_axis import vote_up
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.shapes.contact import Piece

PREPARATION_VERSION = 6
"""Version of the preparation; raise it when the result for any mesh changes."""

_PREPARED = 1 << 30
"""Limit of a prepared mesh's file [bytes]."""
_MASS = 0.2
"""Mass in the simulation that finds rest poses [kg]; the poses do not depend on it."""


@dataclass(frozen=True, kw_only=True)
class PreparedMesh:
    """Cached arrays of a mesh, z up, in meters, in the file's own frame."""

    vertices: FloatArray
    faces: IndexArray
    normals: FloatArray
    uvs: FloatArray
    texture: ImageArray
    solid_vertices: FloatArray
    """Vertices of the closed surface before simplification, for mass properties."""
    solid_faces: IndexArray
    pieces: tuple[Piece, ...]
    rooms: FloatArray
    """(k, 2, 3) lower and upper corners of the inner spaces, the largest first."""
    ways: tuple[RestingWay, ...]
    symmetry: str


def prepare_mesh(path: Path, settings: AssetSettings, *, digest: str, said_in: str) -> PreparedMesh:
    """Return the prepared mesh of a file, from the cache if possible.

    Args:
        path: The mesh file.
        settings: Settings of the mesh.
        digest: Hash of the file and of everything that it refers to.
        said_in: File for its settings, for errors.

    Raises:
        InputError: The mesh cannot be used as an object.
    """
    shape = f"{settings.unit} {settings.scale} {settings.up} {settings.pieces}"
    key = hashlib.sha256(f"{digest} {shape} {PREPARATION_VERSION}".encode()).hexdigest()[:24]
    kept = cache_folder("assets") / f"{key}.npz"
    if (known := _read(kept)) is not None:
        return known
    given = {"mesh": path, "settings": settings.model_dump_json(by_alias=True), "said_in": said_in}
    with TemporaryDirectory(prefix="nimbus-mesh-") as folder:
        target = Path(folder, "mesh.npz")
        given["target"] = str(target)
        run_limited(f"{__name__}:prepare_into", given, where=str(path), writes=[target.parent])
        with writing(kept.parent):
            write_atomic(kept, read_bytes(target, limit=_PREPARED, follow=False), durable=False, shared=True)
    made = _read(kept)
    assert made is not None, kept
    return made


def prepare_into(mesh: str, settings: str, said_in: str, target: str) -> None:
    """Prepare a mesh and write it to a file; this function runs in a child process.

    Raises:
        InputError: The mesh is unusable as an object.
    """
    path = Path(mesh)
    _write(_prepare(path, AssetSettings.model_validate_json(settings, strict=False), said_in), Path(target))


def _prepare(path: Path, settings: AssetSettings, said_in: str) -> PreparedMesh:
    surface = convert_to_metres(read_surface(path), settings, path, said_in)
    points, faces = close_mesh(*surface.points(), path)
    if not (settings.up or settings.keypoints or settings.frames or settings.cavities):
        up = vote_up(points, faces, is_said=surface.unit_is_known).axis
        surface, points = surface.upright(up), points @ up_matrix(up).T
    look = fit_look(surface, points, faces).mesh
    rooms = find_rooms(points, faces)
    pieces = cut_contact(points, faces, most=settings.pieces, rooms=rooms, path=path, said_in=said_in).pieces
    center, inertia = mass_properties(points, faces, mass=_MASS, in_surface=False)
    return PreparedMesh(
        vertices=look.vertices,
        faces=look.faces,
        normals=look.normals,
        uvs=look.uvs,
        texture=look.texture,
        solid_vertices=points,
        solid_faces=faces,
        pieces=pieces,
        ways=settle(pieces, center, inertia, _MASS),
        symmetry=find_symmetry(points, faces),
        rooms=np.array([(room.lower, room.upper) for room in rooms]).reshape(-1, 2, 3),
    )


def _write(made: PreparedMesh, path: Path) -> None:
    arrays = {name: getattr(made, name) for name in _ARRAYS}
    arrays |= {"symmetry": np.array(made.symmetry), "ways": np.array([way.numbers for way in made.ways])}
    for index, (vertices, faces) in enumerate(made.pieces):
        arrays |= {f"piece_{index}_vertices": vertices, f"piece_{index}_faces": faces}
    np.savez_compressed(path, allow_pickle=False, **arrays)


_ARRAYS = ("vertices", "faces", "normals", "uvs", "texture", "solid_vertices", "solid_faces", "rooms")


def _read(path: Path) -> PreparedMesh | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            count = sum(name.endswith("_vertices") and name.startswith("piece_") for name in stored.files)
            pieces = tuple((stored[f"piece_{i}_vertices"], stored[f"piece_{i}_faces"]) for i in range(count))
            ways = tuple(map(RestingWay.of_numbers, stored["ways"]))
            arrays = {name: stored[name] for name in _ARRAYS}
            return PreparedMesh(**arrays, pieces=pieces, ways=ways, symmetry=str(stored["symmetry"]))
    except (OSError, KeyError, ValueError, BadZipFile):
        return None
