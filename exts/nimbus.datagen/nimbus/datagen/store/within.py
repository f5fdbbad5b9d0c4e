"""Paths that a dataset's own files name, kept inside the dataset."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from nimbus.datagen.errors import InputError

_FIELD = re.compile(r"\{(\w+)(?::0?(\d)d)?\}")


def within(root: Path, name: str) -> Path:
    """The path of a file in a folder.

    Args:
        root: The folder.
        name: Relative to it, with slashes.

    Raises:
        InputError: It leads out of the folder, by itself or through a symbolic link.
    """
    try:
        path = (root / name).resolve()
        ours = path.is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"'{name}' is no path: {error}", where=str(root)) from None
    if not ours:
        what = f"'{name}' leads out of the dataset"
        raise InputError(what, where=str(root), instead="put a copy of the file in its place")
    return root / name


def fill(template: str, **values: int | str) -> str:
    """A path template such as ``chunk-{chunk_index:03d}`` with its fields filled in; other braces stay as they are."""

    def value(match: re.Match[str]) -> str:
        found = values.get(match[1], match[0])
        return f"{found:0{match[2]}d}" if match[2] and isinstance(found, int) else str(found)

    return _FIELD.sub(value, template)


def files_under(root: Path) -> Iterator[str]:
    """Every file in a folder, relative to it with slashes, sorted; hidden folders are left out.

    Raises:
        InputError: A symbolic link leads out of it.
    """
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted((*names, *(name for name in folders if Path(place, name).is_symlink()))):
            path = Path(place, name)
            relative = path.relative_to(root).as_posix()
            if within(root, relative).is_file():
                yield relative
