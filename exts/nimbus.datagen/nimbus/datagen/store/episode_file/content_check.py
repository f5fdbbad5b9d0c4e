"""Content hashes of stored episodes, and checks of their files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import h5py

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.content_hash import ContentHash
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.schema import TEXT, field_of
from nimbus.datagen.store.episode_file.videos import file_hash
from nimbus.datagen.store.ledger.attempt import Video, has_size

LEVELS = {"D0": "layouts and plans", "D1": "layouts, plans and pixels"}
"""Content compared by each level of determinism."""
_ROWS_BYTES = 8 << 20
"""Largest size of the rows that are read together [bytes]."""


class CombinedHash:
    """Hash over episode hashes, which are added in the order of their ids; of a repeated id, the last hash counts."""

    def __init__(self) -> None:
        self._total = hashlib.sha256()
        self._last: tuple[str, str] | None = None

    def add(self, episode_id: str, digest: str) -> None:
        """Add an episode's hash."""
        if self._last and self._last[0] != episode_id:
            self._close()
        self._last = (episode_id, digest)

    def hexdigest(self) -> str:
        """Return the hash; nothing is added afterwards."""
        if self._last:
            self._close()
            self._last = None
        return self._total.hexdigest()

    def _close(self) -> None:
        assert self._last
        self._total.update("{} {}\n".format(*self._last).encode())


def combine(episodes: dict[str, str]) -> str:
    """Combine episode hashes, ordered by episode id, into one hash."""
    total = CombinedHash()
    for episode_id in sorted(episodes):
        total.add(episode_id, episodes[episode_id])
    return total.hexdigest()


def content_hash(episode: EpisodeFile) -> ContentHash:
    """Hash a stored episode by reading all of it; the result equals the hash taken when it was written."""
    content = ContentHash()
    for path in episode.paths():
        if (field := field_of(path)) is None:
            continue  # it is never part of a hash
        dataset = episode[path]
        if field.dtype == TEXT:
            content.texts(path, episode.texts(path) if dataset.shape else [episode.text(path)])
            continue
        content.begin(path, str(dataset.dtype), dataset.shape)
        for start, stop in _blocks(dataset):
            content.extend(path, episode.rows(path, slice(start, stop)))
    return content


def is_whole(path: Path, *, sha256: str, byte_count: int) -> bool:
    """Return True if an episode's HDF5 file exists with this size and content hash."""
    if not has_size(path, byte_count):
        return False
    try:
        with EpisodeFile(path) as episode:
            return content_hash(episode).hexdigest() == sha256
    except (InputError, OSError, RuntimeError, KeyError, ValueError):  # HDF5 raises all of these for damaged files
        return False


def is_whole_video(path: Path, video: Video) -> bool:
    """Return True if a video exists with the recorded bytes."""
    try:
        return has_size(path, video.byte_count) and file_hash(path)[1] == video.sha256
    except (InputError, OSError):
        return False


def _blocks(dataset: h5py.Dataset) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows, each of a limited size in memory."""
    if not dataset.shape or not dataset.size:
        return
    count = dataset.shape[0]
    step = max(1, _ROWS_BYTES * count // max(1, dataset.nbytes))
    for start in range(0, count, step):
        yield start, min(start + step, count)
