"""Videos of one stored episode: MP4 files beside its HDF5 file, or byte ranges in a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.byte_range import ByteRange, RangeFile
from nimbus.datagen.store.episode_file.decode import REMEDY, VideoReader
from nimbus.datagen.store.episode_file.h264 import GROUP
from nimbus.datagen.store.episode_file.videos import VideoRecord


class VideoFiles:
    """Videos by camera, opened on first use.

    Args:
        path: HDF5 file of the episode.
        span: Byte range of the HDF5 file if it is in a shard or a store.
        spans: Byte range of each camera's video in a shard; beside the HDF5 file if missing.
        fetch_file: Returns the path on this machine of a file of the dataset.
    """

    def __init__(
        self,
        path: Path,
        span: ByteRange | None,
        spans: Mapping[str, ByteRange],
        fetch_file: Callable[[Path], Path],
    ) -> None:
        self._path, self._span, self._spans, self._fetch_file = path, span, spans, fetch_file
        self._readers: dict[str, VideoReader] = {}
        self._sources: dict[str, RangeFile] = {}
        """Files of the readers that read ranges."""

    def path(self, camera: str) -> Path:
        """Return the path of the MP4 with a camera's images."""
        return self._fetch_file(self._beside(camera))

    def read(self, camera: str, record: VideoRecord, which: slice | int) -> NDArray[Any]:
        """Decode some frames (n, H, W, 3), or one (H, W, 3)."""
        rows = range(record.frame_count)[which]
        reader = self._reader(camera, record)
        if isinstance(rows, int):
            return reader.frame(rows)
        if rows.step == 1:
            return reader.read(rows.start, max(rows.start, rows.stop))
        return np.stack([reader.frame(row) for row in rows]) if rows else reader.read(0, 0)

    def fetch(self, camera: str, record: VideoRecord, start: int, stop: int) -> None:
        """Fetch the bytes of frames ``[start, stop)`` if the video is read by ranges; otherwise do nothing."""
        self._reader(camera, record)
        if source := self._sources.get(camera):  # frames of a video are of similar size
            per_frame = record.byte_count / max(1, record.frame_count)
            begin = int(per_frame * max(0, start - GROUP))
            source.fetch([(begin, int(per_frame * (stop + GROUP)))])

    def close(self) -> None:
        """Close the open videos."""
        while self._readers:
            self._readers.popitem()[1].close()

    def _beside(self, camera: str) -> Path:
        return self._path.with_name(f"{self._path.stem}.{camera}.mp4")

    def _reader(self, camera: str, record: VideoRecord) -> VideoReader:
        if camera not in self._readers:
            span = self._spans.get(camera)
            if span is None and self._span and not self._span.is_here:  # beside the episode's object in the store
                span = replace(self._span, path=self._beside(camera), byte_count=record.byte_count)
            if span:
                self._sources[camera] = _open_range(span)
            place = (self._sources[camera], str(span)) if span else (self.path(camera), "")
            self._readers[camera] = VideoReader(place[0], fps=record.fps, where=place[1])
        return self._readers[camera]


def _open_range(span: ByteRange) -> RangeFile:
    try:
        return span.open()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(span), instead=REMEDY) from error
