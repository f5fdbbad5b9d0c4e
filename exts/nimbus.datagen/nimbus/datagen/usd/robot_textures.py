"""Comparison of the images that the USD converter copies with those that were listed, checked and hashed before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import real_path
from nimbus.datagen.robots.model_files import find_files
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.robots.urdf import package_folder


@contextmanager
def listed_textures_only(robot: Robot) -> Iterator[None]:
    """Let the converter copy only listed images of a user's pieces, and those inside of installed packages.

    The list comes from the texts of meshes and materials. The converter's libraries read these in their own ways, and
    may find other names.

    Raises:
        InputError: The converter is about to copy another image.
    """
    from urdf_usd_converter._impl.material_cache import MaterialCache

    own = [find_files(piece, robot=robot.name) for piece in robot.pieces if not piece.package]
    listed = {file.resolve() for files in own for file in (*files.meshes, *files.looks)}
    packages = [package_folder(piece.package).resolve() for piece in robot.pieces if piece.package]
    store = MaterialCache._store_materials

    def store_listed(self: Any, data: Any) -> None:
        store(self, data)
        for file in self.texture_paths:
            place = real_path(Path(file))
            if place in listed or not place.exists() or any(place.is_relative_to(folder) for folder in packages):
                continue
            what = f"a mesh names the image '{str(file)[-200:]}' in an unusual way"
            instead = "write its plain path, without escapes or references, below the robot's folder"
            raise InputError(what, where=f"robot {robot.name}", instead=instead)

    MaterialCache._store_materials = store_listed
    try:
        yield
    finally:
        MaterialCache._store_materials = store
