"""Reading of objects with the library obstore: in whole or in part, with limits, and one-line errors."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.files.bounded import TEXT_BYTES, check_regular
from nimbus.datagen.files.installation import add_extra
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.publish import write_object
from nimbus.datagen.store.remote import objects
from nimbus.datagen.store.remote.address import StoreAddress, local_folder
from nimbus.datagen.store.remote.objects import (
    LARGEST_OBJECT,
    MissingObjectError,
    ObjectStat,
    check_size,
    denied_access,
    missing_bucket,
    too_many_names,
)
from nimbus.datagen.store.remote.store_client import store_client
from nimbus.datagen.store.remote.watched_calls import repeated, watched
from nimbus.datagen.store.remote.web_requests import LATER, OBJECT_SECONDS

_BLOCK = 4 << 20
"""Memory for an object being written to a file [bytes]."""
_CALLERS: list[int] = []
"""Id of the process that first called a store and thereby started the library's threads; empty before that."""
T = TypeVar("T")


class LibraryStore:
    """Objects below one address, by calls of the library. Thread-safe; forked processes cannot use it.

    In a folder (``file://``), no object is a link out of it, a pipe or a device: calls for such a name raise an
    ``InputError``.

    Args:
        address: Address of the objects.

    Raises:
        InputError: The extra is not installed, or the credentials that the store needs are missing.
    """

    def __init__(self, address: StoreAddress) -> None:
        if importlib.util.find_spec("obstore") is None:
            raise InputError("object stores need an extra", where=str(address), instead=add_extra("store"))
        self.address = address
        self.library: Any = store_client(address)
        folder = local_folder(address)
        self._paths = DatasetPaths(folder) if folder else None

    def read(self, name: str) -> bytes:
        """Read a whole object of at most 64 MiB; see :meth:`ObjectStore.read`."""
        return self._read(name, None, most=TEXT_BYTES)

    def read_range(self, name: str, start: int, byte_count: int, *, least: int | None = None) -> bytes:
        """Read bytes ``[start, start + byte_count)`` of an object; see :meth:`ObjectStore.read_range`."""
        found = self._read(name, {"range": (start, start + byte_count)}, most=byte_count)
        if len(found) < (byte_count if least is None else least):
            raise StoreAwayError(f"returned {len(found)} of {byte_count} bytes", where=self.place(name))
        return found

    def _read(self, name: str, options: dict[str, Any] | None, *, most: int) -> bytes:
        """Read an answer of at most a number of bytes; a longer one ends the connection."""
        import obstore

        request: Any = obstore.get_async

        async def once() -> bytes:
            answer = await request(self.library, name, options=options)
            declared = most if options else _stat(answer.meta).byte_count
            check_size(declared, most, where=self.place(name))
            parts: list[bytes] = []
            total = 0
            async for block in answer.stream(min_chunk_size=_BLOCK):
                if (total := total + len(block)) > declared:
                    raise StoreAwayError(f"returned more than {declared} bytes", where=self.place(name))
                parts.append(block)
            return b"".join(parts)

        with self.calling(name):
            return repeated(lambda: watched(once, where=self.place(name)))

    def _awaited(self, name: str, stream: AsyncIterator[T]) -> Iterator[T]:
        """Yield what a stream of the library yields, for a limited time."""
        end = time.monotonic() + OBJECT_SECONDS
        while True:
            if time.monotonic() > end:
                raise StoreAwayError("the store is too slow", where=self.place(name), instead=LATER)
            with self.calling(name):
                found = watched(lambda: _next(stream), where=self.place(name))
            if found is None:
                return
            yield found

    def download(self, name: str, path: Path, *, limit: int = LARGEST_OBJECT) -> ObjectStat:
        """Write an object to a new file; see :meth:`ObjectStore.download`."""
        import obstore

        def once() -> ObjectStat:
            with self.calling(name):
                found: Any = watched(lambda: obstore.get_async(self.library, name), where=self.place(name))
            stat = _stat(found.meta)
            check_size(stat.byte_count, limit, where=self.place(name))
            blocks = self._awaited(name, found.stream(min_chunk_size=_BLOCK))
            write_object(path, blocks, stat.byte_count, where=self.place(name))
            return stat

        return repeated(once)

    def stat(self, name: str) -> ObjectStat | None:
        """Return size and version of an object; see :meth:`ObjectStore.stat`."""
        import obstore

        def once() -> ObjectStat:
            with self.calling(name):
                return _stat(watched(lambda: obstore.head_async(self.library, name), where=self.place(name)))

        try:
            return repeated(once)
        except MissingObjectError:
            return None

    def names(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """List objects below a folder, with sizes [bytes]; see :meth:`ObjectStore.names`."""
        import obstore

        with self.calling(folder):
            pages: Any = obstore.list(self.library, prefix=f"{folder.strip('/')}/" if folder else None)
        count = 0
        for page in self._awaited(folder, pages):
            if (count := count + len(page)) > objects.MOST_NAMES:
                raise too_many_names(self.place(folder))
            for item in page:
                if self._paths:
                    self._paths.path(item["path"])
                yield item["path"], item["size"]

    def place(self, name: str) -> str:
        """Return the full address of an object, for messages."""
        return f"{self.address}/{name}".rstrip("/")

    def _check_own(self, name: str) -> None:
        """Refuse a name in a folder at which the library would follow a link out of it, or open a pipe.

        Raises:
            InputError: The name leads out of the folder, or is neither a file nor a folder.
        """
        if self._paths and os.path.exists(path := self._paths.path(name)) and not path.is_dir():
            check_regular(path)

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Convert the library's errors to one line each; refuse calls that would never return or leave a folder."""
        from obstore import exceptions

        where = self.place(name)
        _refuse_fork(where)
        try:
            self._check_own(name)
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            raise
        except (FileNotFoundError, exceptions.NotFoundError) as error:
            if _names_bucket(error):
                raise missing_bucket(self.address) from None
            raise MissingObjectError("no such object", where=where, instead="restore it from a copy") from None
        except (PermissionError, exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
            raise denied_access(where) from None
        except exceptions.BaseError as error:
            if _names_bucket(error):  # a listing raises no error of its own for a missing bucket
                raise missing_bucket(self.address) from None
            raise StoreAwayError(_line(error), where=where, instead="run the same command again later") from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # the library's failure, which is no Exception
                raise
            what = f"the library of stores failed: {str(error)[:160]!a}"
            raise StoreAwayError(what, where=where, instead="check the address of the store") from None


async def _next(stream: AsyncIterator[T]) -> T | None:
    """Return the next item of a stream; None at its end."""
    return await anext(stream, None)


def _refuse_fork(where: str) -> None:
    """Refuse a process that was forked after its parent had called a store: the library's threads are not forked.

    Raises:
        InputError: A call would wait forever.
    """
    if not _CALLERS:
        _CALLERS.append(os.getpid())
    if _CALLERS[0] != os.getpid():
        what = "this process was forked after its parent had read from a store, so it cannot read from one"
        # Without the variable, a spawned process imports modules from the current folder.
        instead = "set PYTHONSAFEPATH=1, and start workers by 'spawn': DataLoader(…, multiprocessing_context='spawn')"
        raise InputError(what, where=where, instead=instead)


def _stat(found: Any) -> ObjectStat:
    return ObjectStat(byte_count=int(found["size"]), etag=str(found.get("e_tag") or found["last_modified"]))


def _names_bucket(error: Exception) -> bool:
    text = str(error)
    return any(code in text for code in ("NoSuchBucket", "ContainerNotFound", "bucket does not exist"))


def _line(error: Exception) -> str:
    """Return the first line of a library's message, without addresses that may be signed."""
    text = str(error).split("\n")[0]
    reason = text.rpartition(" - ")[2] if " - " in text else text
    return f"the store does not answer: {reason.split('?')[0][:160]}"
