"""Files that a user's robot consists of: its meshes, and the materials and images that these and the URDF name.

All of them must lie in the robot's folder. A robot may come from another user, and all that its model names is copied
into its USD files and drawn into datasets. The robot file, which the user names, selects the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.objects.imported.named_files import existing_file, named_files
from nimbus.datagen.robots.model_folder import check_inside, model_folder
from nimbus.datagen.robots.robot import Piece
from nimbus.datagen.robots.urdf import assemble, piece_path

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
    folder, root = model_folder(urdf), assemble([piece], robot=robot)
    meshes: set[Path] = set()
    for name in sorted({mesh.get("filename", "") for mesh in root.iter("mesh")}):
        if (path := existing_file(name)) is not None:
            check_inside(path, folder, name, str(urdf))
            meshes.add(path)
    looks: set[Path] = set()
    for name in sorted({texture.get("filename", "") for texture in root.iter("texture")}):
        if (path := existing_file(name)) is not None:
            check_inside(path, folder, name, str(urdf))
            looks.add(path)
    for mesh in sorted(meshes):
        for path, name, file in named_files(mesh, limit=MODEL_BYTES):
            check_inside(path, folder, name, str(file))
            looks.add(path)
    return ModelFiles(tuple(sorted(meshes)), tuple(sorted(looks - meshes)))
