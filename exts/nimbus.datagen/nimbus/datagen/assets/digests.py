"""Hashes of everything from which an asset is made: meshes, and the materials and textures that they refer to."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from nimbus.datagen.assets.found import FoundAsset
from nimbus.datagen.assets.source_files import hash_file, read_source
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import files_below
from nimbus.datagen.files.bounded import TEXT_BYTES
from nimbus.datagen.files.codec import parse_json, to_json
from nimbus.datagen.objects.imported.read import USD_SUFFIXES
from nimbus.datagen.objects.imported.roots import below

T = TypeVar("T", bytes, str)
_IN_USD = (*USD_SUFFIXES, ".png", ".jpg", ".jpeg", ".tga")
_MOST_BESIDE = 2000
"""Largest number of files that are hashed together with a USD file in the same folder."""
_MOST_REFERENCES = 2000
"""Largest number of files that a mesh or a material file may name."""


def digest_asset(root: Path, asset: FoundAsset) -> str:
    """Hash the parts of an asset, and the content of every file that they refer to.

    Raises:
        InputError: A file cannot be read, or is too large.
    """
    digest = hashlib.sha256(to_json(asdict(asset)).encode())
    files = dict.fromkeys(name for part in asset.parts for name in (part.mesh, part.texture) if name)
    for name in list(files):
        files |= dict.fromkeys(_references(root, name))
    for name in files:
        digest.update(f"{name} {_digest(root, root / name)}\n".encode())
    return digest.hexdigest()


def forget_digests() -> None:
    """Clear the cache: files change between imports, and archives are unpacked to the same paths."""
    _digest.cache_clear()
    _beside.cache_clear()


@lru_cache(maxsize=20_000)
def _digest(root: Path, path: Path) -> str:
    return hashlib.sha256(read_source(root, path)).hexdigest()


def _references(root: Path, name: str) -> Iterator[str]:
    """Yield the files below the root that a mesh refers to."""
    path = root / name
    suffix = path.suffix.lower()
    if suffix == ".obj":
        content = read_source(root, path)
        for library in _distinct(re.findall(rb"(?m)^[ \t]*mtllib[ \t]+(.+)$", content), path):
            if found := below(root, path.parent, library.strip().decode(errors="replace")):
                yield found
                yield from _textures(root, root / found)
    elif suffix in (".gltf", ".glb"):
        for uri in _distinct(_uris(root, path), path):
            if found := below(root, path.parent, uri):
                yield found
    elif suffix == ".ply":
        head = read_source(root, path)[:65536]
        for picture in _distinct(re.findall(rb"(?m)^comment TextureFile (.+?)\r?$", head), path):
            if found := below(root, path.parent, picture.decode(errors="replace")):
                yield found
    elif suffix in USD_SUFFIXES:
        yield from _beside(root, path.parent)


@lru_cache(maxsize=256)
def _beside(root: Path, folder: Path) -> tuple[str, ...]:
    """Return the files that a stage in a folder may refer to; the stage itself is parsed only in a child process."""
    found = [file for file in files_below(folder, root) if file.suffix.lower() in _IN_USD]
    return tuple(file.relative_to(root).as_posix() for file in found[:_MOST_BESIDE])


def _textures(root: Path, path: Path) -> Iterator[str]:
    lines = re.findall(rb"(?mi)^[ \t]*(?:map_\w+|bump|norm|disp)[ \t]+(.+)$", read_source(root, path, limit=TEXT_BYTES))
    for line in _distinct(lines, path):
        text = line.strip().decode(errors="replace")
        for name in (text, *text.split()[-1:]):
            if found := below(root, path.parent, name):
                yield found
                break


def _distinct(names: list[T], path: Path) -> list[T]:
    """Return each reference of a file once.

    Raises:
        InputError: They are too many.
    """
    found = list(dict.fromkeys(names))
    if len(found) > _MOST_REFERENCES:
        what = f"names {len(found)} files; the limit is {_MOST_REFERENCES}"
        raise InputError(what, where=str(path), instead="split it into several meshes")
    return found


def _uris(root: Path, path: Path) -> list[str]:
    content = read_source(root, path)
    if content[:4] == b"glTF" and len(content) >= 20:
        content = content[20 : 20 + struct.unpack("<I", content[12:16])[0]]
    try:
        content = parse_json(content.decode(errors="replace"))
        items = [*content.get("buffers", ()), *content.get("images", ())]
        uris = [item.get("uri", "") for item in items]
    except (ValueError, AttributeError, TypeError):
        return []
    return [uri for uri in uris if isinstance(uri, str) and uri and not uri.startswith("data:")]


def digest_source(path: Path, digests: list[str]) -> str:
    """Hash a source: the content of a file, or the digests of the assets in a folder.

    Raises:
        InputError: The file cannot be read.
    """
    if path.is_file():
        return hash_file(path)
    return hashlib.sha256(" ".join(sorted(digests)).encode()).hexdigest()
