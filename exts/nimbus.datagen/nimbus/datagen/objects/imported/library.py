"""Object library of a folder of meshes: each mesh is a kind with one variant."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.asset_folders import check_all_below
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.files.strict_yaml import load
from nimbus.datagen.meshes.mesh_folder import LARGEST_FILE
from nimbus.datagen.objects.imported.gltf_sizes import gltf_files
from nimbus.datagen.objects.imported.prepare import PREPARATION_VERSION, PreparedMesh, prepare_mesh
from nimbus.datagen.objects.imported.read import REFERRED, SUFFIXES
from nimbus.datagen.objects.imported.rooms import name_rooms
from nimbus.datagen.objects.imported.settings import AssetFile, AssetSettings
from nimbus.datagen.objects.imported.settle import name_rest_poses
from nimbus.datagen.objects.library import GENERATOR_VERSION, ObjectLibrary, kind_name
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.objects.shapes.shape import frame_at
from nimbus.datagen.random_streams import generator
from nimbus.datagen.version import versioned_hash

_LIBRARY_FILE = "library.yaml"
_GLTF = (".glb", ".gltf")
_MOST_REFERRED, _MOST_LISTED = 10_000, 100_000
"""Limits on the files to which meshes may refer, and on all files and folders below the folder of a library."""
_LIGHTEST, _HEAVIEST = 5e-5, 20.0
"""Range of the masses of imported objects [kg]."""
_DENSITIES = (2.0, 25_000.0)
"""Range of densities [kg/m³]: foam to gold."""


class AssetLibrary(ObjectLibrary):
    """Library of the meshes in a folder, with their settings; the constructor checks and prepares all meshes.

    Args:
        folder: Folder with the mesh files.

    Raises:
        InputError: The folder has no meshes, a mesh is unusable as an object, or a setting is invalid.
    """

    def __init__(self, folder: Path) -> None:
        files = _meshes(folder)
        self._files = files
        self._settings, self._said_in = _settings(folder, files)
        self._shapes: dict[str, PreparedMesh] = {}
        named = {file for path in files.values() if path.suffix.lower() in _GLTF for file in gltf_files(path)[1:]}
        referred = _digest(sorted({*_referred(folder), *named}), folder)
        for name, path in files.items():
            digest = _digest([path], folder) + referred
            self._shapes[name] = prepare_mesh(path, self._settings[name], digest=digest, said_in=self._said_in[name])
        settings = sorted((name, kind.model_dump_json()) for name, kind in self._settings.items())
        content = f"{[_digest([path], folder) for path in files.values()]} {referred} {settings}"
        content_hash = versioned_hash(content.encode(), GENERATOR_VERSION, PREPARATION_VERSION)
        classes = tuple(dict.fromkeys(kind.object_class for kind in self._settings.values()))
        super().__init__(kind_name(folder), self._settings, classes, content_hash)
        for kind in self.kinds:
            self.model(kind, 0)

    def _build(self, kind: str, variant: int) -> ObjectModel:
        settings, shape = self._settings[kind], self._shapes[kind]
        bounds = np.array([shape.vertices.min(axis=0), shape.vertices.max(axis=0)])
        origin = bounds.mean(axis=0)
        pieces = tuple((points - origin, triangles) for points, triangles in shape.pieces)
        mass, symmetry = self._mass(kind), settings.symmetry or shape.symmetry
        center, inertia = mass_properties(shape.solid_vertices - origin, shape.solid_faces, mass=mass, in_surface=False)
        height = float(bounds[1, 2] - bounds[0, 2]) / 2
        said = {name: np.array([room.lower, room.upper]) for name, room in settings.cavities.items()}
        rooms = {name: room - origin for name, room in (said or name_rooms(shape.rooms)).items()}
        ways = [way.about(origin) for way in shape.ways]
        ends = {"top": np.array([0, 0, height]), "middle": np.zeros(3), "base": np.array([0, 0, -height])}
        return ObjectModel(
            library=self.name,
            kind=kind,
            variant=variant,
            object_class=settings.object_class,
            category=settings.category or kind.replace("_", " "),
            vertices=shape.vertices - origin,
            faces=shape.faces,
            normals=shape.normals,
            uvs=shape.uvs,
            painter=lambda: shape.texture,
            convex_pieces=pieces,
            mass=mass,
            center_of_mass=center,
            inertia=inertia,
            friction=float(generator(0, self.name, kind, "friction").uniform(*settings.friction)),
            symmetry=symmetry,
            keypoints=ends | {name: np.array(point) - origin for name, point in settings.keypoints.items()},
            rest_poses=name_rest_poses(ways, settings.rests, lies_on=settings.lies_on),
            bounds=bounds - origin,
            rolling=symmetry == "revolution",
            frames={name: frame_at((*room.mean(axis=0)[:2], room[1, 2])) for name, room in rooms.items()}
            | {
                name: frame_at(np.array(place.at) - origin, z=place.z, x=place.x)
                for name, place in settings.frames.items()
            },
            cavities=rooms,
            open_inside=True,
            anchored=settings.anchored,
        )

    def _mass(self, kind: str) -> float:
        """Return the mass [kg], as given or from the density; implausible values are refused."""
        settings, shape = self._settings[kind], self._shapes[kind]
        a, b, c = (shape.solid_vertices[shape.solid_faces[:, corner]] for corner in range(3))
        volume = abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6
        given = settings.mass
        mass = float(generator(0, self.name, kind, "mass").uniform(*given)) if given else settings.density * volume
        density = mass / volume
        if _LIGHTEST <= mass <= _HEAVIEST and _DENSITIES[0] <= density <= _DENSITIES[1]:
            return mass
        what = f"a mass of {mass:.3g} kg for {volume * 1e6:.3g} cm³ ({density:.3g} kg/m³) is implausible"
        instead = f"write 'mass' or 'density' in {self._said_in[kind]}: {_DENSITIES[0]:g} to {_DENSITIES[1]:g} kg/m³"
        raise InputError(what, where=str(self._files[kind]), instead=instead)


def _meshes(folder: Path) -> Mapping[str, Path]:
    """Return the mesh files of a folder by the name of their kind."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    except OSError as error:
        raise InputError(
            (error.strerror or str(error)).lower(), where=str(folder), instead="give a folder that can be read"
        ) from None
    if not paths:
        known = ", ".join(suffix[1:].upper() for suffix in SUFFIXES[:5])
        raise InputError("no mesh in this folder", where=str(folder), instead=f"put {known} or USD files there")
    check_all_below(paths, folder)
    found: dict[str, Path] = {}
    for path in paths:
        name = kind_name(path.with_suffix(""))
        if name in found:
            what = f"has the same kind name '{name}' as {found[name].name}"
            raise InputError(what, where=str(path), instead="rename one of them")
        found[name] = path
    return found


def _settings(folder: Path, files: Mapping[str, Path]) -> tuple[dict[str, AssetSettings], dict[str, str]]:
    """Return the settings of each kind, and the name of the file that contains them or would contain them."""
    common = folder / _LIBRARY_FILE
    check_all_below([common, *(path.with_suffix(".yaml") for path in files.values())], folder)
    library = load(common, AssetFile) if common.is_file() else AssetFile()
    known = {name: library.kinds[key] for key in library.kinds for name in files if kind_name(Path(key)) == name}
    for key in library.kinds:
        if kind_name(Path(key)) not in files:
            what = f"no mesh '{key}' in this folder"
            raise InputError(what, where=f"{common}: kinds", instead=suggest(key, files))
    settings, said_in = {}, {}
    for name, path in files.items():
        own = path.with_suffix(".yaml")
        if own.is_file() and name in known:
            raise InputError(
                f"'{name}' also has settings in {_LIBRARY_FILE}", where=str(own), instead="keep one of them"
            )
        settings[name] = load(own, AssetSettings) if own.is_file() else known.get(name, library.defaults)
        said_in[name] = own.name if own.is_file() or not common.is_file() else _LIBRARY_FILE
    return settings, said_in


def _referred(folder: Path) -> list[Path]:
    """Return all files below a folder to which meshes in it may refer, see :data:`.read.REFERRED`.

    Raises:
        InputError: There are too many files.
    """
    found: list[Path] = []
    listed = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        listed += len(folders) + len(names)
        found += [Path(place, name) for name in names if name.lower().endswith(REFERRED)]
        if len(found) > _MOST_REFERRED or listed > _MOST_LISTED:
            what = f"has more than {_MOST_REFERRED:,} files to which a mesh may refer, or {_MOST_LISTED:,} files"
            raise InputError(what, where=str(folder), instead="move the meshes to a folder of their own")
    check_all_below(found, folder)
    return sorted(found)


def _digest(paths: Iterable[Path], folder: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        content = read_bytes(path, limit=LARGEST_FILE)
        name = Path(os.path.relpath(path, folder)).as_posix()
        digest.update(f"{name} {len(content)}\n".encode(errors="surrogateescape") + content)
    return digest.hexdigest()
