"""Local folders that represent datasets in a store, and the mapping from paths in them to addresses."""

from __future__ import annotations

import atexit
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import read_typed
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import make_subfolder

ROOT = "remote"
COPIES = "copies"
"""Folder of downloaded data, whose entries may be removed at any time."""
SPOOLS = "spools"
"""Folder of data that were made here and are not yet in the store."""
ORIGIN = "origin.json"


@dataclass(frozen=True, kw_only=True)
class OriginNote:
    """Content of ``origin.json``: address of the dataset that a folder represents."""

    address: str


def remote_root() -> Path:
    """Return the root of these folders, created if missing; if that fails, a private folder of this process."""
    return _root(os.environ.get("NIMBUS_CACHE", ""))


def own_folder(name: str) -> Path:
    """Make a private folder of this process, removed at its end."""
    place = tempfile.TemporaryDirectory(prefix="nimbus-", ignore_cleanup_errors=True)
    atexit.register(place.cleanup)
    folder = Path(place.name) / name
    make_subfolder(folder)
    return folder


@cache
def _root(_: str) -> Path:
    try:
        return cache_folder(ROOT).absolute()
    except InputError:
        return own_folder(ROOT)


def make_folder(folder: Path) -> None:
    """Make the folder of a dataset, ``copies/KEY`` or ``spools/KEY``, if it is missing."""
    if not folder.parent.parent.is_dir():  # the user removed it since this process looked
        _root.cache_clear()
        remote_root()
    make_subfolder(folder.parent)
    make_subfolder(folder)


def note_origin(folder: Path, address: str) -> None:
    """Mark a folder as representing a dataset in a store."""
    make_folder(folder)
    if not (folder / ORIGIN).exists():
        write_atomic(folder / ORIGIN, to_json(OriginNote(address=address)) + "\n", durable=True, shared=True)


def stands_for(path: Path) -> tuple[Path, str] | None:
    """Find the folder that contains a path, and the address that it represents; None for any other path.

    Only folders below this user's cache represent a dataset, so that a third-party dataset cannot name an address.
    """
    text = os.path.abspath(path)
    if f"{os.sep}{ROOT}{os.sep}" not in text:
        return None
    own = str(remote_root())
    if not text.startswith(own + os.sep):
        return None
    parts = text[len(own) + 1 :].split(os.sep)
    if len(parts) < 2 or parts[0] not in (COPIES, SPOOLS):
        return None
    folder = Path(own, *parts[:2])
    note = folder / ORIGIN
    return (folder, read_typed(OriginNote, note).address) if note.is_file() else None


def address_of(folder: Path) -> str:
    """Return the address that a folder represents; the folder's own path if it represents none."""
    found = stands_for(folder)
    return found[1] if found else str(folder)
