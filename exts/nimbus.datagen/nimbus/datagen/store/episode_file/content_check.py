"""Hashing what is stored, by reading all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.content_hash import ContentHash
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.schema import TEXT, field_of
from nimbus.datagen.store.episode_file.videos import file_hash
from nimbus.datagen.store.ledger.attempt import Video, has_size

_ROWS_BYTES = 8 << 20


def content_hash(episode: EpisodeFile) -> ContentHash:
    """Hash a stored episode by reading all of it; equal to the hash taken when it was written."""
    content = ContentHash()
    for path in episode.paths():
        dataset = episode[path]
        field = field_of(path)
        if field is not None and field.dtype == TEXT:
            content.texts(path, episode.texts(path) if dataset.shape else [episode.text(path)])
            continue
        content.begin(path, str(dataset.dtype), dataset.shape)
        for start, stop in _blocks(dataset):
            content.extend(path, episode.rows(path, slice(start, stop)))
    return content


def is_whole(path: Path, *, sha256: str, byte_count: int) -> bool:
    """Whether an episode's HDF5 file is there with this size and this content."""
    if not has_size(path, byte_count):
        return False
    try:
        with EpisodeFile(path) as episode:
            return content_hash(episode).hexdigest() == sha256
    except (InputError, OSError, RuntimeError, KeyError, ValueError):  # whatever a damaged file may raise
        return False


def is_whole_video(path: Path, video: Video) -> bool:
    """Whether a video is there, byte for byte."""
    try:
        return has_size(path, video.byte_count) and file_hash(path)[1] == video.sha256
    except OSError:
        return False


def _blocks(dataset: h5py.Dataset) -> Iterator[tuple[int, int]]:
    """Ranges of rows that fit in memory many times over."""
    if not dataset.shape or not dataset.size:
        return
    count = dataset.shape[0]
    step = max(1, _ROWS_BYTES * count // max(1, dataset.nbytes))
    for start in range(0, count, step):
        yield start, min(start + step, count)
