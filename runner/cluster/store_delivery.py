"""Delivery into an object store: nodes create the objects, and the head commits their names and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.remote.address import is_address, parse_address
from nimbus.datagen.store.remote.cache_root import address_of
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.send import EpisodeTarget, send_attempt
from nimbus.datagen.store.remote.signed_store import SignedStore
from nimbus.datagen.store.remote.uploads import Uploads
from nimbus.datagen.store.remote.working_copy import is_remote, note_sent
from nimbus.runner.cluster.delivery import (
    EpisodeEntry,
    EpisodeUploader,
    FolderEntry,
    FolderUploader,
    UploadedEpisode,
    UploadedFiles,
    attempt_key,
    staged_episode,
)
from nimbus.runner.cluster.signing import UrlSigner, needs_signatures


class StoreUploader:
    """Creates the objects of a dataset in a store, the videos of an episode first, and never overwrites one.

    Args:
        store: Store of the dataset.
    """

    def __init__(self, store: EpisodeTarget) -> None:
        self._store = store

    def upload(self, attempt: Attempt, folder: Path) -> UploadedFiles:
        """Create the objects, or accept existing ones with equal content; see :class:`EpisodeUploader`."""
        return UploadedFiles(objects=dict(send_attempt(self._store, folder, attempt)))

    def upload_incident(self, folder: Path, name: str) -> str:
        """Create an object for each file of the folder; see :class:`EpisodeUploader`."""
        place = f"incidents/{name}"
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                self._store.create(f"{place}/{path.relative_to(folder).as_posix()}", path)
        return place


class StoreEntry:
    """Commits objects that nodes created.

    Args:
        dataset: Dataset opened by this process in the spool of the run, which contains the ledger but no episodes.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._uploads = dataset, Uploads(dataset.folder)
        self._signer: UrlSigner | None = None

    def keep_failures(self, episodes: Sequence[UploadedEpisode]) -> set[str]:
        """Record the objects of kept failures; see :class:`EpisodeEntry`."""
        found = [(episode, kept.path) for episode in episodes if (kept := episode.attempt.failure)]
        self._note([item for episode, _ in found for item in episode.objects.items()])
        return {attempt_key(episode.attempt) for episode, path in found if not self._uploads.has(path)}

    def enter(self, episodes: Sequence[UploadedEpisode]) -> set[str]:
        """Record the objects, then commit the rows; see :class:`EpisodeEntry`."""
        self._note([item for episode in episodes if episode.attempt.path for item in episode.objects.items()])
        folder = self._dataset.folder
        placed = [
            staged_episode(self._dataset, episode, folder / episode.attempt.path)
            for episode in episodes
            if episode.attempt.path
        ]
        return {attempt.episode_id for attempt in self._dataset.enter(placed)}

    def sign(self, name: str, method: str) -> str:
        """Sign with the head's credentials; see :class:`EpisodeEntry`."""
        self._signer = self._signer or UrlSigner(parse_address(address_of(self._dataset.folder)))
        return self._signer.sign(name, method)

    def discard(self, episodes: Sequence[UploadedEpisode]) -> None:
        """Do nothing: duplicate results have the same objects as the first one."""

    def close(self) -> None:
        """Close the files of the dataset."""
        self._uploads.close()

    def _note(self, objects: Sequence[tuple[str, int]]) -> None:
        if objects:
            self._uploads.add(objects)
            note_sent(self._dataset.folder, objects)


def upload_place(folder: Path) -> str:
    """Return the destination of the nodes' uploads: the address of a dataset in a store, otherwise its folder."""
    return address_of(folder)


def open_uploader(place: str, node: str, *, sign: Callable[[str, str], str] | None = None) -> EpisodeUploader:
    """Return the uploader of a node for a destination.

    Args:
        place: Destination, as :func:`upload_place` returns it.
        node: Name of the node.
        sign: Requests a signed URL from the head, given an object's name and a method; for nodes without credentials.

    Raises:
        InputError: An extra or credentials for the store are missing on this node, or the folder does not exist there.
    """
    if is_address(place):
        address = parse_address(place)
        return StoreUploader(SignedStore(address, sign) if sign and needs_signatures(address) else ObjectStore(address))
    if not Path(place).is_dir():
        what = "this node does not reach the folder of the dataset"
        raise InputError(what, where=place, instead="give --out in a folder that all nodes share, or in a store")
    return FolderUploader(Path(place), node)


def open_entry(dataset: Dataset, closing: ExitStack) -> EpisodeEntry:
    """Return the object that commits uploaded files to a dataset.

    Args:
        dataset: Dataset opened by this process.
        closing: Stack that will close the opened files.
    """
    if not is_remote(dataset.folder):
        return FolderEntry(dataset)
    entry = StoreEntry(dataset)
    closing.callback(entry.close)
    return entry
