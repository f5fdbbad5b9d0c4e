"""Shared libraries of the installed packages are not searched for in the current folder, which may be foreign."""

from __future__ import annotations

import mmap
import os
import struct
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("libraries of other systems have another format", allow_module_level=True)

KNOWN = {
    "nvidia/cusparselt/": "PyTorch loads it; nimbus.datagen.files.root_imports imports PyTorch in the root folder",
    "triton/plugins/": "plug-ins of Triton's compiler, which nothing loads",
}
"""Folders of packages with such libraries, and the reasons why the current folder is not searched nevertheless."""
SITE = Path(sysconfig.get_paths()["platlib"])
SITES = [SITE]
if python := os.environ.get("NIMBUS_TORCH_PYTHON", ""):
    SITES += Path(python).absolute().parents[1].glob("lib/python3*/site-packages")
_LOAD, _DYNAMIC = 1, 2
"""Kinds of program headers."""
_END, _STRINGS, _RPATH, _RUNPATH = 0, 5, 15, 29
"""Tags of the dynamic section."""


def search_paths(path: Path) -> list[str]:
    """Return the entries of a library's search paths for the libraries that it loads; 64-bit, little-endian ELF."""
    with path.open("rb") as file:
        if file.read(6) != b"\x7fELF\x02\x01":
            return []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return list(_entries(content))


def _entries(content: mmap.mmap) -> Iterator[str]:
    (first,), (size, count) = struct.unpack_from("<Q", content, 32), struct.unpack_from("<HH", content, 54)
    headers = [struct.unpack_from("<IIQQQQ", content, first + size * number) for number in range(count)]
    for kind, _, begin, _, _, length in headers:
        if kind != _DYNAMIC:
            continue
        tags: dict[int, list[int]] = {}
        for at in range(begin, begin + length, 16):
            tag, value = struct.unpack_from("<qQ", content, at)
            if tag == _END:
                break
            tags.setdefault(tag, []).append(value)
        for value in (*tags.get(_RPATH, ()), *tags.get(_RUNPATH, ())):
            (strings,) = tags[_STRINGS]
            text = next(
                strings - address + offset + value
                for kind, _, offset, address, _, length in headers
                if kind == _LOAD and address <= strings < address + length
            )
            yield from content[text : content.find(b"\0", text)].decode().split(":")


def is_relative(entry: str) -> bool:
    """Return True for an entry that the loader looks for in the current folder; an empty one is this folder."""
    return not entry.startswith(("/", "$ORIGIN", "${ORIGIN}"))


def libraries(site: Path) -> Iterator[Path]:
    """Yield the shared libraries and the programs of the installed packages."""
    for folder, _, names in os.walk(site):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and (".so" in name or os.access(path, os.X_OK)):
                yield path


@pytest.mark.parametrize("site", SITES, ids=str)
def test_no_library_is_searched_in_the_current_folder(site: Path):
    found = {path.relative_to(site).as_posix(): search_paths(path) for path in libraries(site)}
    assert any(found.values())
    relative = [f"{path}: {entries}" for path, entries in found.items() if any(map(is_relative, entries))]
    assert [line for line in relative if not line.startswith(tuple(KNOWN))] == []


@pytest.mark.parametrize("entry", [b"", b"lib", b"./"])
def test_relative_entries_are_found(tmp_path: Path, entry: bytes):
    path = next(path for path in libraries(SITE) if search_paths(path)[:1] == ["$ORIGIN"])
    end = b":" if entry == b"" else b"\0"
    assert len(changed := entry + end) <= len(b"$ORIGIN")
    (tmp_path / "library.so").write_bytes(path.read_bytes().replace(b"$ORIGIN", changed.ljust(len(b"$ORIGIN"), b"\0")))
    assert any(map(is_relative, search_paths(tmp_path / "library.so")))
