"""Access to the objects of a store by name: atomic creation, and reads in whole or in part."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import refuse_links
from nimbus.datagen.store.remote.address import StoreAddress, local_folder
from nimbus.datagen.store.remote.library_store import LibraryStore
from nimbus.datagen.store.remote.objects import LARGEST_OBJECT, ObjectStat
from nimbus.datagen.store.remote.s3_client import s3_client, sign_creation
from nimbus.datagen.store.remote.s3_reader import S3Reader
from nimbus.datagen.store.remote.watched_calls import watched


class ObjectStore:
    """Objects below one address. Thread-safe. A process that was forked after the first call can only read from S3.

    Args:
        address: Address of the objects; :class:`WebStore` reads those of web servers.

    Raises:
        InputError: The address is of a web server, the extra is not installed, or the credentials that the store needs
            are missing.
    """

    def __init__(self, address: StoreAddress) -> None:
        if address.is_read_only:  # the library reads the errors of a server whole, however long they are
            what = f"{address.scheme}:// is read-only"
            raise InputError(what, where=str(address), instead="write to s3://, gs://, az:// or a folder")
        self.address = address
        self._library = LibraryStore(address)
        # The library follows redirects of S3 to any host; those of the other clouds' own servers are trusted.
        self._reader = S3Reader(address) if address.scheme == "s3" else self._library
        self._client: Any = None

    def create(self, name: str, content: Path | bytes) -> bool:
        """Create an object atomically.

        Args:
            name: Path below the address.
            content: Bytes, or a file.

        Returns:
            False if the name is taken, in which case nothing was changed.

        Raises:
            InputError: There is no bucket, or no permission.
            StoreAwayError: The store does not answer; either nothing or the whole object is visible.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._library.calling(name):
            try:
                self._put(name, content, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError, FileExistsError):
                return False
        return True

    def replace(self, name: str, content: Path | bytes) -> None:
        """Write an object, replacing an earlier one: a description or status, never an episode.

        Raises:
            InputError: There is no bucket, or no permission.
            StoreAwayError: The store does not answer.
        """
        with self._library.calling(name):
            self._put(name, content)

    def _put(self, name: str, content: Path | bytes, **settings: Any) -> None:
        import obstore

        put: Any = obstore.put_async
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        watched(lambda: put(self._library.library, name, content, **settings), where=self.place(name), sent=size)

    def read(self, name: str) -> bytes:
        """Read a whole object of at most 64 MiB.

        Raises:
            MissingObjectError: The object does not exist.
            InputError: There is no permission, or the object is larger.
            StoreAwayError: The store does not answer.
        """
        return self._reader.read(name)

    def read_range(self, name: str, start: int, byte_count: int, *, least: int | None = None) -> bytes:
        """Read bytes ``[start, start + byte_count)`` of an object; raises as :meth:`read` does.

        Args:
            name: Path below the address.
            start: First byte.
            byte_count: Number of bytes.
            least: Sufficient number of bytes if the object is shorter; by default all of them.
        """
        return self._reader.read_range(name, start, byte_count, least=least)

    def download(self, name: str, path: Path, *, limit: int = LARGEST_OBJECT) -> ObjectStat:
        """Write an object to a new file, replacing an existing one; a link is replaced, never followed.

        Args:
            name: Path below the address.
            path: The file; it is removed after an error.
            limit: Largest size of the object [bytes].

        Raises what :meth:`read` does, and ``StorageError`` for a full disk.
        """
        return self._reader.download(name, path, limit=limit)

    def stat(self, name: str) -> ObjectStat | None:
        """Return size and version of an object; None if it does not exist. Raises what :meth:`read` does otherwise."""
        return self._reader.stat(name)

    def names(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """List objects below a folder, with sizes [bytes]. Raises what :meth:`read` does."""
        return self._reader.names(folder)

    def sign(self, name: str, *, method: str = "PUT", seconds: float) -> str:
        """Make a URL that grants one operation on one object for a limited time; a ``PUT`` to S3 cannot replace it.

        Raises:
            InputError: There are no credentials.
        """
        import obstore

        if method == "PUT" and self.address.scheme == "s3":
            self._client = self._client or s3_client()
            return sign_creation(self._client, self.address, name, seconds=seconds)
        signing: Any = obstore
        with self._library.calling(name):
            return signing.sign(self._library.library, method, name, timedelta(seconds=seconds))

    def place(self, name: str) -> str:
        """Return the full address of an object, for messages."""
        return self._library.place(name)


def check_creates_once(store: ObjectStore) -> None:
    """Refuse a store that overwrites existing objects on creation, because two writers could lose episodes there.

    The test leaves one small object in the store, ``journal/probe``.

    Raises:
        InputError: The store overwrites objects, the bucket does not exist, or access is denied; or the store is a
            folder with links.
        StoreAwayError: The store does not answer.
    """
    if (folder := local_folder(store.address)) and folder.exists():
        refuse_links(folder)
    name = "journal/probe"
    store.create(name, b"probe")
    if store.create(name, b"probe again"):
        what = "this store overwrites existing objects (it ignores If-None-Match)"
        instead = "use a store that supports it, such as S3, GCS, Azure, R2, MinIO, Ceph or Swift, or a shared folder"
        raise InputError(what, where=str(store.address), instead=instead)
