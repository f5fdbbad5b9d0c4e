"""Files that a user's robot consists of: its meshes, and the materials and images that these and the URDF name.

Materials and images must lie in the robot's folder. A robot may come from another user, and every image that it names
is copied beside its USD file and drawn into datasets.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import TEXT_BYTES, read_bytes
from nimbus.datagen.robots.robot import Piece
from nimbus.datagen.robots.urdf import assemble, piece_path

MODEL_BYTES = 256 << 20
"""Largest size of a mesh or an image of a user's robot [bytes]."""
_MODEL_FOLDERS = ("urdf", "urdfs", "robot", "robots", "model", "models", "xml", "mjcf")
"""Names of folders beside which robots keep their meshes, as in ``my_robot/urdf`` and ``my_robot/meshes``."""
_LEVELS = 3
"""Number of folders above that of the URDF in which ``package.xml`` is looked for."""
_MATERIALS = re.compile(rb"mtllib[ \t]+([^\r\n]+)")
_MAPS = re.compile(rb"(?:map_\w+|bump|norm|disp|decal|refl)[ \t]+([^\r\n]+)", re.IGNORECASE)
_IMAGES = re.compile(rb"<(?:\w+:)?(?:init_from|ref)\b[^<>]*>([^<]*)<")
_MOST_NAMES, _MOST_WORDS, _LONGEST = 2000, 32, 1024
"""Largest numbers of names in a mesh and of words in a name, and longest name [characters]."""


@dataclass(frozen=True)
class ModelFiles:
    """Files of one piece of a robot.

    Args:
        meshes: The meshes, sorted.
        looks: Materials of the meshes, and images of materials and of the URDF, sorted.
    """

    meshes: tuple[Path, ...]
    looks: tuple[Path, ...]


def _model_folder(urdf: Path) -> Path:
    """Return the folder in which the materials and images of a URDF must lie.

    It is the nearest folder with a ``package.xml``, or the parent of a folder such as ``urdf``, or the URDF's own
    folder. It is never above the folder of a dataset, which another user may have made.
    """
    own = urdf.resolve().parent
    for folder in (own, *own.parents[:_LEVELS]):
        if (folder / "package.xml").is_file():
            return folder
        if (folder / "dataset.json").exists():
            break
    is_part = own.name in _MODEL_FOLDERS and not (own / "dataset.json").exists()
    return own.parent if is_part else own


def find_files(piece: Piece, *, robot: str) -> ModelFiles:
    """Find the files of a user's piece. Names of missing images are ignored: such a robot is drawn without them.

    Raises:
        InputError: A material or an image is outside of the model's folder, a mesh is too large, or it names too many.
    """
    urdf = piece_path(piece, robot=robot)
    folder, root = _model_folder(urdf), assemble([piece], robot=robot)
    meshes = {path for mesh in root.iter("mesh") if (path := _file(mesh.get("filename", "")))}
    looks: set[Path] = set()
    for name in sorted({texture.get("filename", "") for texture in root.iter("texture")}):
        if (path := _file(name)) is not None:
            _check_inside(path, folder, name, str(urdf))
            looks.add(path)
    for mesh in sorted(meshes):
        looks.update(_looks(mesh, folder))
    return ModelFiles(tuple(sorted(meshes)), tuple(sorted(looks - meshes)))


def _check_inside(path: Path, folder: Path, name: str, where: str) -> None:
    """Refuse a file that is outside of a robot's folder, also through a link.

    Raises:
        InputError: It is.
    """
    if not path.resolve().is_relative_to(folder) or not path.parent.resolve().is_relative_to(folder):
        shown = name.encode("utf-8", "replace").decode()
        what = f"'{shown}' is outside of the robot's folder {folder}"
        instead = "put the file there, or a package.xml into the folder of the whole robot"
        raise InputError(what, where=where, instead=instead)


def _file(name: str | Path) -> Path | None:
    if not str(name):
        return None
    with suppress(OSError, ValueError):  # the name is too long, or has a null character
        # The path without "..": folders that are links are resolved where the file is placed.
        if (path := Path(os.path.normpath(name))).is_file():
            return path
    return None


def _looks(mesh: Path, folder: Path) -> Iterator[Path]:
    """Yield the materials and images of a mesh; as in the converter, all names are relative to the mesh."""
    kind = mesh.suffix.lower()
    if kind == ".dae":
        yield from _named(mesh, mesh, _IMAGES, folder, limit=MODEL_BYTES)
    if kind == ".obj":
        for material in dict.fromkeys(_named(mesh, mesh, _MATERIALS, folder, limit=MODEL_BYTES)):
            yield material
            yield from _named(material, mesh, _MAPS, folder, limit=TEXT_BYTES)


def _named(file: Path, mesh: Path, pattern: re.Pattern[bytes], folder: Path, *, limit: int) -> Iterator[Path]:
    """Yield the existing files that a file names."""
    names = dict.fromkeys(found[1] for found in pattern.finditer(read_bytes(file, limit=limit)))
    if len(names) > _MOST_NAMES:
        what = f"names {len(names)} files; the limit is {_MOST_NAMES}"
        raise InputError(what, where=str(file), instead="simplify the mesh")
    for name in names:
        for text in _readings(name.decode("utf-8", "surrogateescape")):
            if (path := _file(mesh.parent / text)) is not None:
                _check_inside(path, folder, text, str(file))
                yield path


def _readings(text: str) -> Iterator[str]:
    """Yield the file names that a line may contain: all of it, each word, and what remains after some options."""
    whole = html.unescape(text).strip()
    words = list(re.finditer(r"\S+", whole))[:_MOST_WORDS]
    readings = [whole, *(word[0] for word in words), *(whole[word.start() :] for word in words)]
    yield from dict.fromkeys(name for name in readings if len(name) <= _LONGEST)
