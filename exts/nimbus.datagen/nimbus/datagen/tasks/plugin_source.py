"""Source text of a plug-in: the file of a component and all modules that it can share code with."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from nimbus.datagen.tasks.plugin_folders import is_of_folder


def plugin_source(component: Any) -> bytes:
    """Return the source of a component's plug-in, for its hash.

    It covers every module of the plug-in, imported or not, because a function may import a module later. Of a file
    that is alone, it is the text.

    Args:
        component: Class or function of the plug-in.
    """
    file = Path(inspect.getfile(component))
    folder = plugin_folder(component.__module__)
    return file.read_bytes() if folder is None else _source(folder)


def plugin_folder(module: str) -> Path | None:
    """Return the folder of the plug-in that a module belongs to; None for a module outside of any package."""
    parts = module.split(".")
    for count in range(2 if is_of_folder(module) else 1, len(parts) + 1):
        found = sys.modules.get(".".join(parts[:count]))
        # A namespace package has no file; it may hold the packages of other projects.
        if found is not None and hasattr(found, "__path__") and (is_of_folder(module) or getattr(found, "__file__", 0)):
            return Path(found.__path__[0])
    return None


@cache
def _source(folder: Path) -> bytes:
    """Read a plug-in once: the process keeps the code that it has imported, even if a file changes later."""
    files = sorted(_files(folder))
    if len(files) == 1:
        return files[0].read_bytes()
    lines = [f"{file.relative_to(folder).as_posix()} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
    return "\n".join(lines).encode()


def _files(folder: Path, outer: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the modules of a package and of the packages in it; ``outer`` breaks cycles of links."""
    yield from folder.glob("*.py")
    outer |= {folder.resolve()}
    for inside in folder.iterdir():
        if (inside / "__init__.py").is_file() and inside.resolve() not in outer:
            yield from _files(inside, outer)
