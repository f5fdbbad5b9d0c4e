"""Random access to the frames of a video, through a decoder that stays open."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.h264 import GROUP
from nimbus.datagen.store.episode_file.open_decoders import forget_decoder, use_decoder
from nimbus.datagen.store.episode_file.open_video import open_mp4

_LARGEST = 16_384
"""Largest accepted side of a frame [px]."""
_MOST_PIXELS = 1 << 24
"""Largest accepted number of pixels; 17 images of 10 bits and 4:4:4 take 1.7 GB."""
_USUAL = 1.5
"""Size of a pixel in usual videos, of 8 bits and 4:2:0; others take up to 6 [bytes]."""
REMEDY = "restore this file from a copy, or delete it and run again"
"""Remedy in the errors of a damaged file of an episode."""


def rgb_reader() -> Callable[[Any], NDArray[np.uint8]]:
    """Return a function that converts decoded frames to (H, W, 3) sRGB images.

    One converter serves all frames. A new converter for each frame would build its tables and threads each time, which
    takes ten times as long.
    """
    from nimbus.datagen.files.av_library import VideoReformatter

    converter: Any = VideoReformatter()
    return lambda frame: converter.reformat(frame, format="rgb24", threads=1).to_ndarray()


def limit_pixels(stream: Any) -> None:
    """Limit the images of a video stream to the declared size, before the decoder allocates memory for its own.

    Raises:
        ValueError: The declared size is too large, or there is no decoder.
    """
    if stream.codec_context is None:
        raise ValueError("no decoder for its images")
    width, height = int(stream.width), int(stream.height)
    if max(width, height) > _LARGEST or width * height > _MOST_PIXELS:
        raise ValueError(f"images of {width} x {height}")
    # Codecs round sides up to multiples of at most 128.
    stream.codec_context.options = {"max_pixels": str((width + 128) * (height + 128))}


class VideoReader:
    """Reader of frames in any order; consecutive frames are read fastest. Only one thread at a time may use it.

    Args:
        file: The video: a path, or an open file.
        fps: Frames per second; frame ``k`` is at ``k / fps`` seconds.
        where: Name in errors; the path when not given.

    Raises:
        InputError: The file is missing or not a video. Reading raises it for a damaged or short file.
    """

    def __init__(self, file: Path | IO[bytes] | io.RawIOBase, *, fps: float, where: str = "") -> None:
        self.where = where or str(file)
        self._file, self._fps = file, fps
        self._turn = threading.Lock()
        self._container: Any = None
        self._stream: Any = None
        self._wake()
        self._size = int(self._stream.width), int(self._stream.height)
        self._image_bytes = round(_USUAL * self._size[0] * self._size[1])

    def _wake(self) -> None:
        """Open the video, if it is not open."""
        from nimbus.datagen.files.av_library import FFmpegError

        if self._container is not None:
            return
        container: Any = None
        try:
            if isinstance(self._file, Path) and not self._file.exists():
                raise FileNotFoundError(self._file)
            container = open_mp4(self._file)
            stream: Any = container.streams.video[0]
            limit_pixels(stream)
            if stream.time_base is None:
                raise ValueError("images without times")
        except FileNotFoundError:
            what = "restore it from a copy, or run again"
            raise InputError("no such file", where=self.where, instead=what) from None
        except (OSError, ValueError, IndexError, FFmpegError) as error:
            if container is not None:
                container.close()
            raise self._unreadable(error) from None
        # The decoder has one thread, because readers run in many processes, whose threads would compete for the cores.
        stream.codec_context.thread_count = 1
        self._container, self._stream, self._rgb = container, stream, rgb_reader()
        self._frames: Iterator[Any] = iter(())
        self._next = -1
        """Number of the next frame of the decoder; -1 before the first seek."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height [px]."""
        return self._size

    def read(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Read frames ``[start, stop)`` as (T, H, W, 3) sRGB images."""
        width, height = self.size
        images = np.empty((stop - start, height, width, 3), np.uint8)
        with self._turn:
            self._wake()
            use_decoder(self, image_bytes=self._image_bytes)
            for row, frame in enumerate(self._from(start, stop)):
                if (frame.width, frame.height) != (width, height):
                    raise self._unreadable(ValueError(f"frame {start + row} has another size"))
                if (found := sum(plane.buffer_size for plane in frame.planes)) > self._image_bytes:
                    self._image_bytes = found
                    use_decoder(self, image_bytes=found)
                images[row] = self._rgb(frame)
        return images

    def frame(self, number: int) -> NDArray[np.uint8]:
        """Read one (H, W, 3) image."""
        return self.read(number, number + 1)[0]

    def close(self) -> None:
        """Close the file."""
        forget_decoder(self)
        self._sleep()

    def rest(self) -> bool:
        """Close the decoder until the next frame is read; False while another thread reads."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            self._sleep()
        finally:
            self._turn.release()
        return True

    def _sleep(self) -> None:
        """Close the file, and free the decoder's images."""
        if self._container is not None:
            self._frames = iter(())
            self._container.close()
            self._container = self._stream = None

    def _from(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the frames of a range; missing frames raise an error."""
        from nimbus.datagen.files.av_library import FFmpegError

        if start >= stop:
            return
        try:
            # Decoding up to a near frame is faster than seeking, which starts at a keyframe.
            if not self._next <= start < self._next + GROUP or self._next < 0:
                self._seek(start)
            wanted = start
            for frame in self._frames:
                if frame.pts is None:
                    raise ValueError("a frame without a time")
                number = round(float(frame.pts * self._stream.time_base) * self._fps)
                self._next = number + 1
                if number < wanted:
                    continue
                if number > wanted:
                    raise ValueError(f"frame {wanted} is missing")
                yield frame
                wanted += 1
                if wanted == stop:
                    return
            raise ValueError(f"frame {wanted} is missing")
        except (OSError, ValueError, OverflowError, FFmpegError) as error:
            self._next = -1
            raise self._unreadable(error) from None

    def _seek(self, number: int) -> None:
        place = round(number / self._fps / self._stream.time_base)
        self._container.seek(place, stream=self._stream, backward=True)
        self._frames = self._container.decode(self._stream)
        self._next = 0

    def _unreadable(self, error: Exception) -> InputError:
        reason = "no video in it" if isinstance(error, IndexError) else f"{error}".split("\n")[0]
        what = f"not a readable video: {reason}"
        return InputError(what, where=self.where, instead=REMEDY)
