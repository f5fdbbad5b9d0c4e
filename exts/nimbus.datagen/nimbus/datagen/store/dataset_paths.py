"""Resolution of paths named in a dataset's own files, confined to the dataset."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.plain_paths import is_address
from nimbus.datagen.files.scene_files import literal_path

_FIELD = re.compile(r"\{(\w+)(?::0?(\d)d)?\}")


class DatasetPaths:
    """Paths in a folder, each checked to stay inside.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = literal_path(root)
        self._real = os.path.realpath(root)
        self._folders: dict[str, str] = {}
        """Resolved folders by name, cached because many files share a folder."""

    def path(self, name: str) -> Path:
        """Resolve the path of a file.

        Args:
            name: Path relative to the root, with slashes.

        Raises:
            InputError: The path leads out of the folder, directly or through a symbolic link, or is an address.
        """
        if is_address(name):
            what = f"'{name}' is an address, where a dataset has a file"
            raise InputError(what, where=str(self.root), instead="name a file inside this folder")
        folder, _, last = name.rpartition("/")
        try:
            # A dataset has many files in few folders: the realpath of a folder is cached, and only the last part of the
            # path is resolved for each file.
            if folder not in self._folders:
                self._folders[folder] = os.path.realpath(os.path.join(self._real, folder))
            path = os.path.join(self._folders[folder], last)
            real = os.path.realpath(path) if last in ("", ".", "..") or os.path.islink(path) else path
        except (OSError, ValueError) as error:
            raise InputError(
                f"'{name}' is not a valid path: {error}", where=str(self.root), instead="name a file inside this folder"
            ) from None
        if real != self._real and not real.startswith(self._real.rstrip(os.sep) + os.sep):
            what = f"'{name}' leads out of the dataset"
            raise InputError(what, where=str(self.root), instead="put a copy of the file in its place")
        return self.root / name


def resolve_inside(root: Path, name: str) -> Path:
    """Resolve the path of a file in a folder; see :class:`DatasetPaths`.

    Raises:
        InputError: The path leads out of the folder.
    """
    return DatasetPaths(root).path(name)


def _as_text(name: str, root: Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"file name {name!a} is not UTF-8", where=str(root), instead="rename it") from None
    return name


def fill_template(template: str, **values: int | str) -> str:
    """Fill in the fields of a path template such as ``chunk-{chunk_index:03d}``; unknown fields stay as they are."""

    def value(match: re.Match[str]) -> str:
        found = values.get(match[1], match[0])
        return f"{found:0{match[2]}d}" if match[2] and isinstance(found, int) else str(found)

    return _FIELD.sub(value, template)


def files_under(root: Path) -> Iterator[str]:
    """Yield every file in a folder, relative to it with slashes, sorted; hidden folders are skipped.

    Raises:
        InputError: A symbolic link leads out of the folder.
    """
    inside, top = DatasetPaths(root), len(str(root)) + 1
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted((*names, *(name for name in folders if os.path.islink(os.path.join(place, name))))):
            path = os.path.join(place, name)
            relative = path[top:].replace(os.sep, "/")
            if os.path.islink(path):
                inside.path(relative)
            if os.path.isfile(path):
                yield _as_text(relative, root)
