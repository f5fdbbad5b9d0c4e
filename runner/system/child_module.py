"""Commands that run a module of this Nimbus installation in a separate process, and the last line of its log."""

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


def last_line(log: Path) -> str:
    """Return the last line of a log; empty if there is none."""
    try:
        return "".join(log.read_text(errors="replace").strip().splitlines()[-1:])
    except OSError:
        return ""
