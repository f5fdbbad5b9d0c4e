"""Scene files of a task: expansion of file patterns, and content hashes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_all_below, check_no_link
from nimbus.datagen.files.bounded import check_regular, real_path
from nimbus.datagen.navigate.read.limited import list_limited

MOST_FILES = 10_000
"""Largest number of scene files of one task."""
_MOST_LISTED = 100_000
"""Largest number of files and folders that a pattern may search; a pattern in a stored task may begin at ``/``."""
_MOST_PARTS = 64
"""Largest number of folders in a pattern."""


def find_files(patterns: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the files that match paths and patterns, such as ``scans/*.glb``; the matches of a pattern are sorted.

    Raises:
        InputError: A pattern matches no file or searches too many folders, there are more than :data:`MOST_FILES`
            files, or a pattern matches a link out of the folder in which it begins.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(pattern).expanduser()
        if not _is_pattern(pattern):
            here = [path]
        else:
            here = _Search(pattern).find(path)
            fixed = Path(path.anchor, *takewhile(lambda name: not _is_pattern(name), _names(path)))
            _check_links(here, fixed)
        if not here or not all(one.exists() for one in here):
            raise InputError(
                f"there is no file '{pattern}'", where="scene", instead="write a path relative to the task file"
            )
        found.update(dict.fromkeys(here))
        if len(found) > MOST_FILES:
            raise InputError(
                f"with '{pattern}', there are more than {MOST_FILES} files", where="scene", instead="list fewer files"
            )
    return tuple(found)


def _check_links(files: Sequence[Path], fixed: Path) -> None:
    """Refuse links between the files and folders that the first wildcard of a pattern matches.

    Each may come from another user, whose archive also contains links at its top.

    Args:
        files: Matches of the pattern.
        fixed: Folder in which the pattern begins.
    """
    places: dict[Path, list[Path]] = {}
    depth = len(fixed.parts) + 1
    for file in files:
        places.setdefault(Path(*file.parts[:depth]) if len(file.parts) > depth else fixed, []).append(file)
    root = fixed.resolve()
    instead = "put a copy in its place, or name the file without a pattern"
    check_all_below(list(places), fixed, instead=instead)
    for place, inside in places.items():
        check_all_below(inside, place, instead=instead)
        for one in inside if place == fixed else [place]:
            real = real_path(one)
            if one is place or real.is_relative_to(root) and real.parent != root:
                check_no_link(one, instead=instead)


def _is_pattern(text: str) -> bool:
    return not set("*?[").isdisjoint(text)


def _names(path: Path) -> tuple[str, ...]:
    """Return the names of the folders in a path, without its root, and of the file."""
    return path.relative_to(path.anchor).parts


class _Search:
    """Search for the files that match a pattern; it ends after :data:`_MOST_LISTED` files and folders.

    Args:
        pattern: The pattern, for errors.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._listed = 0

    def find(self, path: Path) -> list[Path]:
        """Return the matches in order; ``**`` stands for any number of folders, and links to folders do not count.

        Raises:
            InputError: There are too many files and folders, or too many matches.
        """
        if len(path.parts) > _MOST_PARTS:
            raise self._refusal(f"names more than {_MOST_PARTS} folders")
        places = {Path(path.anchor) if path.is_absolute() else Path(): None}
        parts = _names(path)
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            found = (one for place in places for one in self._step(place, part, is_last=is_last))
            places = dict.fromkeys(found)
            if len(places) > MOST_FILES:
                raise self._refusal(f"matches more than {MOST_FILES} files or folders")
        return sorted(places)

    def _step(self, place: Path, part: str, *, is_last: bool) -> Iterator[Path]:
        if part == "**":
            below = [place]
            while below:
                yield (folder := below.pop())
                below += [folder / one.name for one in self._entries(folder) if one.is_dir(follow_symlinks=False)]
        elif not _is_pattern(part):
            if (place / part).exists():
                yield place / part
        else:
            for entry in self._entries(place):
                if fnmatchcase(entry.name, part) and (is_last or entry.is_dir()):
                    yield place / entry.name

    def _entries(self, place: Path) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    self._listed += 1
                    if self._listed > _MOST_LISTED:
                        raise self._refusal(f"searches more than {_MOST_LISTED} files and folders")
                    yield entry
        except OSError:  # it is not a folder, or may not be read
            return

    def _refusal(self, what: str) -> InputError:
        return InputError(f"'{self._pattern}' {what}", where="scene", instead="list fewer files")


def file_hashes(kind: str, paths: Iterable[Path]) -> dict[str, str]:
    """Return the hash of each file by its kind and name; files of one name have a common one.

    Args:
        kind: Kind of the files, such as ``mesh``.
        paths: The files.

    Raises:
        InputError: A file cannot be read.
    """
    found: dict[str, str] = {}
    for path in paths:
        name, digest = f"{kind} {path.name}", file_hash(path)
        if found.setdefault(name, digest) != digest:
            found[name] = _text_hash(f"{found[name]} {digest}")
    return found


def further_hashes(scenes: Sequence[Path]) -> dict[str, str]:
    """Return one hash for each scene that consists of several files: of all files but the scene's own.

    Raises:
        InputError: A file cannot be read.
    """
    found: dict[str, str] = {}
    for path, files in list_limited(scenes).items():
        text = "\n".join(sorted(f"{file.name} {file_hash(file)}" for file in files))
        name, digest = f"files of {path.name}", _text_hash(text)
        found[name] = _text_hash(f"{found[name]} {digest}") if name in found else digest
    return found


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def file_hash(path: Path) -> str:
    """Return the hash of a file's content, cached until the file changes.

    Raises:
        InputError: The file cannot be read.
    """
    check_regular(path)
    state = path.stat()
    return _hash(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _hash(path: Path, changed: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def seen_from(folder: Path, pattern: str) -> str:
    """Return a path or pattern relative to the working directory, given one relative to ``folder``."""
    path = Path(pattern).expanduser()
    return str(path if path.is_absolute() else folder / path)
