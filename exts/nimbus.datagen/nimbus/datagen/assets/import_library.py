"""Import of sources into a prepared library; missing and changed assets are prepared separately."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from nimbus.datagen.assets.archives import is_archive, unpack
from nimbus.datagen.assets.card import Additions, read_card
from nimbus.datagen.assets.digests import digest_asset, digest_source, forget_digests
from nimbus.datagen.assets.found import FoundAsset, found_from_plain
from nimbus.datagen.assets.licenses import find_license, forget_licenses, is_restricted
from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import read_bytes, read_text
from nimbus.datagen.files.codec import from_plain, to_json
from nimbus.datagen.files.folder_lock import LOCK_NAME, lock_folder
from nimbus.datagen.files.limited_process import LimitedPool, run_limited
from nimbus.datagen.files.own_files import make_subfolder, open_shared, refuse_links, remove_file, remove_tree
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.objects.library import kind_name
from nimbus.datagen.objects.prepared.index import (
    CARD_NAME,
    INDEX_NAME,
    SHAPE_NAME,
    AssetEntry,
    AssetIndex,
    index_text,
    read_index,
)
from nimbus.datagen.version import nimbus_version, versioned_hash

IMPORT_VERSION = 9
"""Version of the preparation code; raise it when the result for any asset changes."""
LIBRARY_NAME = "library.yaml"
_DONE = "progress.jsonl"
"""Entries of an unfinished import; the next import continues from them."""
_LARGEST_LOG = 1 << 30
"""Largest size of this file [bytes]; a million entries take less."""
_UNPACKED, _MADE = ".unpacked", ".made"
_SECONDS = 240
"""CPU time limit of one asset [s]; the slowest of 60 real meshes took 94 s."""
_RECOGNITION = 600
"""CPU time limit of the search for assets in one source [s]."""
_LONGEST_NAME = 60
"""Longest name of a kind [characters]."""
_OTHER = "choose another --out"


@dataclass(frozen=True, kw_only=True)
class ImportedAssets:
    """Result of an import."""

    out: Path
    entries: tuple[AssetEntry, ...]
    """Entries of the given sources."""
    prepared: int
    """Number of assets prepared by this import; the others were up to date."""
    removed: int
    """Number of removed kinds, which these sources no longer contain."""
    kinds: int
    """Number of kinds in the whole library, including refused ones."""


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Opened source."""

    name: str
    path: Path
    root: Path
    assets: tuple[FoundAsset, ...]


@dataclass(frozen=True, kw_only=True)
class _LibraryFile:
    """Content of ``library.yaml`` that the next import uses."""

    sources: dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class _AssetTask:
    """Asset to prepare."""

    source: _Source
    asset: FoundAsset
    entry: AssetEntry
    given: dict[str, str | float]
    add: dict[str, Any]


def import_assets(
    paths: Iterable[Path],
    out: Path,
    *,
    jobs: int = 1,
    only: Sequence[str] = (),
    license: str = "",
    report: Callable[[AssetEntry, float, int, int], None] = lambda entry, seconds, number, count: None,
) -> ImportedAssets:
    """Import files, folders and archives into a library; equal inputs give equal bytes.

    Args:
        paths: Files, folders and archives, in any order.
        out: Folder of the library: new, empty, or made by an earlier import.
        jobs: Number of assets prepared in parallel.
        only: Patterns for the names or paths of the assets to import; empty for all.
        license: License of all assets of this import, instead of the licenses found in the files.
        report: Called after each prepared asset with its entry, CPU time [s], number, and the number of assets.

    Raises:
        InputError: A source contains no asset or cannot be opened, or ``out`` is not a library.
    """
    out = out.absolute()
    _check_out(out)
    forget_digests()
    forget_licenses()
    out.mkdir(parents=True, exist_ok=True)
    lock = lock_folder(out)
    try:
        for left in (_UNPACKED, _MADE):
            remove_tree(out / left)
        before = _entries_of(out)
        with _opened(sorted(set(paths), key=lambda path: path.name), out / _UNPACKED) as sources:
            tasks, kept, digests = _plan(sources, before, out, only=only, license=license)
            made = list(_prepare(tasks, out, jobs=jobs, report=report))
            return _publish(out, sources, before, [*kept, *made], len(made), digests, is_part=bool(only))
    finally:
        for left in (_UNPACKED, _MADE):
            remove_tree(out / left)
        lock.release()


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InputError("is a file; give a folder", where=f"--out {out}", instead=_OTHER)
    if out.is_dir():
        there = {path.name for path in out.iterdir()} - {LOCK_NAME, _UNPACKED, _MADE}
        if there and not there & {INDEX_NAME, _DONE}:
            what = f"contains '{min(there)}' but no {INDEX_NAME}: it is not a prepared library"
            raise InputError(what, where=f"--out {out}", instead=_OTHER)
        refuse_links(out)


def _entries_of(out: Path) -> dict[str, AssetEntry]:
    """Return the entries of a library by kind, including those of an interrupted import."""
    found = {entry.kind: entry for entry in read_index(out)[0].kinds} if (out / INDEX_NAME).exists() else {}
    if (out / _DONE).exists():
        for line in read_bytes(out / _DONE, limit=_LARGEST_LOG, follow=False).decode(errors="replace").splitlines():
            with suppress(ValueError):  # an import killed while writing leaves a partial last line
                entry = from_plain(AssetEntry, json.loads(line), strict=False)
                found[entry.kind] = entry
    return found


@contextmanager
def _opened(paths: list[Path], unpacked: Path) -> Iterator[list[_Source]]:
    """Open the sources: unpack archives, and search each source for assets."""
    names = [path.resolve().name for path in paths]
    if double := next((name for name in names if names.count(name) > 1), ""):
        raise InputError(f"two sources have the name '{double}'", where="PATH", instead="rename one of them")
    sources = []
    for number, (name, path) in enumerate(zip(names, paths, strict=True)):
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), instead="give an existing source")
        root = path.resolve() if path.is_dir() else path.resolve().parent
        if path.is_file() and is_archive(path):
            root = unpacked.resolve() / str(number)
            root.mkdir(parents=True)
            unpack(path, root)
        arguments = {"folder": root, "only": path.name if root == path.resolve().parent else ""}
        function = "nimbus.datagen.assets.layouts:recognize"
        try:
            found = run_limited(function, arguments, where=str(path), seconds=_RECOGNITION)
        except StorageError:
            raise
        except InputError as error:
            raise InputError(error.what, where=str(path), instead=error.instead) from None
        sources.append(_Source(name=name, path=path, root=root, assets=tuple(map(found_from_plain, found))))
    yield sources


def _plan(
    sources: list[_Source], before: dict[str, AssetEntry], out: Path, *, only: Sequence[str], license: str
) -> tuple[list[_AssetTask], list[AssetEntry], dict[str, list[str]]]:
    """Compare the sources with the library.

    Returns:
        The assets to prepare, the entries that are up to date, and the digests of all assets by source.
    """
    known = {(entry.source, entry.path): entry for entry in before.values()}
    taken = set(before)
    tasks, kept, digests = [], [], {source.name: [] for source in sources}
    for source, asset, path in _assets(sources, only):
        old = known.get((source.name, path))
        kind = old.kind if old else _free_name(asset.name, taken)
        taken.add(kind)
        try:
            digest, line = digest_asset(source.root, asset), ""
        except InputError as error:
            digest, line = "", error.what
        digests[source.name].append(digest)
        asset = replace(asset, refused=asset.refused or line)
        given, add = _given(out / kind / CARD_NAME, old)
        named = str(given.get("license", license or find_license(source.root, asset.path)))
        inputs = versioned_hash(
            to_json([digest, asset.refused, sorted(given.items()), add, named]).encode(), IMPORT_VERSION
        )
        if old and old.inputs == inputs and _is_whole(out / kind, old):
            kept.append(old)
            continue
        entry = AssetEntry(
            kind=kind,
            source=source.name,
            path=path,
            layout=asset.layout,
            license=named,
            is_restricted=is_restricted(named),
            inputs=inputs,
            automatic={name: value for name, value in (old.automatic if old else {}).items() if name in given}
            | ({} if "license" in given else {"license": named}),
        )
        tasks.append(_AssetTask(source=source, asset=asset, entry=entry, given=given, add=add))
    return tasks, kept, digests


def _assets(sources: list[_Source], only: Sequence[str]) -> Iterator[tuple[_Source, FoundAsset, str]]:
    """Yield the assets in a fixed order, each with a unique path."""
    left = list(only)
    for source in sources:
        paths = [asset.path for asset in source.assets]
        for asset in sorted(source.assets, key=lambda asset: (asset.path, asset.name)):
            matching = [one for one in only if fnmatch(asset.name, one) or fnmatch(asset.path, one)]
            if only and not matching:
                continue
            left = [one for one in left if one not in matching]
            yield source, asset, asset.path + (f"#{asset.name}" if paths.count(asset.path) > 1 else "")
    if left:
        raise InputError(f"no asset matches '{left[0]}'", where="--only", instead="write a pattern such as '*mug*'")


def _free_name(wish: str, taken: set[str]) -> str:
    name = kind_name(Path(wish))[:_LONGEST_NAME].rstrip("_")
    number = 2
    while (free := name if number == 2 and name not in taken else f"{name}_{number}") in taken:
        number += 1
    return free


def _given(path: Path, old: AssetEntry | None) -> tuple[dict[str, str | float], dict[str, Any]]:
    if old is None or not path.is_file():
        return {}, Additions().model_dump(mode="json")
    given, add = read_card(path, old.automatic)
    return given, add.model_dump(mode="json")


def _is_whole(folder: Path, entry: AssetEntry) -> bool:
    """Return True if the files of a kind exist; their content is checked when they are loaded."""
    return (folder / CARD_NAME).is_file() and (bool(entry.refused) or (folder / SHAPE_NAME).is_file())


def _prepare(
    tasks: list[_AssetTask], out: Path, *, jobs: int, report: Callable[[AssetEntry, float, int, int], None]
) -> Iterator[AssetEntry]:
    """Prepare assets in parallel, and move each into the library as soon as it is ready."""
    if not tasks:
        return
    jobs = min(jobs, len(tasks))
    pool = LimitedPool(jobs) if jobs > 1 else None
    call = pool.run if pool else run_limited
    make_subfolder(out / _MADE)
    try:
        log = os.fdopen(open_shared(out / _DONE), "a", encoding="utf-8")
        with ThreadPoolExecutor(jobs) as threads, log as done:
            waiting = [threads.submit(_prepare_one, call, task, out) for task in tasks]
            try:
                for number, future in enumerate(as_completed(waiting), 1):
                    entry, seconds = future.result()
                    done.write(f"{to_json(entry)}\n")
                    done.flush()
                    report(entry, seconds, number, len(tasks))
                    yield entry
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                if pool:
                    pool.close()
                raise
    finally:
        if pool:
            pool.close()


def _prepare_one(call: Callable[..., Any], task: _AssetTask, out: Path) -> tuple[AssetEntry, float]:
    """Prepare one asset; if its process crashes, the asset is refused with the reason."""
    work = out / _MADE / task.entry.kind  # of this asset alone, because its reader writes there
    target = work / "made"

    def run(asset: FoundAsset) -> Any:
        arguments = {"root": task.source.root, "given": task.given, "add": task.add, "target": target}
        arguments |= {"asset": asdict(asset), "entry": asdict(task.entry)}
        function = "nimbus.datagen.assets.prepare_asset:prepare_asset"
        work.mkdir()
        return call(function, arguments, where=asset.path, seconds=_SECONDS, writes=[work])

    try:
        made = run(task.asset)
    except StorageError:
        raise
    except InputError as error:
        remove_tree(work)
        made = run(replace(task.asset, refused=error.what))
    entry = from_plain(AssetEntry, made["entry"], strict=False)
    place = out / task.entry.kind
    remove_tree(place)
    target.rename(place)
    remove_tree(work)
    return entry, float(made["seconds"])


def _publish(
    out: Path,
    sources: list[_Source],
    before: dict[str, AssetEntry],
    entries: list[AssetEntry],
    prepared: int,
    digests: dict[str, list[str]],
    *,
    is_part: bool,
) -> ImportedAssets:
    """Write the index and the description of sources; remove kinds that the sources no longer contain."""
    names, now = {source.name for source in sources}, {entry.kind for entry in entries}
    gone = [] if is_part else [kind for kind, old in before.items() if old.source in names and kind not in now]
    kept = [old for kind, old in before.items() if kind not in now and kind not in gone]
    every = tuple(sorted([*kept, *entries], key=lambda entry: entry.kind))
    _write_library(out, sources, every, digests)
    version = f"{nimbus_version()}, import {IMPORT_VERSION}"
    text = index_text(AssetIndex(importer=version, kinds=every))
    write_atomic(out / INDEX_NAME, text, durable=True, shared=False)
    remove_file(out / _DONE)
    for kind in gone:
        remove_tree(out / kind)
    return ImportedAssets(
        out=out,
        entries=tuple(sorted(entries, key=lambda entry: entry.kind)),
        prepared=prepared,
        removed=len(gone),
        kinds=len(every),
    )


def _write_library(
    out: Path, sources: list[_Source], entries: tuple[AssetEntry, ...], digests: dict[str, list[str]]
) -> None:
    """Write ``library.yaml`` with the hash, licenses and counts of each source."""
    content: dict[str, dict[str, Any]] = {}
    with suppress(InputError, ValueError):  # a damaged file is written again
        before = parse(read_text(out / LIBRARY_NAME, follow=False), LIBRARY_NAME)
        content = from_plain(_LibraryFile, before.data).sources
    for source in sources:
        content[source.name] = {"sha256": digest_source(source.path, digests[source.name])}
    for name in list(content):
        own = [entry for entry in entries if entry.source == name]
        content[name] = {
            "sha256": content[name].get("sha256", ""),
            "licenses": sorted({entry.license or "not stated" for entry in own}),
            "accepted": sum(not entry.refused for entry in own),
            "refused": sum(bool(entry.refused) for entry in own),
        }
        if not own:
            del content[name]
    head = {"importer": f"{nimbus_version()}, import {IMPORT_VERSION}", "sources": dict(sorted(content.items()))}
    text = "# Made by nimbus assets import; index.json lists the kinds.\n" + yaml.safe_dump(head, sort_keys=False)
    write_atomic(out / LIBRARY_NAME, text, durable=False, shared=False)
