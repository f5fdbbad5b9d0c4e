"""Arrays and texts of an episode's file, read lazily, checked against the schema, and never from outside the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.files.codec import from_json
from nimbus.datagen.store.byte_range import ByteRange, RangeFile
from nimbus.datagen.store.episode_file.decode import VideoReader
from nimbus.datagen.store.episode_file.h264 import GROUP
from nimbus.datagen.store.episode_file.schema import field_of, is_dtype, unify
from nimbus.datagen.store.episode_file.videos import VideoRecord
from nimbus.datagen.store.remote.working_copy import local

T = TypeVar("T")

_MEND = "restore this file from a copy, or delete it and run again"
_LEAST = 1 << 20
"""Size up to which a dataset is read without a comparison with its stored bytes [bytes]."""
_LARGEST_ARRAY = 1 << 30
"""Largest array that is read whole [bytes]; two hours of 40 bodies at 60 Hz take half of it."""
_DEFLATE = 1100
"""Upper bound of deflate's compression ratio: at most 1032, plus some overhead of chunks."""

_HARD: int = h5py.h5l.TYPE_HARD  # pyright: ignore[reportAttributeAccessIssue]
"""Type of a link that is a group's own entry rather than an alias."""


class EpisodeArrays:
    """File of one episode as named arrays.

    Args:
        path: HDF5 file of the episode, or its byte range in a shard.
        videos: Byte range of each camera's video in a shard; beside the HDF5 file when None.

    Raises:
        InputError: The file is missing or not an episode. Reading raises it for a damaged file.
    """

    def __init__(self, path: Path | str | ByteRange, *, videos: Mapping[str, ByteRange] | None = None) -> None:
        self.path = path.path if isinstance(path, ByteRange) else local(Path(path))
        self._spans = videos or {}
        self._span = path if isinstance(path, ByteRange) else None
        self._readers: dict[str, VideoReader] = {}
        self._sources: dict[str, RangeFile] = {}
        """Files of the readers that read ranges."""
        self._datasets: dict[str, h5py.Dataset] = {}
        """Datasets already opened and checked to be in this file."""
        self._sizes: dict[str, int] = {}
        """Sizes by symbol of the schema, bound by the datasets read so far."""
        if not isinstance(path, ByteRange) or path.is_here:
            if not self.path.exists():
                raise InputError("no such file", where=str(path), instead="restore it from a copy, or run again")
            check_regular(self.path)
        self._source = path.open() if isinstance(path, ByteRange) else None
        try:
            self.file = h5py.File(self._source or self.path, "r")
        except (OSError, RuntimeError) as error:
            raise InputError(f"not a readable HDF5 file: {error}", where=str(path), instead=_MEND) from None
        try:
            with self._reading("its attributes"):
                if "nimbus_format" not in self.file.attrs:
                    raise InputError(
                        "not an episode of Nimbus", where=str(path), instead="give an episode of a dataset"
                    )
        except InputError:
            self.file.close()
            raise

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
            dataset = _check_own(self.file, path) or self.file[path]
            if not isinstance(dataset, h5py.Dataset):
                raise KeyError(f"'{path}' is a group")
            if dataset.shape is None:
                raise ValueError("holds nothing")
            _check_size(dataset)
            self._datasets[path] = dataset
            return dataset

    def rows(self, path: str, which: slice | int) -> NDArray[Any]:
        """Read some rows of a dataset, or one; images stored as video are decoded."""
        if self._is_video(path):
            return self._decoded(path.rpartition("/")[2], which)
        with self._reading(path):
            return self[path][which]

    def shape(self, path: str) -> tuple[int, ...]:
        """Return the shape of a dataset, or of images stored as video."""
        if self._is_video(path):
            record = self.videos[path.rpartition("/")[2]]
            return record.frame_count, record.height, record.width, 3
        return self[path].shape

    def array(self, path: str) -> NDArray[Any]:
        """Read a whole dataset of at most 1 GiB."""
        with self._reading(path):
            dataset = self[path]
            if (size := int(dataset.size or 0) * dataset.dtype.itemsize) > _LARGEST_ARRAY:
                raise ValueError(f"{size} bytes; the limit is {_LARGEST_ARRAY}")
            return dataset[()]

    def text(self, path: str) -> str:
        """Read a dataset that is one text."""
        with self._reading(path):
            return str(self[path].asstr()[()])

    def texts(self, path: str) -> tuple[str, ...]:
        """Read a dataset of texts."""
        with self._reading(path):
            return tuple(map(str, self[path].asstr()[()]))

    def members(self, path: str) -> list[str]:
        """Return the names in a group, sorted; empty when there is no such group."""
        with self._reading(path):
            group = _check_own(self.file, path)
        return sorted(group) if isinstance(group, h5py.Group) else []

    def paths(self) -> Iterator[str]:
        """Yield the path of every dataset, sorted."""
        found: list[str] = []
        with self._reading("its datasets"):
            self.file.visititems(lambda path, item: found.append(path) if isinstance(item, h5py.Dataset) else None)
        return iter(sorted(found))

    @cached_property
    def videos(self) -> dict[str, VideoRecord]:
        """Record of each camera's video, where images are stored as video."""
        names = self.members("observations/video")
        return {name: self._json(VideoRecord, f"observations/video/{name}") for name in names}

    def video_file(self, camera: str) -> Path:
        """Return the path of the MP4 with a camera's images."""
        return local(self.path.with_name(f"{self.path.stem}.{camera}.mp4"))

    def fetch(self, cameras: Iterable[str], start: int, stop: int) -> None:
        """Fetch the bytes of images in steps ``[start, stop)``, where the episode lies in a store; else do nothing."""
        if self._source is None or self._span is None or self._span.is_here:
            return
        for camera in cameras:
            path = f"observations/images/{camera}"
            if self._is_video(path):
                self._reader(camera)
                source, record = self._sources.get(camera), self.videos[camera]
                if source:  # frames of a video are of similar size
                    per_frame = record.byte_count / max(1, record.frame_count)
                    begin = int(per_frame * max(0, start - GROUP))
                    source.fetch([(begin, int(per_frame * (stop + GROUP)))])
                continue
            with self._reading(path):
                dataset = self[path]
                place: Any = dataset.id
                corner = (0,) * (len(dataset.shape) - 1)
                chunks = [place.get_chunk_info_by_coord((row, *corner)) for row in range(start, stop)]
            self._source.fetch([(chunk.byte_offset, chunk.byte_offset + chunk.size) for chunk in chunks])

    def _is_video(self, path: str) -> bool:
        group, _, camera = path.rpartition("/")
        return group == "observations/images" and camera in self.videos and path not in self.file

    def _decoded(self, camera: str, which: slice | int) -> NDArray[Any]:
        count = self.videos[camera].frame_count
        rows = range(count)[which]
        reader = self._reader(camera)
        if isinstance(rows, int):
            return reader.frame(rows)
        if rows.step == 1:
            return reader.read(rows.start, max(rows.start, rows.stop))
        return np.stack([reader.frame(row) for row in rows]) if rows else reader.read(0, 0)

    def _reader(self, camera: str) -> VideoReader:
        if camera not in self._readers:
            span, fps = self._spans.get(camera), self.videos[camera].fps
            if span is None and self._span and not self._span.is_here:  # beside the episode's object in the store
                path = self.path.with_name(f"{self.path.stem}.{camera}.mp4")
                span = replace(self._span, path=path, byte_count=self.videos[camera].byte_count)
            if span:
                self._sources[camera] = _open_range(span)
            place = (self._sources[camera], str(span)) if span else (self.video_file(camera), "")
            self._readers[camera] = VideoReader(place[0], fps=fps, where=place[1])
        return self._readers[camera]

    def _json(self, kind: type[T], path: str) -> T:
        with self._reading(path):
            return from_json(kind, self.text(path))

    @contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError, KeyError, ValueError, AttributeError, TypeError, MemoryError) as error:
            what = f"cannot be read: {path}: {error}".split("\n")[0]
            raise InputError(what, where=str(self.path), instead=_MEND) from error

    def close(self) -> None:
        """Close its files."""
        while self._readers:
            self._readers.popitem()[1].close()
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_size(dataset: h5py.Dataset) -> None:
    """Refuse a dataset that declares far more than it stores, because missing rows would read as zeros.

    Raises:
        ValueError: The dataset is of this kind.
    """
    declared = int(dataset.size or 0) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if declared > _LEAST and declared > _DEFLATE * stored:
        raise ValueError(f"declares {declared} bytes, {stored} are stored")


def _check_own(file: h5py.File, path: str) -> h5py.Group | h5py.Dataset | None:
    """Return the object at a path in a file, or None; refuses content from outside the file.

    Args:
        file: The file.
        path: Path of a group or dataset in it.

    Raises:
        ValueError: The path is a link, or the data are in another file.
    """
    links: Any = file.id.links
    parts = path.encode().split(b"/")
    # Every part of the path is checked, because a group on the way may be a link as well.
    for count in range(1, len(parts) + 1):
        try:
            kind = links.get_info(b"/".join(parts[:count])).type
        except (KeyError, RuntimeError):
            return None
        if kind != _HARD:  # a soft link may lead to an external one
            raise ValueError("a link, which may lead into another file")
    place: Any = file[path]
    if isinstance(place, h5py.Dataset) and (place.external or place.is_virtual):
        raise ValueError("its data lie in another file")
    return place


def _open_range(span: ByteRange) -> RangeFile:
    try:
        return span.open()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(span), instead=_MEND) from error
