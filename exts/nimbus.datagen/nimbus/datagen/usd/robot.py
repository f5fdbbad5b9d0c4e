"""A robot's URDF, converted to USD once and kept in the cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

from nimbus.datagen.cache import cache_folder
from nimbus.datagen.errors import InputError
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
        InputError: The package or its URDF is missing.
    """
    target = cache_folder("robots") / f"{robot.name}-{robot_hash(robot)}"
    if not target.is_dir():
        _convert(_urdf(robot), package_folder(robot.package), robot.package, target)
    return next(target.glob("*.usd*"))


def robot_hash(robot: Robot) -> str:
    """Content hash of the robot's URDF and of what converts it."""
    version = importlib.metadata.version(robot.package) + importlib.metadata.version("urdf-usd-converter")
    return hashlib.sha256(_urdf(robot).read_bytes() + version.encode()).hexdigest()[:12]


def _urdf(robot: Robot) -> Path:
    urdf = package_folder(robot.package) / robot.urdf
    if not urdf.is_file():
        raise InputError(f"'{robot.urdf}' is not in the package '{robot.package}'", where=f"robot {robot.name}: urdf")
    return urdf


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
