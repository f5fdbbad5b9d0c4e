"""New HDF5 files with one-line errors for a full disk, and copies of images into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py

from nimbus.datagen.store.episode_file.fault_tolerant_file import FaultTolerantFile
from nimbus.datagen.store.episode_file.image_chunks import create_images, write_images
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.publish import storage_error

_BLOCK = 32
"""Number of frames copied at a time."""


@contextmanager
def new_file(path: Path) -> Iterator[tuple[h5py.File, Callable[[], None]]]:
    """Open a new file.

    Yields:
        The file, and a function that raises :class:`StorageError` after an earlier write error.

    Raises:
        StorageError: The disk is full; the file is unusable.
    """
    sink = FaultTolerantFile(path)
    file = h5py.File(sink, "w")

    def check() -> None:
        if sink.error is not None:
            raise storage_error(sink.error, path)

    try:
        yield file, check
    finally:
        with suppress(*((OSError, RuntimeError) if sink.error else ())):
            file.close()
        sink.close()
        check()


def copy_images(episode: EpisodeFile, camera: str, group: h5py.Group, name: str) -> None:
    """Copy the images of a camera, one frame per chunk; video is decoded, other images stay compressed as they are.

    Args:
        episode: Episode with the images.
        camera: Name of the camera.
        group: Group in which the images are written.
        name: Name of the new HDF5 dataset.
    """
    path = f"observations/images/{camera}"
    if episode.has(path):
        episode.file.copy(episode.stored(path), group, name=name)
        return
    shape = episode.shape(path)
    images = create_images(group, name, shape, "uint8")
    for start in range(0, shape[0], _BLOCK):
        write_images(images, start, episode.rows(path, slice(start, start + _BLOCK)))
