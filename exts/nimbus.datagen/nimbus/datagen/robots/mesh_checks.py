"""Checks of a URDF's meshes: files exist, sizes are in meters, and collision meshes have a volume."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.meshes.mesh_folder import folder_resolver
from nimbus.datagen.robots.limit_checks import ModelLines
from nimbus.datagen.robots.robot import Piece, Robot
from nimbus.datagen.robots.urdf import Element, mesh_path, model_path, piece_path, read_urdf

_SMALLEST, _LARGEST = 0.0005, 5.0
"""Range of the longest side of a mesh [m]."""
_LIKELY = (0.005, 3.0)
"""Plausible range of a robot part's size [m]."""
_FLAT = 1e-5
"""Ratio of thickness to length below which a mesh counts as a plane."""
_AGAIN = "export it again"
_FORMATS = (".stl", ".obj", ".dae")


@dataclass(frozen=True)
class _Mesh:
    """Mesh of a link, with its file and the elements that errors name."""

    file: Path
    scale: tuple[float, ...]
    touched: bool
    element: Element
    link: Element
    place: ModelLines

    def error(self, what: str, instead: str) -> InputError:
        """Return an error at the mesh's line; for an MJCF it names the link, because the mesh's name is generated."""
        if self.place.path.suffix == ".xml":
            return self.place.error(self.link, f"a mesh of body '{self.link.get('name')}' {what}", instead=instead)
        return self.place.error(self.element, f"mesh '{self.element.get('filename')}' {what}", instead=instead)


def check_mesh_files(piece: Piece, *, robot: str) -> None:
    """Check that the mesh files of a piece exist, without reading them.

    Raises:
        InputError: A mesh is missing or empty, or has an unknown format.
    """
    for mesh in _meshes(piece, robot):
        if not mesh.file.is_file():
            raise mesh.error(
                f"does not exist: {mesh.file}", "put it there, or correct its path, which is relative to the URDF"
            )
        if not mesh.file.stat().st_size:
            raise mesh.error("is an empty file", "export it again")
        if mesh.file.suffix.lower() not in _FORMATS:
            raise mesh.error("has an unknown format", f"export it as one of {', '.join(_FORMATS)}")


def check_meshes(robot: Robot) -> None:
    """Read every mesh of a robot and check it.

    Raises:
        InputError: A mesh cannot be read, is far too large or small, or is a flat collision mesh.
    """
    known: dict[Path, FloatArray] = {}
    for piece in robot.pieces:
        meshes = list(_meshes(piece, robot.name))
        if not piece.package:
            known |= _limited_points(meshes)
        for mesh in meshes:
            if mesh.file not in known:
                known[mesh.file] = _points(mesh)
            points = known[mesh.file] * mesh.scale
            _check_size(points, mesh)
            if mesh.touched:
                _check_volume(points, mesh)


def _meshes(piece: Piece, robot: str) -> Iterator[_Mesh]:
    urdf, place = piece_path(piece, robot=robot), ModelLines(model_path(piece, robot=robot))
    for link in read_urdf(urdf).findall("link"):
        for shape in (*link.findall("visual"), *link.findall("collision")):
            if (mesh := shape.find("geometry/mesh")) is not None:
                file = mesh_path(mesh.get("filename", ""), piece, urdf)
                scale = tuple(float(factor) for factor in mesh.get("scale", "1 1 1").split())
                yield _Mesh(file, scale, shape.tag == "collision", mesh, link, place)


def _limited_points(meshes: Sequence[_Mesh]) -> dict[Path, FloatArray]:
    """Read the meshes of a user's robot in a process with limited memory and time."""
    files = {mesh.file: mesh for mesh in meshes}
    found: dict[Path, FloatArray] = {}
    with TemporaryDirectory(prefix="nimbus-meshes-") as folder:
        for number, (file, mesh) in enumerate(files.items()):
            target = Path(folder, f"{number}.npy")
            try:
                given = {"file": file, "target": str(target)}
                run_limited(f"{__name__}:write_points", given, where=str(file), writes=[target.parent])
            except StorageError:
                raise
            except InputError as error:
                raise mesh.error(error.what, error.instead or _AGAIN) from None
            found[file] = np.load(target, allow_pickle=False)
    return found


def write_points(file: str, target: str) -> None:
    """Write the points (n, 3) [m] of a mesh file into a NumPy file.

    Raises:
        InputError: The file cannot be read.
    """
    np.save(target, _corners(Path(file)) * _unit(Path(file)), allow_pickle=False)


def _points(mesh: _Mesh) -> FloatArray:
    """Return the vertices (n, 3) of a mesh before its ``scale`` is applied [m]."""
    try:
        return _corners(mesh.file) * _unit(mesh.file)
    except InputError as error:
        raise mesh.error(error.what, error.instead or _AGAIN) from None


def _unit(file: Path) -> float:
    """Return the length unit of a file [m]; only Collada files state one."""
    if file.suffix.lower() != ".dae":
        return 1.0
    found = re.search(rb'<unit\b[^>]*\bmeter="([^"]+)"', file.read_bytes())
    return float(found[1]) if found else 1.0


def _corners(file: Path) -> FloatArray:
    import trimesh

    from nimbus.datagen.objects.imported.read import read_surface

    try:
        return read_surface(file).corners.reshape(-1, 3)
    except InputError as error:
        if "outside its folder" not in error.what:
            raise
    # Robot packages often keep textures in a folder beside the meshes; they are not needed here.
    place, resolver = str(file.absolute()), folder_resolver(file)
    bare = trimesh.load_mesh(place, process=False, skip_materials=True, resolver=resolver)
    return np.asarray(bare.vertices, dtype=np.float64)


def _check_size(points: FloatArray, mesh: _Mesh) -> None:
    longest = float(np.ptp(points, axis=0).max())
    if _SMALLEST <= longest <= _LARGEST:
        return
    factor = 0.001 if longest > _LARGEST else 1000.0
    instead = "write a 'scale' in its <mesh> that converts it to meters"
    if _LIKELY[0] <= longest * factor <= _LIKELY[1]:
        right = " ".join(f"{entry * factor:g}" for entry in mesh.scale)
        instead = f'write scale="{right}" in its <mesh>; it is then {longest * factor:.3g} m long'
    raise mesh.error(f"is {longest:.3g} m long; the limits are {_SMALLEST:g} to {_LARGEST:g} m", instead)


def _check_volume(points: FloatArray, mesh: _Mesh) -> None:
    spread = np.linalg.eigvalsh(np.cov(points.T))
    if np.sqrt(max(spread[0], 0.0)) < _FLAT * np.sqrt(spread[2]):
        raise mesh.error(
            "is flat, but collision geometry needs a volume", "give it a thickness, or write a <box> instead"
        )
