"""Files that a user's robot consists of: its meshes, and the materials and images that these and the URDF name.

All of them must lie in the robot's folder, see :mod:`.model_folder`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.objects.imported.named_files import existing_file, named_files
from nimbus.datagen.robots.model_folder import check_inside, model_folders
from nimbus.datagen.robots.robot import Piece
from nimbus.datagen.robots.urdf import Element, assemble, piece_path

MODEL_BYTES = 256 << 20
"""Largest size of a mesh or an image of a user's robot [bytes]."""


@dataclass(frozen=True)
class ModelFiles:
    """Files of one piece of a robot.

    Args:
        meshes: The meshes, sorted.
        looks: Materials of the meshes, and images of materials and of the URDF, sorted.
    """

    meshes: tuple[Path, ...]
    looks: tuple[Path, ...]


def find_files(piece: Piece, *, robot: str) -> ModelFiles:
    """Find the files of a user's piece. Names of missing images are ignored: such a robot is drawn without them.

    Raises:
        InputError: A file is outside of the model's folder, a mesh is too large, or it names too many files.
    """
    urdf = piece_path(piece, robot=robot)
    folders, root = model_folders(urdf), assemble([piece], robot=robot)
    meshes, looks = (_files_of(root, tag, folders, urdf) for tag in ("mesh", "texture"))
    for mesh in sorted(meshes):
        for path, name, file in named_files(mesh, limit=MODEL_BYTES):
            check_inside(path, folders, name, str(file))
            looks.add(path)
    return ModelFiles(tuple(sorted(meshes)), tuple(sorted(looks - meshes)))


def _files_of(root: Element, tag: str, folders: tuple[Path, ...], urdf: Path) -> set[Path]:
    """Return the existing files that the elements of a tag name; all are in the robot's folder."""
    found: set[Path] = set()
    for name in sorted({element.get("filename", "") for element in root.iter(tag)}):
        if (path := existing_file(name)) is not None:
            check_inside(path, folders, name, str(urdf))
            found.add(path)
    return found
