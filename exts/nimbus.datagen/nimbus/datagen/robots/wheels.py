"""Python wheels with robot models, read as archives: they are never installed, and their code never runs."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.archives import unpack
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.trusted_servers import check_proxies, refuse_local_password, use_literal_hosts

_UNPACKED = 1 << 30
"""Largest size of the files of one model [bytes]."""
_SAID = 200
"""Length of pip's last line in a message [characters]."""
_NAME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?", re.ASCII
)


def _check_name(wheel: str) -> str:
    """Raise ValueError for a text that pip could take for a file, such as ``arm==1.0.tar.gz``, whose code would run."""
    if wheel and not _NAME.fullmatch(wheel):
        raise ValueError("expected the name and version of a wheel, such as gym-aloha==0.1.5")
    return wheel


WheelName = Annotated[str, AfterValidator(_check_name)]
"""Name and version of a wheel, as in ``gym-aloha==0.1.5``, or empty."""


def model_in_wheel(wheel: str, model: str, *, where: str) -> Path:
    """Return the path of a model in a wheel; the model's folder is unpacked once.

    The wheel is a file in the folder ``wheels`` of the cache, or installed in this Python.

    Args:
        wheel: Name and version, as in ``gym-aloha==0.1.5``.
        model: Path of the model in the wheel.
        where: Location of the wheel in the robot file, for errors.

    Raises:
        InputError: The wheel is not on this machine, is damaged, or has no such file.
    """
    name, _, version = wheel.partition("==")
    inside = PurePosixPath(model)
    if inside.is_absolute() or ".." in inside.parts or len(inside.parts) < 2:
        raise InputError(
            f"'{model}' is not a path in a wheel", where=where, instead="write the path from the root of the wheel"
        )
    if (installed := _installed(name, version, inside)) is not None:
        return installed
    file = find_wheel(wheel)
    if file is None:
        raise InputError(
            f"the wheel {wheel} is not on this machine",
            where=where,
            instead=f"download it with 'nimbus robot fetch NAME', or put it into {cache_folder('wheels')}",
        )
    folder = cache_folder("wheels") / file.stem / ".".join(inside.parts[:-1])
    if not folder.is_dir():
        _unpack(file, inside.parent, folder)
    if not (folder / inside.name).is_file():
        raise InputError(f"the wheel {wheel} has no file '{model}'", where=where, instead="correct the path")
    return folder / inside.name


def find_wheel(wheel: str) -> Path | None:
    """Return the file of a wheel in the cache, if it is there."""
    name, _, version = wheel.partition("==")
    wanted = [_normal(name), _normal(version)]
    files = sorted(cache_folder("wheels").glob("*.whl"))
    return next((file for file in files if [_normal(part) for part in file.name.split("-")[:2]] == wanted), None)


def download_wheel(wheel: str, *, where: str) -> Path:
    """Download a wheel without its dependencies into the cache, and return its path.

    Raises:
        InputError: pip is missing, or cannot download the wheel.
    """
    folder = cache_folder("wheels")
    use_literal_hosts()
    check_proxies()
    words = ["download", "--no-deps", "--only-binary=:all:", "--quiet", "--dest", str(folder), wheel]
    for url in _secret_urls(_pip("config", "list").stdout):
        refuse_local_password(url, where="settings of pip")
    done, file = _pip(*words), find_wheel(wheel)
    if done.returncode or file is None:
        said = (done.stderr.strip().splitlines() or ["no such file"])[-1][:_SAID]
        instead = f"put the wheel into {folder} by hand"
        raise InputError(f"pip cannot download {wheel}: {said}", where=where, instead=instead)
    return file


def _pip(*words: str) -> subprocess.CompletedProcess[str]:
    """Run pip in an empty folder; it takes a requirement for a file if the current folder has one of its name."""
    with tempfile.TemporaryDirectory(prefix="nimbus-wheel-") as empty:
        command = [sys.executable, "-P", "-m", "pip", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=empty)


def _secret_urls(settings: str) -> list[str]:
    """Return the addresses with a password in pip's list of settings; that of a proxy may have no scheme."""
    return re.findall(r"(?:[a-z]+://)?[^\s'\"/=]+@[^\s'\"]+", settings)


def _installed(name: str, version: str, inside: PurePosixPath) -> Path | None:
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(found.locate_file(inside.as_posix())))
    return path.resolve() if found.version == version and path.is_file() else None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def _unpack(file: Path, inside: PurePosixPath, folder: Path) -> None:
    """Unpack a folder of a wheel, in full or not at all; do nothing if the wheel has no such folder."""
    with writing(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".unpack-"))
    try:
        unpack(file, work, is_wanted=lambda place: inside in place.parents, limit=_UNPACKED)
        if (work / inside).is_dir():
            os.rename(work / inside, folder)
    except OSError:
        if not folder.is_dir():  # another process may have finished first
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
