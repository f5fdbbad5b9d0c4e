"""Images of an episode in a video file of any origin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.decode import limit_pixels, rgb_reader
from nimbus.datagen.store.episode_file.open_video import open_mp4

_LATE = 1e-4
"""Largest accepted error of a frame's time [s]."""


class VideoPictures:
    """Images of an episode in a video, as :class:`~nimbus.datagen.datasets.quality.view.Pictures`.

    Args:
        path: Path of the video.
        name: Name of the video in findings.
        begin: Time of the episode's first frame in the video [s].
        length: Expected number of frames.
        fps: Frames per second [Hz].
        alone: True if the video contains only this episode.
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
        """Yield images ``[start, stop)``, each (H, W, 3) sRGB [levels, 0 to 255]; fewer if the episode ends earlier."""
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
        from nimbus.datagen.files.av_library import FFmpegError

        try:
            with open_mp4(self._path) as container:
                stream = container.streams.video[0]
                limit_pixels(stream)
                stream.codec_context.thread_count = 1
                yield container, stream
        except IndexError as error:
            raise Unreadable(self._name, "cannot be read: it contains no video") from error
        except InputError as error:
            raise Unreadable(self._name, error.what) from error
        except (OSError, ValueError, FFmpegError) as error:
            raise Unreadable(self._name, f"cannot be read: {error}") from error
