"""Contents that glTF files declare: pictures, and sizes, which are checked before a parser allocates memory."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_all_below
from nimbus.datagen.files.bounded import TEXT_BYTES, check_regular
from nimbus.datagen.files.codec import parse_json

_MOST_ABSENT = 64 << 20
"""Largest size of the numbers that a file declares without storing them [bytes]; their values are zero."""
MOST_NAMES = 2000
"""Largest number of files that a file may name."""
_MOST_CORNERS = 50_000_000
"""Largest number of face corners of all nodes; several nodes may show one mesh."""
_COMPONENT = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
"""Size of a number by its type [bytes]."""
_NUMBERS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_HEADER = struct.Struct("<4sIIII")
"""Beginning of a GLB: mark, version, length, and length and type of the first chunk, which is JSON."""


def check_gltf_sizes(path: Path) -> None:
    """Refuse a small file whose parts take gigabytes.

    Raises:
        InputError: The file declares many numbers that it does not store, shows its meshes too often, or is damaged.
    """
    told = _document(path)
    accessors, meshes = _entries(told, "accessors"), _entries(told, "meshes")
    absent = sum(_size(one) for one in accessors if "bufferView" not in one)
    if absent > _MOST_ABSENT:
        what = f"declares {absent / 2**30:.1f} GiB of numbers that the file does not contain"
        raise InputError(what, where=str(path), instead="export it again")
    corners = [sum(_corners(one, accessors) for one in _entries(mesh, "primitives")) for mesh in meshes]
    shown = (node.get("mesh") for node in _entries(told, "nodes"))
    total = sum(corners[mesh] for mesh in shown if isinstance(mesh, int) and 0 <= mesh < len(corners))
    if total > _MOST_CORNERS:
        what = f"its nodes contain {total:,} face corners; the limit is {_MOST_CORNERS:,}"
        raise InputError(what, where=str(path), instead="simplify it, or leave out nodes")


def has_pictures(path: Path) -> bool:
    """Return True if a glTF file has textures, colors of vertices, or materials without shading."""
    told = _document(path)
    used = told.get("extensionsUsed")
    if told.get("images") or (isinstance(used, list) and "KHR_materials_unlit" in used):
        return True
    drawn = (one for mesh in _entries(told, "meshes") for one in _entries(mesh, "primitives"))
    return any(isinstance(found := one.get("attributes"), Mapping) and "COLOR_0" in found for one in drawn)


def gltf_files(path: Path) -> list[Path]:
    """Return the paths of a glTF file and of the existing files that it names; they lie in its folder.

    Raises:
        InputError: The file is damaged, names too many files, or names one that is not in its folder, also behind a
            link.
    """
    inside = os.path.join(os.path.abspath(path.parent), "")
    for file in (named := _named(path)):
        if not os.path.abspath(file).startswith(inside):
            name = os.path.relpath(file, path.parent)
            raise InputError(f"refers to '{name[:200]}' outside its folder", where=str(path), instead="put it there")
    found = _existing(named)
    check_all_below(found, path.parent)
    return [path, *found]


def files_anywhere(path: Path) -> list[Path]:
    """Return the paths of the existing files that a glTF file names, in any folder; the caller checks them.

    Raises:
        InputError: The file is damaged, or names too many files.
    """
    return _existing(_named(path))


def missing_files(path: Path) -> list[Path]:
    """Return the paths that a glTF file names and that are no files.

    Raises:
        InputError: The file is damaged, or names too many files.
    """
    return [file for file in _named(path) if not os.path.isfile(file)]


def _named(path: Path) -> list[Path]:
    told = _document(path)
    names = [entry.get("uri") for kind in ("buffers", "images") for entry in _entries(told, kind)]
    plain = [name for name in names if isinstance(name, str) and not name.startswith("data:") and "\0" not in name]
    if len(plain) > MOST_NAMES:
        what = f"names {len(plain):,} files; the limit is {MOST_NAMES:,}"
        raise InputError(what, where=str(path), instead="simplify it, or store buffers and images in one GLB file")
    return [path.parent / name for one in plain for name in dict.fromkeys((one, unquote(one), one.strip()))]


def _existing(named: list[Path]) -> list[Path]:
    """Return each existing file once, however often it is named: hashes read it whole."""
    found: dict[str, Path] = {}
    for file in named:
        if os.path.isfile(file):
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _document(path: Path) -> Mapping[str, object]:
    """Return the JSON of a file; it is refused if it is damaged, because parsers would read it in other ways."""
    check_regular(path)
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
        if len(head) == _HEADER.size and head.startswith(b"glTF"):
            text = file.read(min(_HEADER.unpack(head)[3], TEXT_BYTES))
        else:
            text = head + file.read(TEXT_BYTES)
    try:
        found = parse_json(text.decode())
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, Mapping):
        return found
    what = f"cannot be read as {path.suffix[1:].upper()}: its JSON is damaged, or has over {TEXT_BYTES >> 20} MiB"
    raise InputError(what, where=str(path), instead="export it again")


def _entries(holder: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """Return the objects of a list; any other entry becomes an empty object, so that entries keep their numbers."""
    found = holder.get(name)
    return [one if isinstance(one, Mapping) else {} for one in found] if isinstance(found, list) else []


def _size(accessor: Mapping[str, object]) -> int:
    """Return the size of an accessor's numbers [bytes]; unknown types count as the largest."""
    component = accessor.get("componentType")
    numbers = _NUMBERS.get(str(accessor.get("type")), 16)
    return _count(accessor) * numbers * (_COMPONENT.get(component, 4) if isinstance(component, int) else 4)


def _count(accessor: Mapping[str, object]) -> int:
    count = accessor.get("count")
    return count if isinstance(count, int) and count > 0 else 0


def _corners(primitive: Mapping[str, object], accessors: list[Mapping[str, object]]) -> int:
    attributes = primitive.get("attributes")
    point = attributes.get("POSITION") if isinstance(attributes, Mapping) else None
    at = primitive.get("indices", point)
    return _count(accessors[at]) if isinstance(at, int) and 0 <= at < len(accessors) else 0
