"""HDF5 files of which a full disk is one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py

from nimbus.datagen.store.publish import storage_error
from nimbus.datagen.store.sink import Sink


@contextmanager
def new_file(path: Path) -> Iterator[tuple[h5py.File, Callable[[], None]]]:
    """A new file to write, and what asks now and then whether the disk still takes it.

    Raises:
        StorageError: The disk is full; the file is worthless.
    """
    sink = Sink(path)
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
