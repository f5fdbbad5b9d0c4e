"""Commands that run a module of this Nimbus installation in a separate process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nimbus


def module_command(module: str, *words: str) -> list[str]:
    """Return the command that runs a module of this Nimbus installation."""
    return [sys.executable, "-P", "-m", module, *words]


def module_environment(**more: str) -> dict[str, str]:
    """Return the environment in which :func:`module_command` finds this Nimbus installation."""
    root = str(Path(nimbus.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))} | more
