"""Local copy of a dataset in a store: descriptions are fetched at once, episodes when they are opened."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path

from nimbus.datagen.errors import InputError, StorageError, StoreAwayError
from nimbus.datagen.files.bounded import TEXT_BYTES, read_plain, read_typed
from nimbus.datagen.files.cache import writing
from nimbus.datagen.files.own_files import make_place, make_subfolder, move, open_shared, remove_file, remove_tree
from nimbus.datagen.files.scene_files import literal_path
from nimbus.datagen.store.publish import disk, replace_text
from nimbus.datagen.store.remote.address import StoreAddress, is_address, local_folder, parse_address
from nimbus.datagen.store.remote.block_memory import MEMORY
from nimbus.datagen.store.remote.cache_root import (
    COPIES,
    ORIGIN,
    SPOOLS,
    address_of,
    make_folder,
    note_origin,
    own_folder,
    remote_root,
    stands_for,
)
from nimbus.datagen.store.remote.lru import ENTRIES, ByteBudget, note_use, remove_oldest
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.objects import LARGEST_OBJECT, MissingBucketError, MissingObjectError, check_size
from nimbus.datagen.store.remote.site import resolve_address
from nimbus.datagen.store.remote.traffic import FILE_NAME as TRAFFIC_NAME
from nimbus.datagen.store.remote.traffic import TrafficLog
from nimbus.datagen.store.remote.web_store import WebStore

DESCRIPTIONS = (
    *("dataset.json", "ledger.sqlite", "certificates.json", "status.json", "nodes.json", "manifest.parquet"),
)
"""Files fetched when a dataset is opened, if they changed."""
_LEDGER, _STATUS, _LOCK = "ledger.sqlite", "status.json", "lock.json"
_WHOLE = ("nimbus.json", "meta/info.json")
"""Names that mark a dataset in another format, which is fetched as a whole."""
_ETAGS = "etags.json"
_OWN = (ORIGIN, _ETAGS, TRAFFIC_NAME, "locks", "blocks")
"""Names in a copy that are reserved for this machine; an object with such a name could redirect the copy."""
_RENAME = "rename the object in the store"
_LARGEST_TABLE = 1 << 34
"""Largest ledger or manifest [bytes]; an episode takes 5 kB of a ledger."""
_MOST_FILES = 1_000_000
"""Largest number of files of a dataset in another format."""
AHEAD = 4
"""Number of files fetched while the previous one is read."""
BUDGET, TRAFFIC = ByteBudget(), TrafficLog()


@cache
def open_store(address: str) -> ObjectStore | WebStore:
    """Open the store of an address, once per process."""
    parsed = parse_address(address)
    return WebStore(parsed) if parsed.is_read_only else ObjectStore(parsed)


def copy_folder(address: StoreAddress) -> Path:
    """Return the local folder for the downloaded files of a dataset."""
    return remote_root() / COPIES / address.key


def spool_folder(address: StoreAddress) -> Path:
    """Return the folder in which a dataset is made on this machine."""
    return remote_root() / SPOOLS / address.key


def open_dataset(text: str, *, has_ledger: bool = True, may_be_empty: bool = False) -> Path:
    """Return the folder of a dataset, given as a path or an address.

    Args:
        text: A path, or an address such as ``s3://bucket/demos``.
        has_ledger: Fetch the ledger as well; False if the manifest suffices, which is fifty times smaller.
        may_be_empty: Accept an address at which a run has published its status, and no episode yet.

    Raises:
        InputError: The address is invalid, or there is no dataset, bucket or permission.
        StoreAwayError: The store does not answer.
    """
    if not is_address(text):
        return literal_path(Path(text))
    address = resolve_address(text)
    if folder := local_folder(address):
        return folder
    copy = copy_folder(address)
    note_origin(copy, str(address))
    with entry_lock(copy, "open"):
        _refresh(copy, open_store(str(address)), has_ledger=has_ledger, may_be_empty=may_be_empty)
    return copy


def local(path: Path) -> Path:
    """Return a path at which a dataset's file can be opened; a file of a store is fetched.

    Args:
        path: Path in a dataset's folder; any other path is returned unchanged.

    Raises:
        InputError: The store has no such object.
        StoreAwayError: The store does not answer.
    """
    found = stands_for(path)
    if found is None:
        return path
    folder, address = found
    name = path.relative_to(folder).as_posix()
    copy = copy_folder(parse_address(address))
    for place in (path, copy / name):
        with suppress(OSError):
            size = os.stat(place).st_size
            note_use(place)
            TRAFFIC.note(copy, hits=1, bytes_here=size)
            return place
    note_origin(copy, address)  # the copy of a spool is created when its first file is sent or read
    return _fetch(copy, name, open_store(address))


def forget_local(path: Path) -> None:
    """Remove the local copy of a store's file, so that it is read from the store next; other files stay."""
    if (found := stands_for(path)) and found[0].parent.name == COPIES:
        remove_file(path)


def is_remote(folder: Path) -> bool:
    """Return True if a folder represents a dataset in a store."""
    return stands_for(folder) is not None


def note_sent(folder: Path, objects: Sequence[tuple[str, int]]) -> None:
    """Count objects that were sent to the store of a folder, by name and size [bytes], for the report."""
    address = address_of(folder)
    copy = copy_folder(parse_address(address))
    note_origin(copy, address)  # nothing may have been read yet
    TRAFFIC.note(copy, objects_sent=len(objects), bytes_sent=sum(size for _, size in objects))


def names_in(folder: Path, kind: str) -> list[str]:
    """List the files of a dataset's folder, such as ``episodes``, sorted, relative to the dataset.

    Raises:
        InputError: The store gives no permission to list.
        StoreAwayError: The store does not answer.
    """
    if found := stands_for(folder):
        store = open_store(found[1])
        if store.address.is_read_only:
            return []  # plain web servers cannot list their files
        return sorted(name for name, _ in store.names(kind))
    return sorted(path.relative_to(folder).as_posix() for path in (folder / kind).glob("*"))


def fetched_ahead(paths: Iterable[Path], *, count: int = AHEAD) -> Iterator[Path]:
    """Yield paths in order while the next ones are fetched from a store; a missing file raises when it is opened."""
    rest = iter(paths)
    first = next(rest, None)
    if first is None:
        return
    if not is_remote(first):
        yield first
        yield from rest
        return
    with ThreadPoolExecutor(count) as pool:
        waiting: list[tuple[Path, Future[None]]] = [
            (path, pool.submit(_try, path)) for path in (first, *islice(rest, count))
        ]
        while waiting:
            path, done = waiting.pop(0)
            done.result()
            if (following := next(rest, None)) is not None:
                waiting.append((following, pool.submit(_try, following)))
            yield path


def keep_entry(copy: Path, name: str, path: Path) -> None:
    """Move a file that is now in the store into its dataset's copy.

    Raises:
        StorageError: The disk of the cache is full.
    """
    with writing(copy):
        make_folder(copy)
        target = make_place(copy, name)
        size = path.stat().st_size
        move(path, target)
    BUDGET.add(size)


def _try(path: Path) -> None:
    with suppress(InputError):
        local(path)


def _fetch(copy: Path, name: str, store: ObjectStore | WebStore) -> Path:
    """Fetch a file once for all callers; if the disk is full, fetch it into a private folder of this process."""
    target = copy / name
    with entry_lock(copy, name):
        with suppress(OSError):
            size = os.stat(target).st_size
            TRAFFIC.note(copy, hits=1, bytes_here=size)
            return target
        try:
            return _download(store, name, copy)
        except StoreAwayError:
            raise
        except StorageError:  # the disk is full
            remove_oldest(0)
            try:
                return _download(store, name, copy)
            except StoreAwayError:
                raise
            except StorageError:
                return _download(store, name, copy, aside=f"{copy.name}-{name.replace('/', '-')}")


def _download(
    store: ObjectStore | WebStore, name: str, copy: Path, *, aside: str = "", limit: int = LARGEST_OBJECT
) -> Path:
    """Fetch a file into a copy, or under another name into this process's private folder."""
    with disk(copy):
        target = make_place(_aside(), aside) if aside else _place_in_copy(copy, name)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        stat = store.download(name, part, limit=limit)
        move(part, target)
    finally:
        remove_file(part)
    TRAFFIC.note(copy, misses=1, bytes_fetched=stat.byte_count)
    BUDGET.add(stat.byte_count)
    return target


def _place_in_copy(copy: Path, name: str) -> Path:
    """Make the local path of an object in a copy.

    Raises:
        InputError: The name is reserved, or leaves the folder.
    """
    if name.split("/")[0].casefold() in _OWN:  # some disks do not distinguish capital letters
        raise InputError(
            f"an object is named {name!a}, which is not part of a dataset", where=str(copy), instead=_RENAME
        )
    return make_place(copy, name)


@cache
def _aside() -> Path:
    return own_folder("aside")


@contextmanager
def entry_lock(copy: Path, name: str) -> Iterator[None]:
    """Lock a name for one thread of one process."""
    make_subfolder(copy / "locks")
    path = copy / "locks" / hashlib.sha256(name.encode()).hexdigest()[:3]
    descriptor = open_shared(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _refresh(copy: Path, store: ObjectStore | WebStore, *, has_ledger: bool, may_be_empty: bool) -> None:
    """Fetch changed descriptions; drop everything if another dataset is at the address."""
    known = _known(copy)
    before = _identity(copy)
    with ThreadPoolExecutor(len(DESCRIPTIONS)) as pool:
        stats = dict(zip(DESCRIPTIONS, pool.map(store.stat, DESCRIPTIONS), strict=True))
    for name, stat in stats.items():
        if stat and name.endswith(".json"):
            check_size(stat.byte_count, TEXT_BYTES, where=store.place(name))
    found = {name: stat.etag for name, stat in stats.items() if stat}
    if not {"dataset.json", "manifest.parquet", *([_STATUS] if may_be_empty else [])} & set(found):
        _fetch_whole(copy, store)
        return
    names = DESCRIPTIONS
    if not has_ledger and {"dataset.json", "manifest.parquet"} <= set(found):
        names = tuple(name for name in names if name != _LEDGER)
        found[_LEDGER] = known.get(_LEDGER, "")
    for name in names:
        if name not in found:
            remove_file(copy / name)
        elif known.get(name) != found[name] or not (copy / name).exists():
            part = copy / f".{name}.part"
            with suppress(MissingObjectError):
                store.download(name, part, limit=TEXT_BYTES if name.endswith(".json") else _most_bytes(copy))
                move(part, copy / name)
    if before and before != _identity(copy):
        MEMORY.clear()
        for kind in ENTRIES:
            remove_tree(copy / kind)
    replace_text(copy / _ETAGS, json.dumps(found))


def _most_bytes(copy: Path) -> int:
    """Return the largest accepted size of a ledger or manifest [bytes]: 16 GiB, or half of the free disk."""
    return min(_LARGEST_TABLE, _half_disk(copy))


def _half_disk(copy: Path) -> int:
    """Return half of the free disk [bytes]."""
    return shutil.disk_usage(copy).free // 2


def _fetch_whole(copy: Path, store: ObjectStore | WebStore) -> None:
    """Fetch every file of a dataset in another format.

    Raises:
        InputError: There is no dataset at the address.
    """
    if not any(store.stat(name) for name in _WHOLE):
        if store.stat(_LOCK):
            what = "a run has begun here, and has published no episode yet"
            raise InputError(what, where=str(store.address), instead="try again in a minute")
        try:
            next(store.names(), None)  # only a listing shows that there is no bucket
        except (MissingBucketError, StoreAwayError):
            raise
        except InputError:
            pass  # it is a web server, or there is no permission to list
        instead = "give the address of a run's --out, or of an export"
        raise InputError("there is no dataset here", where=str(store.address), instead=instead)
    for name, size in _missing_files(copy, store):
        _download(store, name, copy, limit=size)


def _missing_files(copy: Path, store: ObjectStore | WebStore) -> list[tuple[str, int]]:
    """List the files of a dataset in another format that its copy lacks, with sizes [bytes].

    Raises:
        InputError: The name of a file is not valid, or all files are too many or too large for this machine.
    """
    missing: list[tuple[str, int]] = []
    most_bytes, total = _half_disk(copy), 0
    for name, size in store.names():
        if any(part in ("", ".", "..") for part in name.split("/")):
            raise InputError(f"{name!a} is not a valid path in a dataset", where=str(store.address), instead=_RENAME)
        target = _place_in_copy(copy, name)
        if target.exists() and target.stat().st_size == size:
            continue
        missing.append((name, size))
        total += size
        if len(missing) > _MOST_FILES or total > most_bytes:
            what = f"has more than {_MOST_FILES} files, or more than {most_bytes} bytes, half of the free disk"
            instead = "set NIMBUS_CACHE to a larger disk, or give the address of one dataset"
            raise InputError(what, where=str(store.address), instead=instead)
    return missing


def _identity(copy: Path) -> str:
    """Return a text that identifies a dataset; empty if there is none."""
    with suppress(InputError):
        told = read_plain(copy / "dataset.json")
        if isinstance(told, dict):
            return json.dumps([told.get(key) for key in ("task", "task_hash", "seed", "inputs")], sort_keys=True)
    return _known(copy).get("manifest.parquet", "")


def _known(copy: Path) -> dict[str, str]:
    """Read the versions of the local descriptions; none if the file is damaged."""
    try:
        return read_typed(dict[str, str], copy / _ETAGS)
    except InputError:
        return {}
