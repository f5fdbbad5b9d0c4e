"""File object for HDF5 that survives a full disk."""

from __future__ import annotations

import os
from pathlib import Path

from nimbus.datagen.files.own_files import create_file


class FaultTolerantFile:
    """File object for h5py that keeps the first write error instead of raising it.

    HDF5 cannot close a file whose last writes fail, and then crashes the process at exit. After an error this object
    therefore pretends that writes succeed and drops them; the owner checks :attr:`error`, closes the file and deletes
    it.

    Raises:
        FileExistsError: The file already exists.
    """

    def __init__(self, path: Path) -> None:
        self.error: OSError | None = None
        self._position = 0
        self._descriptor = create_file(path)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position; return it."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        self._position = offset + (os.fstat(self._descriptor).st_size if origin is None else origin)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def read(self, size: int) -> bytes:
        """Read at the position; h5py recognizes a file object by this method."""
        data = os.pread(self._descriptor, size, self._position)
        self._position += len(data)
        return data

    def readinto(self, buffer: bytearray) -> int:
        """Read at the position into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: bytes) -> int:
        """Write at the position, or drop the bytes after a failed write."""
        view = memoryview(data).cast("B")
        written = 0
        try:
            while written < len(view) and self.error is None:
                written += os.pwrite(self._descriptor, view[written:], self._position + written)
        except OSError as error:
            self.error = error
        self._position += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file."""
        length = self._position if size is None else size
        if self.error is None:
            os.ftruncate(self._descriptor, length)
        return length

    def flush(self) -> None:
        """Do nothing: writes are not buffered here."""

    def close(self) -> None:
        """Sync and close; the first error in the life of the file stays in :attr:`error`."""
        try:
            if self.error is None:
                os.fsync(self._descriptor)
        except OSError as error:
            self.error = error
        finally:
            os.close(self._descriptor)
