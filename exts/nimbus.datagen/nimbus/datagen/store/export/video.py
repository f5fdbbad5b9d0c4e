"""H.264 that every reader takes: an episode a file, and many files joined into one without encoding again."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError

GROUP = 10
"""Frames from one keyframe to the next: what a random read decodes at most."""
CODEC = "h264"
PIXELS = "yuv420p"
_ENCODER = {
    "preset": "superfast",
    "crf": "20",
    "g": str(GROUP),
    "keyint_min": str(GROUP),
    "sc_threshold": "0",
    "bf": "0",
    "threads": "1",  # another number of threads makes other bytes
}
_TICKS = 1000
"""Units of a file's clock in one frame: times are whole numbers, however long the file gets."""
_PLAIN = "+faststart"
_INDEXED = "frag_keyframe+delay_moov+default_base_moof+global_sidx"
"""Fragments with one index before them: a long file opens as fast as a short one."""


class EpisodeVideo:
    """Encodes one camera of one episode into a plain MP4; use as a context manager.

    Args:
        path: The file.
        fps: Frames a second.
        size: Width and height, both even.
    """

    def __init__(self, path: Path, *, fps: int, size: tuple[int, int]) -> None:
        import av

        self._container: Any = av.open(str(path), "w", format="mp4", options=_options(fps, _PLAIN))
        self._stream: Any = self._container.add_stream("libx264", rate=fps)
        self._stream.width, self._stream.height = size
        self._stream.pix_fmt = PIXELS
        self._stream.options = _ENCODER

    def write(self, images: NDArray[np.uint8]) -> None:
        """Append (T, H, W, 3) sRGB images."""
        import av

        for image in images:
            self._container.mux(self._stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))

    def __enter__(self) -> EpisodeVideo:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._container.mux(self._stream.encode())
        self._container.close()


def check_size(camera: str, size: tuple[int, int], *, where: Path) -> None:
    """Refuse what H.264 with halved colour cannot hold.

    Raises:
        InputError: Width or height is odd.
    """
    if size[0] % 2 or size[1] % 2:
        even = ", ".join(str(side + side % 2) for side in size)
        what = f"camera '{camera}' is {size[0]} x {size[1]}: H.264 wants even sizes"
        raise InputError(what, where=str(where), instead=f"make the dataset with size: [{even}]")


def join(parts: Iterable[Path], target: Path, *, fps: int) -> None:
    """Put videos of the same encoder one behind the other; no frame is encoded again.

    Args:
        parts: Files that :class:`EpisodeVideo` wrote.
        target: The file to write; frame ``k`` of all is at ``k / fps`` seconds exactly.
        fps: Frames a second.
    """
    import av

    tick = Fraction(1, fps * _TICKS)
    frame = 0
    with av.open(str(target), "w", format="mp4", options=_options(fps, _INDEXED)) as container:
        stream: Any = None
        for path in parts:
            with av.open(str(path)) as part:
                source = part.streams.video[0]
                if stream is None:
                    stream = container.add_stream_from_template(source)
                    stream.time_base = tick
                for packet in part.demux(source):
                    if not packet.size:
                        continue  # the demuxer's mark of the end
                    packet.stream, packet.time_base = stream, tick
                    packet.pts = packet.dts = frame * _TICKS
                    packet.duration = _TICKS
                    container.mux(packet)
                    frame += 1


def video_info(size: tuple[int, int], fps: int) -> dict[str, Any]:
    """What LeRobot's ``info.json`` says of a video."""
    return {
        "video.height": size[1],
        "video.width": size[0],
        "video.codec": CODEC,
        "video.pix_fmt": PIXELS,
        "video.is_depth_map": False,
        "video.fps": fps,
        "video.channels": 3,
        "video.g": GROUP,
        "video.crf": int(_ENCODER["crf"]),
        "video.preset": _ENCODER["preset"],
        "has_audio": False,
    }


def _options(fps: int, flags: str) -> dict[str, str]:
    return {"movflags": flags, "video_track_timescale": str(fps * _TICKS)}
