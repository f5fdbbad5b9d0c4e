"""Atomic publication of a folder: it is written beside its destination, then renamed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.atomic import sync_folder
from nimbus.datagen.files.bounded import Count, read_bytes, read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.folder_lock import LOCK_NAME
from nimbus.datagen.files.own_files import (
    check_own,
    has_links,
    is_own_name,
    make_subfolder,
    move,
    refuse_other_owner,
    remove_file,
    remove_tree,
)
from nimbus.datagen.store.folder import OTHER_OUT, check_writable, open_folder
from nimbus.datagen.store.publish import disk, replace_text

NAME = "nimbus.json"
CARD, CARD_PICTURE = "README.md", "card.png"
_SETTINGS_BYTES = 4096
CARD_MARK = "<!-- written by nimbus card -->"
"""Mark in cards written by Nimbus; only cards with this mark are replaced."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Content of ``nimbus.json`` in a published folder."""

    format: str
    key: str
    """Hash of everything that determines the content of the folder."""
    origin: dict[str, Any]
    """Source, options and versions of the export or conversion."""
    episodes: tuple[tuple[str, str], ...]
    """Id and content hash of each episode, in order."""
    files: dict[str, tuple[Count, str]]
    """Size [bytes] and SHA-256 of each file, by path relative to the folder."""


def find_published(out: Path) -> Manifest | None:
    """Return the manifest of the export in a folder; None if the folder is missing or empty.

    Raises:
        InputError: The path is a file, or the folder contains files but no export.
    """
    check_writable(out)
    if not out.exists() or not any(out.iterdir()):
        return None
    if not (out / NAME).exists():
        strangers = sorted(path.name for path in out.iterdir())
        what = f"contains '{strangers[0]}' but no {NAME}, so it is not an export of Nimbus"
        raise InputError(what, where=str(out), instead=f"{OTHER_OUT} that is new or empty")
    return read_manifest(out)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an export.

    Raises:
        InputError: The manifest cannot be read.
    """
    try:
        manifest = read_typed(Manifest, file_in(folder, NAME))
    except InputError as error:
        raise InputError(f"{NAME}: {error.what}", where=str(folder), instead=OTHER_OUT) from None
    if strange := next((name for name in manifest.files if not is_own_name(name)), None):
        what = f"{NAME}: '{strange}' is not the name of a file in this folder"
        raise InputError(what, where=str(folder), instead=OTHER_OUT)
    return manifest


def is_whole(out: Path, manifest: Manifest) -> bool:
    """Return True if every file exists with its recorded size."""
    sizes = {path: entry[0] for path, entry in manifest.files.items()}
    return all((out / path).is_file() and (out / path).stat().st_size == size for path, size in sizes.items())


def refuse_strangers(out: Path, manifest: Manifest, wanted: Manifest) -> None:
    """Check that a folder contains only an earlier export of the same dataset, so that it may be replaced.

    Args:
        out: Folder to be replaced.
        manifest: Manifest of the earlier export.
        wanted: Manifest of the new export.

    Raises:
        InputError: The folder contains a file that Nimbus did not write, or an export of another format or origin.
    """
    if manifest.format != wanted.format:
        raise InputError(f"contains an export to {manifest.format}", where=str(out), instead=OTHER_OUT)
    if any(manifest.origin.get(name) != wanted.origin.get(name) for name in ("task", "source")):
        raise InputError("contains an export of another dataset", where=str(out), instead=OTHER_OUT)
    known = {NAME, *manifest.files}
    if is_own_card(out / CARD):
        known |= {CARD, CARD_PICTURE}
    found = (path.relative_to(out).as_posix() for path in sorted(out.rglob("*")) if not path.is_dir())
    if stranger := next((path for path in found if path not in known), None):
        raise InputError(f"contains '{stranger}', which Nimbus did not write", where=str(out), instead=OTHER_OUT)


def is_own_card(path: Path) -> bool:
    """Return True if a card was written by ``nimbus card``."""
    try:
        return CARD_MARK.encode() in read_bytes(path)
    except InputError:  # a file that cannot be read was not written by Nimbus
        return False


@contextmanager
def staging(out: Path, settings: str) -> Iterator[Path]:
    """Open the staging folder of an export, for one process at a time.

    Prepared episodes of an interrupted export are kept if its settings are the same.

    Args:
        out: Folder to be published.
        settings: Hash of the settings that determine prepared episodes.

    Yields:
        Path of the staging folder, with the subfolders ``parts`` and ``tree``; ``tree`` is empty.

    Raises:
        InputError: Another process uses the folder, or it cannot be written.
    """
    stage = stage_of(out)
    check_own(stage)
    refuse_other_owner(stage)  # another user could add episodes, which would be published
    lock = open_folder(stage)
    try:
        with disk(stage):
            marker = stage / "settings"
            if has_links(stage) or _content(marker) != settings.encode():  # links in the folder were not made by Nimbus
                for path in (path for path in stage.iterdir() if path.name != LOCK_NAME):
                    remove_tree(path)
                replace_text(marker, settings)
            for stale in stage.rglob("*.tmp"):
                remove_file(stale)
            make_subfolder(stage / "parts")
            remove_tree(stage / "tree")
            (stage / "tree").mkdir()
        yield stage
    finally:
        lock.release()


def _content(marker: Path) -> bytes:
    """Return the content of the settings file; empty if the file is missing, too large or not a regular file."""
    try:
        return read_bytes(marker, limit=_SETTINGS_BYTES)
    except InputError:
        return b""


def stage_of(out: Path) -> Path:
    """Return the path of the staging folder for an export."""
    return out.with_name(f".{out.name}.partial")


def publish(stage: Path, out: Path, manifest: Manifest) -> Manifest:
    """Write the manifest, and move the staged tree to its destination; earlier content is removed.

    Args:
        stage: Folder from :func:`staging`.
        out: Folder to be published.
        manifest: Manifest without the list of files.

    Returns:
        The manifest with the list of files.

    Raises:
        StorageError: The disk is full; nothing was published.
    """
    tree, old = stage / "tree", stage / "old"
    with disk(stage):
        files = {path.relative_to(tree).as_posix(): _sealed(path) for path in sorted(tree.rglob("*")) if path.is_file()}
        manifest = Manifest(**{**vars(manifest), "files": files})
        replace_text(tree / NAME, to_json(manifest, indent=1) + "\n")
        for folder in {tree, *(path for path in tree.rglob("*") if path.is_dir())}:
            sync_folder(folder)
        remove_tree(old)
        with suppress(FileNotFoundError):
            move(out, old)
        move(tree, out)
        sync_folder(out.parent)
        remove_tree(stage)
    return manifest


def _sealed(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest
