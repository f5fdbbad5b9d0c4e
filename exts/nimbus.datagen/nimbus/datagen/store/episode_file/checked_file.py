"""HDF5 file of an episode whose values are checked and bounded before they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import h5py
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import TEXT_BYTES
from nimbus.datagen.files.codec import from_json
from nimbus.datagen.store.episode_file.contents import check_own, check_size, check_streams, dataset_paths
from nimbus.datagen.store.episode_file.decode import REMEDY
from nimbus.datagen.store.episode_file.schema import field_of, is_dtype, unify

T = TypeVar("T")

_LARGEST_ARRAY = 1 << 30
"""Largest array that is read whole [bytes]; two hours of 40 bodies at 60 Hz take half of it."""
_PLAIN, _UNPACKED = 1 << 26, 64
"""Size of an array up to which it may be any number of times larger than what is stored for it [bytes], and the limit
beyond that; signals are stored without compression, and measured ones deflate two to four times."""
_LARGEST_TRAJECTORY = 1 << 31
"""Largest size of all arrays of a trajectory together [bytes]."""
_MOST_MEMBERS = 10_000
"""Largest number of entries of a group; the largest groups have one for each camera or signal."""
_MOST_TEXTS = 1_000_000
"""Largest number of texts of a dataset."""


class CheckedFile:
    """Open file of an episode, whose structure is checked.

    Args:
        path: Path of the file, for errors.
        file: The file.
    """

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path, self.file = path, file
        self._datasets: dict[str, h5py.Dataset] = {}
        """Datasets already opened and checked to be in this file."""
        self._unpacked: set[str] = set()
        """Datasets whose compressed chunks are checked."""
        self._sizes: dict[str, int] = {}
        """Sizes by symbol of the schema, as found in the datasets read so far."""

    def __getitem__(self, path: str) -> h5py.Dataset:
        dataset, field = self.stored(path), field_of(path)
        with self._reading(path):
            if field and not is_dtype(field, dataset.dtype):
                raise ValueError(f"type {dataset.dtype}, expected {field.dtype}")
            if field and not unify(field, dataset.shape, self._sizes, scope=path.rpartition("/")[2]):
                dims = ", ".join(map(str, field.dims))
                raise ValueError(f"shape {dataset.shape}, expected ({dims}) with {self._sizes}")
        return dataset

    def stored(self, path: str) -> h5py.Dataset:
        """Open a dataset of any shape and type, even one that the schema does not allow."""
        with self._reading(path):
            if path in self._datasets:
                return self._datasets[path]
            dataset = check_own(self.file, path) or self.file[path]
            if not isinstance(dataset, h5py.Dataset):
                raise KeyError(f"'{path}' is a group")
            if dataset.shape is None:
                raise ValueError("holds nothing")
            check_size(dataset)
            self._datasets[path] = dataset
            return dataset

    def array(self, path: str) -> NDArray[Any]:
        """Read a whole dataset of at most 1 GiB, which is stored in no less than a 64th of it."""
        with self._reading(path):
            dataset = self._whole(path)
            if (size := int(dataset.size or 0) * dataset.dtype.itemsize) > _LARGEST_ARRAY:
                raise ValueError(f"{size} bytes; the limit is {_LARGEST_ARRAY}")
            if size > _PLAIN + _UNPACKED * (stored := dataset.id.get_storage_size()):
                raise ValueError(f"{size} bytes of which {stored} are stored")
            return dataset[()]

    def _whole(self, path: str) -> h5py.Dataset:
        """Open a dataset for reading by HDF5, after a check of its compressed chunks."""
        dataset = self[path]
        if path not in self._unpacked:
            check_streams(dataset)
            self._unpacked.add(path)
        return dataset

    def _text_values(self, path: str) -> Any:
        """Read a dataset of at most 64 MiB and a million texts."""
        dataset = self._whole(path)
        size = int(dataset.size or 0)
        if size > _MOST_TEXTS or size * dataset.dtype.itemsize > TEXT_BYTES:
            raise ValueError(f"{size} texts of {dataset.dtype.itemsize} bytes; the limit is {TEXT_BYTES} bytes")
        return dataset.asstr()[()]

    def text(self, path: str) -> str:
        """Read a dataset that is one text."""
        with self._reading(path):
            return str(self._text_values(path))

    def texts(self, path: str) -> tuple[str, ...]:
        """Read a dataset of texts."""
        with self._reading(path):
            return tuple(map(str, self._text_values(path)))

    def members(self, path: str) -> list[str]:
        """Return the names in a group, sorted; empty when there is no such group."""
        with self._reading(path):
            group = check_own(self.file, path)
            if not isinstance(group, h5py.Group):
                return []
            if len(group) > _MOST_MEMBERS:
                raise ValueError(f"{len(group)} entries; the limit is {_MOST_MEMBERS}")
            return sorted(group)

    def paths(self) -> Iterator[str]:
        """Yield the path of every dataset, sorted."""
        with self._reading("its datasets"):
            return iter(sorted(dataset_paths(self.file)))

    def _paths_below(self, group: str) -> list[str]:
        return [f"{group}/{name}" for name in self.members(group)]

    def _arrays(self, paths: Iterable[str]) -> dict[str, NDArray[Any]]:
        return {path.partition("/")[2]: self.array(path) for path in paths}

    def _check_together(self, paths: Iterable[str]) -> None:
        """Refuse arrays that together are larger than a trajectory can be, before one of them is read."""
        size = 0
        for path in paths:
            if self.has(path):
                dataset = self[path]
                size += int(dataset.size or 0) * dataset.dtype.itemsize
        with self._reading("its arrays"):
            if size > _LARGEST_TRAJECTORY:
                raise ValueError(f"{size} bytes together; the limit is {_LARGEST_TRAJECTORY}")

    def _attribute(self, name: str) -> Any:
        """Read an attribute of one value; a list is refused, because it may refer to one large text many times."""
        if h5py.h5a.open(self.file.id, name.encode()).shape != ():
            raise ValueError("a list, expected one value")
        return self.file.attrs[name]

    def _json(self, kind: type[T], path: str) -> T:
        with self._reading(path):
            return from_json(kind, self.text(path))

    def has(self, path: str) -> bool:
        """Return True if there is an object with a path.

        Raises:
            InputError: The file is damaged.
        """
        with self._reading(path):
            return path in self.file

    @contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError, KeyError, ValueError, AttributeError, TypeError, MemoryError) as error:
            what = f"cannot be read: {path}: {error}".split("\n")[0]
            raise InputError(what, where=str(self.path), instead=REMEDY) from error
