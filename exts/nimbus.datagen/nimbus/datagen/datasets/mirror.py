"""Copy of a dataset between folders and stores, with an estimate of the cost; existing objects are skipped."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_dense, check_regular
from nimbus.datagen.files.own_files import make_subfolder
from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.remote.address import StoreAddress, is_address
from nimbus.datagen.store.remote.block_peers import peers
from nimbus.datagen.store.remote.blocks import BLOCK, ObjectBlocks
from nimbus.datagen.store.remote.cache_root import remote_root
from nimbus.datagen.store.remote.multipart import LARGE, create_large
from nimbus.datagen.store.remote.object_store import ObjectStore, check_creates_once
from nimbus.datagen.store.remote.site import resolve_address
from nimbus.datagen.store.remote.traffic import EGRESS_PRICES
from nimbus.datagen.store.remote.working_copy import (
    DESCRIPTIONS,
    address_of,
    is_remote,
    local,
    open_dataset,
    open_store,
)
from nimbus.datagen.store.remote.writer_lock import BEAT, WriterLock, new_owner

_THREADS = 8
"""Number of concurrent lookups or copies."""
_LAST = (LEDGER, "dataset.json", "manifest.parquet")
"""Descriptions that are copied last, after the files that they name."""


@dataclass(frozen=True, kw_only=True)
class MirrorPlan:
    """Plan of a copy: the missing objects, and the price."""

    names: tuple[tuple[str, int], ...]
    """Name and size [bytes] of each missing object."""
    there: int
    """Number of objects that exist in the target."""
    there_bytes: int
    """Total size of these objects [bytes]."""
    price_per_gb: float
    """List price of traffic from the source to the internet [USD per 10⁹ bytes]."""

    @property
    def byte_count(self) -> int:
        """Total size of the objects to copy [bytes]."""
        return sum(size for _, size in self.names)

    @property
    def cost(self) -> float:
        """Price of the traffic from the source [USD]."""
        return self.byte_count / 1e9 * self.price_per_gb


class Mirror:
    """Copies a dataset from one folder or store to another.

    Args:
        source: Folder or address of the dataset, or of shards.
        target: Folder or address of the copy.

    Raises:
        InputError: There is no dataset, or the target cannot be written.
        StoreAwayError: A store does not answer.
    """

    def __init__(self, source: str, target: str) -> None:
        self.folder = open_dataset(source)
        self._paths = DatasetPaths(self.folder)
        if not any((self.folder / name).is_file() for name in ("dataset.json", "manifest.parquet")):
            raise InputError("there is no dataset here", where=source, instead="give the --out of a run, or shards")
        is_url = is_address(target)
        place = Path(target).absolute().as_posix().strip("/")
        self.target = resolve_address(target) if is_url else StoreAddress(scheme="file", bucket="", prefix=place)
        self._store = ObjectStore(self.target)
        if str(self.target) == address_of(self.folder):
            raise InputError("source and target are the same", where=target, instead="give another target")
        check_creates_once(self._store)
        # Notes on uploads are separate for each target, because an upload can only continue in the same store.
        self._notes = remote_root() / "multipart" / hashlib.sha256(str(self.target).encode()).hexdigest()[:16]

    def plan(self) -> MirrorPlan:
        """Look up which objects exist in the target, and return the plan.

        Raises:
            InputError: An object in the target has the same name but another size.
            StoreAwayError: A store does not answer.
        """
        wanted = list(_objects(self.folder))
        with ThreadPoolExecutor(_THREADS) as pool:
            stats = list(pool.map(lambda entry: self._store.stat(entry[0]), wanted))
        for name in (*DESCRIPTIONS, *(name for name, _ in wanted)):
            self._paths.path(name)  # a link to a private file would publish that file
        check_dense(self.folder, (path for name, _ in wanted if (path := self._paths.path(name)).exists()))
        names: list[tuple[str, int]] = []
        there = there_bytes = 0
        for (name, size), stat in zip(wanted, stats, strict=True):
            if stat is None:
                names.append((name, size))
            elif stat.byte_count != size:
                instead = "give another target; existing objects are never overwritten"
                raise InputError(
                    "the target has another object with this name", where=self._store.place(name), instead=instead
                )
            else:
                there, there_bytes = there + 1, there_bytes + size
        scheme = resolve_address(address_of(self.folder)).scheme if is_remote(self.folder) else "file"
        price = EGRESS_PRICES.get(scheme, 0.0)
        return MirrorPlan(names=tuple(names), there=there, there_bytes=there_bytes, price_per_gb=price)

    def copy(self, plan: MirrorPlan, report: Callable[[int], None]) -> None:
        """Copy the planned objects, then the descriptions. After an interruption, a new plan contains the rest.

        Args:
            plan: Plan from :meth:`plan`.
            report: Called with the number of remaining objects.

        Raises:
            InputError: Another run writes to the target.
            StoreAwayError: A store does not answer.
        """
        lock = WriterLock(self._store, new_owner())
        lock.take()
        try:
            self._copy_all(plan.names, lock, report)
            lock.renew()  # this process may have been suspended
            for name in (*(name for name in DESCRIPTIONS if name not in _LAST), *_LAST):
                if (path := self._paths.path(name)).is_file():
                    self._store.replace(name, path)
        finally:
            lock.free()

    def _copy_all(self, entries: tuple[tuple[str, int], ...], lock: WriterLock, report: Callable[[int], None]) -> None:
        waiting, left, beat = iter(entries), len(entries), time.monotonic()
        with ThreadPoolExecutor(_THREADS) as pool:
            # Only a few copies are submitted ahead: after an error, the pool finishes all submitted ones.
            copies = {pool.submit(self._copy, entry) for entry in islice(waiting, 2 * _THREADS)}
            while copies:
                done, copies = wait(copies, timeout=BEAT, return_when=FIRST_COMPLETED)
                for copied in done:
                    copied.result()
                    left -= 1
                    report(left)
                copies |= {pool.submit(self._copy, entry) for entry in islice(waiting, len(done))}
                if time.monotonic() - beat > BEAT:  # a lock that is not renewed for 25 s expires
                    lock.renew()
                    beat = time.monotonic()

    def _copy(self, entry: tuple[str, int]) -> None:
        name, size = entry
        with ExitStack() as stack:
            path = self._paths.path(name)
            if is_remote(self.folder) and not path.exists():  # not through the cache: the object is read only once
                place = stack.enter_context(make_owned("nimbus-copy-"))
                path = place / "object"
                open_store(address_of(self.folder)).download(name, path)
            if (found := check_regular(path)) != size:
                what, instead = (
                    f"the file has {found} bytes; the ledger records {size}",
                    "run 'nimbus verify' on the dataset",
                )
                raise InputError(what, where=name, instead=instead)
            if size > LARGE:
                make_subfolder(self._notes.parent)
                create_large(self._store, name, path, notes=self._notes)
            else:
                self._store.create(name, path)


def warm(folder: Path, report: Callable[[int], None]) -> int:
    """Fetch all files of a dataset from its store into the cache; return their number.

    If nodes pool their caches, files are fetched as blocks, and each node keeps only its own blocks.

    Args:
        folder: Working copy of the dataset.
        report: Called with the number of remaining files.

    Raises:
        InputError: An object is missing.
        StoreAwayError: The store does not answer.
    """
    wanted = list(_objects(folder))
    is_pooled, address = peers().is_pool, address_of(folder)

    def fetch(entry: tuple[str, int]) -> None:
        name, size = entry
        if not is_pooled:
            local(folder / name)
            return
        blocks = ObjectBlocks(address, name)  # a node keeps only its own blocks
        for number in range(-(-size // BLOCK)):
            blocks.read(number, size)

    with ThreadPoolExecutor(_THREADS) as pool:
        for number, _ in enumerate(pool.map(fetch, wanted)):
            report(len(wanted) - number - 1)
    return len(wanted)


def _objects(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and the size [bytes] of each file; the HDF5 file of an episode follows its videos."""
    if not (folder / LEDGER).exists():
        from nimbus.datagen.datasets.training.sharded import ShardManifest

        yield from ShardManifest(folder).shard_sizes()
        return
    ledger = Ledger(folder, read_only=True)
    try:
        for row in ledger.walk_attempts():
            if row.path:
                yield from row.files.items()
            if row.failure:
                yield row.failure.path, row.failure.byte_count
    finally:
        ledger.close()
