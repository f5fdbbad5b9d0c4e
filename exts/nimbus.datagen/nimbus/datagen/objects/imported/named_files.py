"""Files that a mesh names: the materials of an OBJ, their images, and the buffers and images of Collada and glTF files.

More may be found than a reader opens, because libraries read names with options and spaces in different ways.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import TEXT_BYTES, read_bytes
from nimbus.datagen.files.plain_paths import ALPHABET, is_plain
from nimbus.datagen.objects.imported.gltf_sizes import MOST_NAMES, files_anywhere

_MATERIALS = re.compile(rb"mtllib[ \t]+([^\r\n]+)")
_MAPS = re.compile(rb"(?:map_\w+|bump|norm|disp|decal|refl)[ \t]+([^\r\n]+)", re.IGNORECASE)
_IMAGES = re.compile(rb"<(?:\w+:)?(?:init_from|ref)\b[^<>]*>([^<]*)<")
_MOST_WORDS, _LONGEST = 32, 1024
"""Largest number of words in a name, and longest name [characters]."""


def named_files(mesh: Path, *, limit: int) -> Iterator[tuple[Path, str, Path]]:
    """Yield each existing file that a mesh names, the name, and the file that contains it.

    As in the USD converter, all names are relative to the mesh. Links are not resolved.

    Args:
        mesh: The mesh.
        limit: Largest size of the mesh [bytes].

    Raises:
        InputError: The mesh or a material is too large, or names too many files.
    """
    match mesh.suffix.lower():
        case ".dae":
            yield from _named(mesh, mesh, _IMAGES, limit=limit)
        case ".obj":
            _check_materials(mesh, limit=limit)
            for material, name, file in dict.fromkeys(_named(mesh, mesh, _MATERIALS, limit=limit)):
                yield material, name, file
                yield from _named(material, mesh, _MAPS, limit=TEXT_BYTES)
        case ".gltf" | ".glb":
            yield from ((file, file.name, mesh) for file in files_anywhere(mesh))
        case _:
            return


def _check_materials(mesh: Path, *, limit: int) -> None:
    """Refuse an OBJ that names its material libraries in a way that the USD converter could read differently.

    The converter parts names at spaces, removes backslashes, ends a line at a null character, and opens what it finds.

    Raises:
        InputError: A name has another character than those of plain paths, or there are too many.
    """
    for found in _MATERIALS.finditer(read_bytes(mesh, limit=limit)):
        text = found[1].decode("utf-8", "replace").strip()
        words = text.split(" ")
        if len(words) > _MOST_WORDS or not all(is_plain(word) for word in words if word):
            what = f"names the material library {text[:200]!a}, which is not a plain path"
            raise InputError(what, where=str(mesh), instead=f"write it with {ALPHABET}")


def existing_file(name: str | Path) -> Path | None:
    """Return the path of a file without ``..``, or None if there is no such file.

    Raises:
        InputError: With ``..`` behind a link, the path leads to another file than without both.
    """
    if not str(name):
        return None
    with suppress(OSError, ValueError):  # the name is too long, or has a null character
        path = Path(os.path.normpath(name))
        if Path(name).is_file() and os.path.realpath(name) != os.path.realpath(path):
            shown = str(name).encode("utf-8", "replace").decode()
            what = f"the path '{shown}' goes through a link and back, so it has two meanings"
            raise InputError(what, where=str(path), instead="write it without the link")
        if path.is_file():
            return path
    return None


def _named(file: Path, mesh: Path, pattern: re.Pattern[bytes], *, limit: int) -> Iterator[tuple[Path, str, Path]]:
    """Yield the existing files that a file names."""
    names = dict.fromkeys(found[1] for found in pattern.finditer(read_bytes(file, limit=limit)))
    if len(names) > MOST_NAMES:
        what = f"names {len(names)} files; the limit is {MOST_NAMES}"
        raise InputError(what, where=str(file), instead="simplify the mesh")
    for name in names:
        for text in _readings(name.decode("utf-8", "surrogateescape")):
            if (path := existing_file(mesh.parent / text)) is not None:
                yield path, text, file


def _readings(text: str) -> Iterator[str]:
    """Yield the file names that a line may contain: all of it, each word, and what remains after some options."""
    whole = html.unescape(text).strip()
    words = list(re.finditer(r"\S+", whole))[:_MOST_WORDS]
    readings = [whole, *(word[0] for word in words), *(whole[word.start() :] for word in words)]
    yield from dict.fromkeys(name for name in readings if len(name) <= _LONGEST)
