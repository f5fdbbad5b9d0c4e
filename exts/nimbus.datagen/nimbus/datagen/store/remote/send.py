"""Upload of an attempt's files: videos first, the HDF5 file last, and never over an existing object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.store.commit import is_whole_file
from nimbus.datagen.store.episode_file.content_check import is_whole
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.remote.multipart import LARGE, create_large
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.objects import ObjectStat


class EpisodeTarget(Protocol):
    """Destination of an attempt's objects; see :class:`ObjectStore` for its methods."""

    def create(self, name: str, content: Path | bytes) -> bool:
        """Create an object; False if the name is taken."""
        ...

    def download(self, name: str, path: Path) -> ObjectStat:
        """Write an object to a file."""
        ...

    def place(self, name: str) -> str:
        """Return the full address of an object."""
        ...


class ConflictError(InputError):
    """Raised when another object has the name of an episode's file: a foreign object, or nondeterministic content."""


def send_attempt(store: EpisodeTarget, folder: Path, attempt: Attempt) -> Iterator[tuple[str, int]]:
    """Send an attempt's files, those of an episode or of a kept failure.

    An existing object with the same content is accepted: an earlier answer of the store was lost, or another node sent
    it.

    Args:
        store: Store of the dataset.
        folder: Folder of the files.
        attempt: Row of the ledger.

    Yields:
        Name and size [bytes] of each object now in the store.

    Raises:
        ConflictError: An object of other content has the name.
        InputError: There is no bucket, or no permission.
        StoreAwayError: The store does not answer; the same call may be repeated.
    """
    kept = attempt.failure
    for name, size in {kept.path: kept.byte_count}.items() if kept else attempt.files.items():
        path = folder / name
        if isinstance(store, ObjectStore) and size > LARGE:
            created = create_large(store, name, path, notes=folder / "multipart")
        else:  # a store of signed URLs accepts whole objects only
            created = store.create(name, path)
        yield name, size if created else _adopt(store, name, attempt)


def _adopt(store: EpisodeTarget, name: str, attempt: Attempt) -> int:
    """Compare an object with the file to send; return its size [bytes]."""
    with make_owned("nimbus-object-") as place:
        found = place / name.rpartition("/")[2]
        stat = store.download(name, found)
        if kept := attempt.failure:
            is_same = is_whole(found, sha256=kept.sha256, byte_count=stat.byte_count)
        elif name == attempt.path:
            is_same = is_whole(found, sha256=attempt.sha256, byte_count=stat.byte_count)
        else:
            is_same = is_whole_file(found, attempt, name)
    if not is_same:
        what = "an object of other content has this name"
        instead = "move it away, or choose another --out, then run the same command again"
        raise ConflictError(what, where=store.place(name), instead=instead)
    return stat.byte_count
