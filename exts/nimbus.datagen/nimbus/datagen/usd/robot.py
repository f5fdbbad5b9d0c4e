"""A robot's URDF, converted to USD once and kept in the cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

from nimbus.datagen.cache import cache_folder
from nimbus.datagen.errors import InputError, nearest
from nimbus.datagen.robot import Robot


def package_folder(package: str) -> Path:
    """Folder of a package's shared data, which its URDFs name as ``package://<package>/``.

    Raises:
        InputError: The package is not installed, or carries no such folder.
    """
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        raise InputError(
            f"the package '{package}' is not installed", where="robot", instead=f"pip install {package}"
        ) from None
    marker = f"/share/{package}/"
    for file in files:
        text = file.as_posix()
        if marker in text:
            return Path(str(file.locate())).resolve().parents[len(text.split(marker)[1].split("/")) - 1]
    raise InputError(f"the package '{package}' carries no share/{package} folder", where="robot")


@lru_cache(maxsize=8)
def robot_usd(robot: Robot) -> Path:
    """Path of the robot's USD file; converted on first use.

    Raises:
        InputError: The package, its URDF or something that the robot file names in it is missing.
    """
    urdf = _urdf(robot)
    _check_names(robot, urdf)
    target = cache_folder("robots") / f"{robot.name}-{robot_hash(robot)}"
    if not target.is_dir():
        _convert(urdf, package_folder(robot.package), robot.package, target)
    return next(target.glob("*.usd*"))


def robot_hash(robot: Robot) -> str:
    """Content hash of what the robot file says, of its URDF and of what converts it.

    The meshes enter by the version of the package that carries them.
    """
    said = robot.model_dump_json(exclude={"description"}).encode()
    urdf = _urdf(robot).read_bytes()
    version = importlib.metadata.version(robot.package) + importlib.metadata.version("urdf-usd-converter")
    return hashlib.sha256(said + urdf + version.encode()).hexdigest()[:12]


def _urdf(robot: Robot) -> Path:
    urdf = package_folder(robot.package) / robot.urdf
    if not urdf.is_file():
        raise InputError(f"'{robot.urdf}' is not in the package '{robot.package}'", where=f"robot {robot.name}: urdf")
    return urdf


def _check_names(robot: Robot, urdf: Path) -> None:
    """Check that the links and joints of a robot file are in its URDF."""
    try:
        root = ElementTree.parse(urdf).getroot()
    except ElementTree.ParseError as error:
        raise InputError(f"not a URDF: {error}", where=str(urdf), instead="give another urdf") from None
    gripper = robot.gripper
    named = {
        "arm.joints": ("joint", robot.arm.joints),
        "gripper.joints": ("joint", gripper.joints),
        "gripper.links": ("link", gripper.links),
        "gripper.fingers": ("link", gripper.fingers),
        "tool.link": ("link", (robot.tool.link,)),
        "cameras": ("link", robot.cameras),
    }
    for field, (kind, names) in named.items():
        known = {element.get("name", "") for element in root.findall(kind)}
        for name in names:
            if name not in known:
                what = f"its URDF has no {kind} '{name}'"
                raise InputError(what, where=f"robot {robot.name}: {field}", instead=nearest(name, known))


def _convert(urdf: Path, package_root: Path, package: str, target: Path) -> None:
    """Convert beside the target and rename, so that a killed run leaves nothing half-made."""
    import urdf_usd_converter
    import usdex.core

    # The converter reports every mesh, and skips lines drawn in them, which nobody misses.
    usdex.core.activateDiagnosticsDelegate()
    usdex.core.setDiagnosticsLevel(usdex.core.DiagnosticsLevel.eError)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=".convert-"))
    try:
        ros_packages = [{"name": package, "path": str(package_root)}]
        converter = urdf_usd_converter.Converter(layer_structure=False, scene=False, ros_packages=ros_packages)
        converter.convert(str(urdf), str(work))
        try:
            os.rename(work, target)
        except OSError:
            if not target.is_dir():  # somebody else may have finished first
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
