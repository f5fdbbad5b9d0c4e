"""Folders of this machine that stand for datasets in a store, and how a path in them is recognized."""

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
"""Folder of what was read: entries that may go at any time."""
SPOOLS = "spools"
"""Folder of what was made here and is not in the store yet."""
ORIGIN = "origin.json"


@dataclass(frozen=True, kw_only=True)
class OriginNote:
    """Content of ``origin.json``: address of the dataset that a folder stands for."""

    address: str


def remote_root() -> Path:
    """Return the folder of all of them, made when it is not there; one of this process alone where it cannot be."""
    return _root(os.environ.get("NIMBUS_CACHE", ""))


def own_folder(name: str) -> Path:
    """Make a folder of this process alone, which goes with it."""
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
    """Make the folder of a dataset, ``copies/KEY`` or ``spools/KEY``, unless it is there."""
    if not folder.parent.parent.is_dir():  # removed by its user since this process looked
        _root.cache_clear()
        remote_root()
    make_subfolder(folder.parent)
    make_subfolder(folder)


def note_origin(folder: Path, address: str) -> None:
    """Let a folder stand for a dataset in a store."""
    make_folder(folder)
    if not (folder / ORIGIN).exists():
        write_atomic(folder / ORIGIN, to_json(OriginNote(address=address)) + "\n", durable=True, shared=True)


def stands_for(path: Path) -> tuple[Path, str] | None:
    """Find the folder that a path lies in, and the address that it stands for; None for any other path.

    Only folders below this user's cache stand for a dataset: no dataset of others can name an address.
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
