"""Conversion of a robot's model to USD, cached between runs."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from nimbus.datagen.arrays import Quaternion
from nimbus.datagen.episode.layout import RobotSetup, Vector
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_multiply, quat_to_matrix
from nimbus.datagen.meshes.convex_parts import split_collisions
from nimbus.datagen.robots.mesh_checks import check_meshes
from nimbus.datagen.robots.model_files import MODEL_BYTES, find_files
from nimbus.datagen.robots.model_folder import model_folders
from nimbus.datagen.robots.robot import Piece, Robot
from nimbus.datagen.robots.urdf import (
    assemble,
    is_unlimited,
    lock_joints,
    model_path,
    package_folder,
    piece_path,
    read_urdf,
)
from nimbus.datagen.usd.robot_textures import listed_textures_only
from nimbus.datagen.usd.stage import StageInfo
from nimbus.datagen.version import versioned_hash

CONVERSION_VERSION = 1
"""Version of the code that assembles and converts robots; it is raised when the result of any robot changes."""
_SECONDS = 600
"""Limit of the CPU time for a user's robot [s]; cutting many meshes into convex pieces takes minutes."""


def base_pose(stage: StageInfo, robot: Robot) -> tuple[Vector, Quaternion]:
    """Return the pose of the robot's base in the world [m]: the scene's mount with the robot's offset."""
    (x, y, z), turn = stage.robot_position, stage.robot_wxyz
    dx, dy, dz = (float(value) for value in quat_to_matrix(turn) @ robot.position)
    return (x + dx, y + dy, z + dz), quat_multiply(turn, robot.wxyz)


def moved_base_pose(stage: StageInfo, robot: Robot, setup: RobotSetup) -> tuple[Vector, Quaternion]:
    """Return the pose of the robot's base in the world [m], with an episode's drawn displacement of the mount."""
    position, wxyz = base_pose(stage, robot)
    turn, pivot = quat_from_axis_angle((0.0, 0.0, 1.0), setup.yaw), np.array(stage.robot_position)
    x, y, z = (float(value) for value in pivot + quat_to_matrix(turn) @ (position - pivot) + setup.offset)
    return (x, y, z), quat_multiply(turn, wxyz)


@lru_cache(maxsize=8)
def robot_usd(robot: Robot) -> Path:
    """Return the path of the robot's USD file, which is converted on first use.

    Raises:
        InputError: The package or its URDF is missing.
    """
    target = cache_folder("robots") / f"{robot.name}-{robot_hash(robot)}"
    if not target.is_dir():
        _convert(robot, target)
    return next(target.glob("*.usd*"))


def robot_hash(robot: Robot) -> str:
    """Return a hash of the conversion's version, the robot file, its URDFs and their conversion settings.

    Meshes of a package are covered by the package's version. Meshes, materials and images of a user's robot are covered
    by their content.

    Raises:
        InputError: A material or an image of a user's robot is outside of the robot's folder, or a file is too large.
    """
    said = robot.model_dump_json(exclude={"description": True, "pieces": {"__all__": {"urdf"}}})
    content = [said.encode()]
    for piece in robot.pieces:
        urdf = piece_path(piece, robot=robot.name).read_bytes()
        if piece.package:
            content += [urdf, importlib.metadata.version(piece.package).encode()]
        else:
            found = find_files(piece, robot=robot.name)
            files = [urdf, *(read_bytes(file, limit=MODEL_BYTES) for file in (*found.meshes, *found.looks))]
            # With its length before each, no bytes of one file can stand for the beginning of the next.
            content += [part for file in files for part in (len(file).to_bytes(8, "big"), file)]
    content.append(importlib.metadata.version("urdf-usd-converter").encode())
    if not all(np.array_equal(arm.tool.link_T_hand, np.eye(4)) for arm in robot.arms):
        content.append(b"cameras on the hand have the axes of the tool")  # before, those of the link
    if sum(not piece.mount for piece in robot.pieces) > 1:
        content.append(b"robot_base moves all bases")  # before, only the first
    if any(piece.travel for piece in robot.pieces):
        content.append(b"links of the base have a center of mass")
    return versioned_hash(b"".join(content), CONVERSION_VERSION)


def _convert(robot: Robot, target: Path) -> None:
    """Convert into a temporary folder and rename it, so that a killed run leaves no incomplete folder."""
    check_meshes(robot)
    with writing(target.parent):
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=".convert-"))
    try:
        with writing(target.parent):
            if all(piece.package for piece in robot.pieces):
                _write(robot, work)
            else:  # the converter parses files that may come from other users
                pieces = tuple(_converted(piece, robot.name) for piece in robot.pieces)
                given = {"robot": robot.model_copy(update={"pieces": pieces}).model_dump_json(), "folder": work}
                reads = [place for piece in pieces for place in model_folders(model_path(piece, robot=robot.name))]
                function, name = f"{__name__}:write_usd", f"robot {robot.name}"
                run_limited(function, given, where=name, seconds=_SECONDS, reads=reads, writes=[work])
                # USD saves files for this user and group, and changes their modes, which has no effect in that process.
                mode = next(work.glob("*.urdf")).stat().st_mode
                for file in (work / "usd").rglob("*.*"):
                    file.chmod(mode)
        try:
            os.rename(work / "usd", target)
        except OSError:
            if not target.is_dir():  # another process may have finished first
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _converted(piece: Piece, robot: str) -> Piece:
    """Return a piece whose model is a URDF, which is found from any working folder."""
    path = piece_path(piece, robot=robot)
    if piece.package and path == model_path(piece, robot=robot):
        return piece
    return piece.model_copy(update={"package": "", "urdf": os.path.abspath(path)})


def write_usd(robot: str, folder: str) -> None:
    """Convert a robot, given as JSON; this is called in a limited process.

    Raises:
        InputError: The robot's model cannot be converted.
    """
    place, given = Path(folder), Robot.model_validate_json(robot, strict=False)
    with listed_textures_only(given):
        _to_usd(_one_urdf(given, place), place)


def _write(robot: Robot, folder: Path) -> None:
    """Convert a robot into the folder ``usd`` below a folder."""
    packages = {piece.package for piece in robot.pieces if piece.package}
    _to_usd(_one_urdf(robot, folder), folder, packages)


def _to_usd(urdf: Path, folder: Path, packages: Iterable[str] = ()) -> None:
    """Convert a URDF into the folder ``usd`` below a folder; ``package://`` is resolved in the given packages."""
    import urdf_usd_converter
    import usdex.core

    # Diagnostics are routed away from the terminal: the converter reports every mesh, and every line that it skips.
    usdex.core.activateDiagnosticsDelegate()
    usdex.core.setDiagnosticsLevel(usdex.core.DiagnosticsLevel.eError)
    ros_packages = [{"name": name, "path": str(package_folder(name))} for name in sorted(packages)]
    converter = urdf_usd_converter.Converter(layer_structure=False, scene=False, ros_packages=ros_packages)
    converter.convert(str(urdf), str(folder / "usd"))


def _one_urdf(robot: Robot, folder: Path) -> Path:
    """Return a package's own URDF if it is complete, or an assembled one.

    A user's URDF is always assembled: the converter writes files with the name that the URDF gives its robot, which
    may be a path, and searches for ``package://`` in all parent folders.
    """
    only = robot.pieces[0]
    is_part = only.prefix or only.root or only.without or only.weighed or only.travel
    plain = len(robot.pieces) == 1 and only.package and not (robot.locked or robot.decompose or is_part)
    path = piece_path(only, robot=robot.name)
    if plain and not any(is_unlimited(joint) for joint in read_urdf(path).findall("joint")):
        return path
    root = assemble(robot.pieces, robot=robot.name)
    lock_joints(root, dict(robot.locked))
    for link in robot.decompose:
        split_collisions(root, link, folder)
    path = folder / f"{root.get('name')}.urdf"
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return path
