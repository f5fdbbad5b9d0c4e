"""Location of Isaac Sim on this machine: the Python interpreter that starts it, for every kind of installation."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.variables import variable_path

VARIABLE = "NIMBUS_ISAACSIM"
"""Environment variable with the folder of Isaac Sim, its ``python.sh``, or the Python that it is installed in."""
CONTAINER = Path("/isaac-sim")
"""Folder of Isaac Sim in NVIDIA's containers."""


def locate_isaac_python(environ: Mapping[str, str], *, where: str = "") -> Path | None:
    """Return the Python interpreter of Isaac Sim without starting it; None if there is none.

    Args:
        environ: Environment variables of the process.
        where: Location for error messages.

    Raises:
        InputError: The environment variable does not name an interpreter or a folder with one.
    """
    for path in _candidates(environ):
        if path.is_file() and os.access(path, os.X_OK):
            return path
        if environ.get(VARIABLE, ""):
            what = f"{VARIABLE} does not name a Python of Isaac Sim: {path}"
            raise InputError(what, where=where, instead="name its folder, its python.sh, or the Python that has it")
    return None


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield candidates, best first: the named one, a workstation build, a container, this Python's environment."""
    for name in (VARIABLE, "ISAAC_PATH"):
        if folder := environ.get(name, ""):
            path = variable_path(name, folder)
            yield path / "python.sh" if path.is_dir() else path
    yield CONTAINER / "python.sh"
    if any(Path(folder, "isaacsim", "__init__.py").is_file() for folder in site.getsitepackages()):
        yield Path(sys.executable)
