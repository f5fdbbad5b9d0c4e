"""Images of an episode in a video of any origin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.store.episode_file.decode import rgb_reader

_LATE = 1e-4
"""Largest accepted deviation of a frame from its time [s]."""


class VideoPictures:
    """Images in a video, see :class:`~nimbus.datagen.datasets.quality.view.Pictures`.

    Args:
        path: The video.
        name: Name in findings.
        begin: Time of the episode's first frame in it [s].
        length: Expected number of frames.
        fps: Frames per second.
        alone: True if the file holds no other episode.
    """

    def __init__(self, path: Path, name: str, *, begin: float, length: int, fps: float, alone: bool) -> None:
        self._path, self._name = path, name
        self._begin, self._length, self._fps, self._alone = begin, length, fps, alone

    def count(self) -> int:
        """Return the number of images by counting packets, without decoding."""
        with self._open() as (container, stream):
            self._seek(container, stream, 0)
            times = (
                float(packet.pts * stream.time_base) for packet in container.demux(stream) if packet.pts is not None
            )
            found = 0
            for time in times:
                if self._begin - _LATE <= time and (self._alone or time < self._end - _LATE):
                    found += 1
                elif not self._alone and time > self._end + 1.0:
                    break
            return found

    def read(self, start: int, stop: int) -> Iterator[NDArray[np.uint8]]:
        """Read images ``[start, stop)``, (H, W, 3) each, sRGB [levels, 0 to 255]; fewer at the end."""
        stop = stop if self._alone else min(stop, self._length)
        first, last = self._begin + start / self._fps - _LATE, self._begin + stop / self._fps - _LATE
        with self._open() as (container, stream):
            self._seek(container, stream, start)
            to_rgb = rgb_reader()
            for frame in container.decode(stream):
                time = frame.time or 0.0
                if time >= last:
                    return
                if time >= first:
                    yield to_rgb(frame)

    @property
    def _end(self) -> float:
        return self._begin + self._length / self._fps

    def _seek(self, container: Any, stream: Any, frame: int) -> None:
        time = self._begin + frame / self._fps
        if time and stream.time_base:
            container.seek(round(time / stream.time_base), stream=stream)

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        import av
        from av.error import FFmpegError

        try:
            check_regular(self._path)
            with av.open(str(self._path), format="mp4") as container:
                stream = container.streams.video[0]
                if stream.codec_context is None:
                    raise ValueError("no decoder for its pictures")
                stream.codec_context.thread_count = 1
                yield container, stream
        except IndexError as error:
            raise Unreadable(self._name, "cannot be read: no video in it") from error
        except InputError as error:
            raise Unreadable(self._name, error.what) from error
        except (OSError, ValueError, FFmpegError) as error:
            raise Unreadable(self._name, f"cannot be read: {error}") from error
