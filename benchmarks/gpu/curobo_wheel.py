"""Wheel of cuRobo V2, which no package index has, built from a checkout of its repository.

It holds the sources and their configurations, without robots, meshes, tests and examples: Nimbus describes its own
robots to cuRobo. Version 2 is under the Apache license 2.0, which is packed with it; version 1 may not be passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu.wheels import write_wheel
from nimbus.datagen.errors import InputError

COMPANIONS = ("trimesh", "yourdfpy")
"""Packages that cuRobo imports and that are missing on a machine with only PyTorch."""
_NAME = "nvidia_curobo-0.8.0"
_LEFT_OUT = ("content/assets", "tests", "examples")
"""Folders of the package that are not packed."""
_SUFFIXES = (".py", ".cuh", ".cu", ".h", ".cpp", ".yml", ".yaml", ".xrdf")
_WHEEL = "Wheel-Version: 1.0\nGenerator: nimbus\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_METADATA = "Metadata-Version: 2.1\nName: nvidia-curobo\nVersion: 0.8.0\nLicense: Apache-2.0\n"


def pack_curobo(checkout: Path, folder: Path) -> Path:
    """Write the wheel into a folder; equal checkouts give equal bytes.

    Args:
        checkout: Checkout of the repository.
        folder: Folder of the wheel.

    Raises:
        InputError: The folder is not a checkout of version 2, or its license is another one.
    """
    instead = "give a checkout of https://github.com/NVlabs/curobo, 0.8 or newer"
    where = f"--curobo {checkout}"
    if not (checkout / "curobo/motion_planner.py").is_file():
        raise InputError("not a checkout of cuRobo V2", where=where, instead=instead)
    license_file = checkout / "LICENSE"
    if not license_file.is_file() or "Apache License" not in license_file.read_text(encoding="utf-8", errors="replace"):
        raise InputError("its license is not Apache 2.0, so that it cannot be packed", where=where, instead=instead)
    information = f"{_NAME}.dist-info"
    entries = {place: path.read_bytes() for path, place in _files(checkout / "curobo")}
    entries |= {
        f"{information}/licenses/LICENSE": license_file.read_bytes(),
        f"{information}/METADATA": _METADATA.encode(),
        f"{information}/WHEEL": _WHEEL.encode(),
    }
    path = folder / f"{_NAME}-py3-none-any.whl"
    write_wheel(path, entries, information=information)
    return path


def _files(package: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package).as_posix()
        if (
            path.suffix in _SUFFIXES
            and path.is_file()
            and not place.startswith(tuple(f"{name}/" for name in _LEFT_OUT))
        ):
            yield path, f"curobo/{place}"
