"""Check of this Python's packages before a checkout runs in it."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from nimbus.datagen.errors import quote_words
from nimbus.datagen.files.installation import install_command

_WITHOUT = {"--help", "-h", "--version"}
"""First arguments that work without any packages."""


def requirements_error(words: list[str], *, checkout: Path) -> str:
    """Return the missing packages and the command to install them, in one line; empty if complete.

    Args:
        words: Command line; the help of ``nimbus`` itself needs no package.
        checkout: Folder with Nimbus's ``pyproject.toml``.
    """
    if not words or words[0] in _WITHOUT:
        return ""
    names = missing_requirements(requirements(checkout / "pyproject.toml"))
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    what = f"not installed in {sys.executable}: {', '.join(names[:3])}{more}"
    ready = checkout / ".venv" / "bin" / "python"
    is_ready = ready.is_file() and ready.parent != Path(sys.executable).parent
    setup = f"use {quote_words(ready)}" if is_ready else f"type: {quote_words('make', '-C', checkout, 'run')}"
    return f"{what}; {setup}, or type: {install_command(checkout, checkout / 'constraints.txt')}"


def requirements(project: Path) -> list[str]:
    """Return the dependencies in a ``pyproject.toml``; empty if the file does not exist."""
    import tomllib

    return tomllib.loads(project.read_text())["project"]["dependencies"] if project.is_file() else []


def missing_requirements(lines: Iterable[str]) -> list[str]:
    """Return the names of required distributions that this Python lacks."""
    return [name for name in (re.split(r"[^A-Za-z0-9._-]", line)[0] for line in lines) if not _installed(name)]


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
