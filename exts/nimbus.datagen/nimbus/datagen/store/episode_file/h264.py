"""H.264 encoder with settings that all common players and readers accept, for stored episodes and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError

GROUP = 10
"""Number of frames between keyframes, which is the largest number that a random read has to decode."""
CODEC = "h264"
PIXELS = "yuv420p"
ENCODER = {
    "preset": "superfast",
    "crf": "20",
    "g": str(GROUP),
    "keyint_min": str(GROUP),
    # There are no extra keyframes at scene cuts, because seeking relies on keyframes at the multiples of GROUP.
    "sc_threshold": "0",
    # There are no B-frames, so a frame depends on earlier frames only, and frames are decoded in the order of their
    # times.
    "bf": "0",
    "threads": "1",  # the encoded bytes depend on the number of threads
}
TICKS = 1000
"""Number of ticks per frame of a file's clock, so that all times are whole numbers."""
PLAIN = "+faststart"
FRAGMENTED = "frag_keyframe+delay_moov+default_base_moof"
"""Layout with one fragment per group of frames, in which bytes never change once they are written."""
INDEXED = f"{FRAGMENTED}+global_sidx"
"""Layout with fragments and one index before them, so that long files open quickly; it needs a seekable file."""


class File(Protocol):
    """Target of a video other than a path."""

    def write(self, data: bytes) -> int:
        """Write at the position."""
        ...

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position."""
        ...

    def tell(self) -> int:
        """Return the position."""
        ...


class Encoder:
    """Encoder of images of one size into an MP4.

    Args:
        target: A path, or an open file.
        fps: Frames per second.
        size: Width and height [px], both even.
        flags: Layout of the file: :data:`PLAIN`, :data:`FRAGMENTED` or :data:`INDEXED`.
    """

    def __init__(self, target: Path | File, *, fps: int, size: tuple[int, int], flags: str = PLAIN) -> None:
        from nimbus.datagen.files.av_library import av

        file: Any = str(target) if isinstance(target, Path) else target
        self._container: Any = av.open(file, "w", format="mp4", options=container_options(fps, flags))
        self._stream: Any = self._container.add_stream("libx264", rate=fps)
        self._stream.width, self._stream.height = size
        self._stream.pix_fmt = PIXELS
        self._stream.options = ENCODER

    def write(self, images: NDArray[np.uint8]) -> None:
        """Append (T, H, W, 3) sRGB images."""
        from nimbus.datagen.files.av_library import av

        for image in images:
            self._container.mux(self._stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))

    def finish(self) -> None:
        """Write the remaining frames and the end of the file."""
        self._container.mux(self._stream.encode())
        self._container.close()

    def abandon(self) -> None:
        """Close an unusable file."""
        self._container.close()


def container_options(fps: int, flags: str) -> dict[str, str]:
    """Return the options of an MP4 whose clock counts frames in whole numbers."""
    return {"movflags": flags, "video_track_timescale": str(fps * TICKS)}


def check_size(camera: str, size: tuple[int, int], *, where: Path | str) -> None:
    """Refuse a size that H.264 with subsampled chroma cannot hold.

    Raises:
        InputError: Width or height is odd.
    """
    if size[0] % 2 or size[1] % 2:
        even = ", ".join(str(side + side % 2) for side in size)
        what = f"camera '{camera}' is {size[0]} x {size[1]}: H.264 needs an even width and height"
        raise InputError(what, where=str(where), instead=f"make the dataset with size: [{even}]")


def whole_rate(rate: float, *, where: Path | str) -> int:
    """Return a rate as a whole number of frames per second.

    Raises:
        InputError: The rate is not a whole number.
    """
    if rate < 1 or rate != round(rate):
        what = f"{rate:g} steps a second: a video needs a whole number of frames per second"
        raise InputError(what, where=str(where), instead="make the dataset at a whole number of steps per second")
    return round(rate)
